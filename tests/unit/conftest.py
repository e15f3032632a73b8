"""Shared by the tests without Ray and without servers."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from warm_children import WarmChild


@pytest.fixture(scope="module", autouse=True)  # a package without a file of its own would be the whole session
def warm_children() -> Iterator[None]:
    """A child process of the product has its libraries already; tests/contracts and tests/runs start real ones."""
    with pytest.MonkeyPatch.context() as patch:
        child = SimpleNamespace(Popen=WarmChild, DEVNULL=subprocess.DEVNULL)
        patch.setattr("tuning.data.child_process.subprocess", child)
        yield
