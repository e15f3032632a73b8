"""What the beginning of a run leaves behind: a run, or nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import SPACE

from tuning import RunResult, TuneRunner
from tuning.errors import DataError, DefinitionError, PlanError, RunError, StorageError, TuningError
from tuning.storage.backend import TEMPORARY


def table(folder: Path, last_line: str = "") -> str:
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["a", "y"]).assign(who=["u", "v"] * 20)
    path = folder / "table.csv"
    path.write_text(rows.to_csv(index=False) + last_line)
    return str(path)


def runner(data: str, **fields: Any) -> TuneRunner:
    given = {
        "by": "who",
        "target": "y",
        "task": "regression",
        "search_space": "ridge",
        "trials": 2,
        "mlflow": False,
        "report": False,
    }
    return TuneRunner(**{**given, "data": data, **fields})


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"target": "z"}, PlanError),
        ({"prepare": "gone.py:f"}, DefinitionError),
        ({"metric": "gone.py:f"}, DefinitionError),
        ({"algorithm": {"name": "grid", "levels": 3, "limit": 1}}, PlanError),
    ],
)
def test_a_refused_definition_leaves_no_folder(
    fields: dict[str, Any], error: type[TuningError], tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "one"
    with pytest.raises(error):
        runner(table(tmp_path), **fields).run(str(run), in_process=True, progress=False)
    assert not run.exists()


def test_what_fails_after_the_claim_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The corrected definition takes the same folder."""
    run = tmp_path / "run"

    def unreadable(*_: object) -> None:
        raise DataError("line 30,000 cannot be read")

    with monkeypatch.context() as patch:
        patch.setattr("tuning.runs.begin.partition", unreadable)
        with pytest.raises(DataError):
            runner(table(tmp_path)).run(str(run), in_process=True, progress=False)
    assert not run.exists()
    assert len(runner(table(tmp_path)).run(str(run), in_process=True, progress=False).leaderboard()) == 2


def test_a_folder_with_other_files_is_no_place_for_a_run(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("years of work")
    with pytest.raises(RunError, match=r"mine holds files that are of no run\. Choose an empty folder, or a new one"):
        runner(table(tmp_path)).run(str(folder), in_process=True, progress=False)
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


def test_a_run_that_died_in_its_first_write_can_be_begun_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    (folder / "terms").mkdir(parents=True)
    (folder / "terms" / f"{TEMPORARY}0").write_bytes(b"{")
    again = runner(table(tmp_path)).run(str(folder), in_process=True, progress=False, resume=True)
    assert len(again.leaderboard()) == 2


@pytest.mark.long
def test_the_file_of_an_objective_goes_into_the_run(tmp_path: Path) -> None:
    """A resume works without it, and refuses another function in its place."""
    code = tmp_path / "mine.py"
    code.write_text("def loss(config):\n    return (config['x'] - 1) ** 2 + config['y'] ** 2\n")
    run, quiet = str(tmp_path / "run"), {"in_process": True, "progress": False}

    def objective(trials: int) -> TuneRunner:
        return TuneRunner(
            objective=f"{code}:loss",
            search_space=SPACE,
            metric="loss",
            mode="min",
            trials=trials,
            mlflow=False,
            report=False,
        )

    first = objective(3).run(run, **quiet)
    assert first.trial_records[0].score == 1.0
    assert len(list((tmp_path / "run" / "code").iterdir())) == 1
    assert len(objective(5).run(run, resume=True, **quiet).trial_records) == 5
    code.write_text("def loss(config):\n    return 0.0\n")
    with pytest.raises(RunError, match=r"objective: .*, or its file changed"):
        objective(7).run(run, resume=True, **quiet)
    code.unlink()
    assert len(TuneRunner.resume(run, trials=7, **quiet).trial_records) == 7


def test_a_folder_may_be_a_path_and_what_is_none_is_said(tmp_path: Path) -> None:
    run = tmp_path / "run"
    definition = runner(table(tmp_path))
    definition.run(run, in_process=True, progress=False)
    again = definition.run(run, in_process=True, progress=False, resume=True)
    resumed = TuneRunner.resume(run, in_process=True, progress=False)
    assert repr(again) == repr(resumed) == repr(RunResult(run)) == repr(RunResult(str(run)))
    for nothing, said in (
        (5, "5 is no folder of a run"),
        ("s3://", "'s3://' names no folder"),
        ("/", "names no folder"),
    ):
        with pytest.raises(StorageError, match=said):
            definition.run(nothing, in_process=True, progress=False)
        with pytest.raises(StorageError, match=said):
            RunResult(nothing)


@pytest.mark.parametrize("data", [pd.Series([1, 2]), np.zeros((2, 2)), [pd.DataFrame({"a": [1]})], [1, 2]])
def test_data_of_another_kind_is_refused_in_a_sentence(data: Any) -> None:
    with pytest.raises(DefinitionError, match=r"^data: .{1,80} is not a glob, a file, a folder, a list of these"):
        runner(data)
