"""The plan names what a cluster's workers would import in place of a package, and what is not installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from shown_output import note_texts

from tuning.definition.definition import define
from tuning.models.registry import families
from tuning.planning.plan import make_plan


def test_a_folder_called_like_a_package_is_named_in_the_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text("")
    (tmp_path / "schedulers.py").write_text("")
    (tmp_path / "pandas").mkdir()  # holds data: nothing that could be imported
    (tmp_path / "acme.csv").write_text("a,y\n" + "".join(f"{row},{row}\n" for row in range(10)))
    monkeypatch.chdir(tmp_path)
    made = make_plan(define({"data": "acme.csv", "target": "y", "task": "regression", "search_space": "ridge"}))
    said = [note.partition(" in the current folder")[0] for note in note_texts(made) if "name of a package" in note]
    assert said == ["schedulers.py", "numpy/"]


def test_what_an_install_without_two_extras_is_worth_is_said_where_they_are_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme.csv").write_text("a,y\n" + "".join(f"{row},{row}\n" for row in range(10)))
    given = {"data": str(tmp_path / "acme.csv"), "target": "y", "task": "regression"}

    def said(**more: object) -> list[str]:
        return [note for note in note_texts(make_plan(define({**given, **more}))) if "not installed" in note]

    assert said() == []
    for name in ("catboost", "lightgbm"):
        monkeypatch.setattr(type(families()[name]), "missing", lambda _: "not here")
    worth = "on 70 customers, 20 trials without both were worse on 49 and better on 20, 0.7 % worse in the median."
    (note,) = said()
    assert note.startswith("catboost and lightgbm are not installed, and the default search does without: ")
    assert note.endswith(f"{worth} pip install 'tuning-service[catboost,lightgbm]'")
    assert said(models=["ridge"]) == said(search_space="ridge") == []
