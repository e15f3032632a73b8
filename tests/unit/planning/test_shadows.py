"""The plan names what a cluster's workers would import in place of a package."""

from __future__ import annotations

from pathlib import Path

import pytest

from tuning.definition.definition import define
from tuning.planning.plan import make_plan


def test_a_folder_called_like_a_package_is_named_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("")
    (tmp_path / "schedulers.py").write_text("")
    (tmp_path / "pandas").mkdir()  # holds data: nothing that could be imported
    (tmp_path / "acme.csv").write_text("a,y\n" + "".join(f"{row},{row}\n" for row in range(10)))
    monkeypatch.chdir(tmp_path)
    made = make_plan(define({"data": "acme.csv", "target": "y", "task": "regression", "search_space": "ridge"}))
    said = [note.partition(" in the current folder")[0] for note in made.notes if "name of a package" in note]
    assert said == ["schedulers.py", "numpy/"]
