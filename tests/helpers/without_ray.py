"""Runs that are worked in forks of this process, and never with Ray."""

from __future__ import annotations

import pytest

from tuning.errors import RunError


def refuse_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests of this session may have a cluster; here there is none, and none starts."""

    def refused(slots: int) -> bool:
        raise RunError("Ray was wanted.")

    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("tuning.driver.hosts.ray.start_ray", refused)
