"""What a cell shows of a run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
import pytest
from builders import definition, tuner_of, write_customers
from chaos import environment
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook
from paths import ROOT

from tuning import TuneRunner
from tuning.driver.display import Display
from tuning.notes import EndCode, Note
from tuning.runs.progress import Counter, Progress


def test_a_cell_that_runs_a_search_shows_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_customers(tmp_path / "data", 2)
    runner = TuneRunner(**definition(tmp_path / "data"), portfolio="none")
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    result = runner.run(str(tmp_path / "run"), in_process=True)
    shown = capsys.readouterr().out
    assert "2 of 2 customers have a model: " in shown
    assert "; 8 trials.\nTypical " in shown
    assert repr(result.model("c0000")) == "<ridge model of customer 'c0000': regression from 3 columns>"


def test_notes_that_an_earlier_cell_has_shown_are_not_shown_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = [EndCode.ALL_TRIALS_DONE(trials=7), EndCode.NO_TRIAL_RUN()]

    def told(notes: list[Note], style: str = "line") -> list[str]:
        Display(Counter(Progress(trials=1, studies=1)), style).tell("2 trials", notes)
        return capsys.readouterr().err.splitlines()

    first = str(notes[0])
    assert told(notes[:1]) == ["2 trials", f"note: {first}"]
    assert told(notes) == ["2 trials", f"note: {first} (1 more: `tuning plan`)"], "two programs' runs, each on its own"
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)
    assert told(notes) == ["2 trials"]
    assert told([*notes, EndCode.NOT_FINISHED()]) == ["2 trials", f"note: {EndCode.NOT_FINISHED()}"]
    assert len(told(notes, "jsonl")) == 2


def test_a_result_of_many_customers_says_that_it_shows_the_first(tmp_path: Path) -> None:
    frame = pd.DataFrame({"shop": [f"s{number:02d}" for number in range(23)]})
    runner = tuner_of(lambda config: config["x"], data=frame, by="shop", trials=1)
    result = runner.run(str(tmp_path / "run"), progress=False, in_process=True)
    assert "The first 10 of 23 customers; leaderboard() has all." in result._repr_html_()
    assert result._repr_html_().count("<tr") == 11


PLAN = f"""
from tuning import TuneRunner
TuneRunner.from_yaml("{ROOT}/examples/ray_train.yaml", data="housing.csv", slots=2).plan()
"""


def test_a_cell_that_plans_trainers_shows_the_plan_alone(tmp_path: Path) -> None:
    """The file of the objective imports Ray Train, which has a lot to say in a notebook without widgets."""
    (tmp_path / "housing.csv").write_text("x,median_house_value\n1,2\n")
    mistake = new_code_cell("def mine():\n    TuneRunner(target='y').plan()\n\nmine()")
    notebook = new_notebook(cells=[new_code_cell(PLAN), mistake])
    client = NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}, allow_errors=True)
    client.execute(env=environment())
    (output,) = notebook.cells[0].outputs
    assert output.output_type == "execute_result"
    assert output.data["text/plain"].startswith("plan        ray_train\ncustomers   1\n")
    (error,) = notebook.cells[1].outputs
    shown = re.sub(r"\x1b\[[0-9;]*m", "", "\n".join(error.traceback))
    assert "TuneRunner(target='y').plan()" in shown  # the caller's lines, and the message
    assert "DefinitionError: data: " in shown
    assert str(ROOT / "tuning") not in shown
