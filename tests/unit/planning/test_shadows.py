"""The plan names what a cluster's workers would import in place of a package."""

from __future__ import annotations

from pathlib import Path

import pytest
from paths import ROOT

from tuning.definition.definition import define
from tuning.notes import PlanCode
from tuning.planning.plan import make_plan
from tuning.planning.plan_notes import shadowed_packages


def test_a_folder_called_like_a_package_is_named_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("")
    (tmp_path / "schedulers.py").write_text("")
    (tmp_path / "pandas").mkdir()  # holds data: nothing that could be imported
    (tmp_path / "acme.csv").write_text("a,y\n" + "".join(f"{row},{row}\n" for row in range(10)))
    monkeypatch.chdir(tmp_path)
    given = define({"data": "acme.csv", "target": "y", "task": "regression", "search_space": "ridge"})
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert make_plan(given).notes == ()  # workers of a Ray of our own import the package
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr("tuning.planning.plan.default_slots", lambda: 2)
    assert [(note.code, note.subject) for note in make_plan(given).notes] == [
        (PlanCode.SHADOWED_PACKAGE, "schedulers.py"),
        (PlanCode.SHADOWED_PACKAGE, "numpy/"),
    ]


def test_the_folder_of_the_sources_themselves_is_named_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert [*shadowed_packages()] == []
