"""What is said of a run when it has ended."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import make_frame

from tuning import RunResult, TuneRunner
from tuning.runs.outcome import sentences


def test_one_customer_with_notes_is_said_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"data": make_frame(), "target": "y", "task": "regression", "search_space": "ridge", "trials": 2}
    runner = TuneRunner({**given, "mlflow": False, "report": False})
    result = runner.run(tmp_path / "run", progress=False, in_process=True)
    said = " ".join(sentences(result, result.summary()))
    assert "Notes are on 1 of 1 customer, such as columns that were left out" in said
    monkeypatch.setattr(result, "goes_on", True)
    monkeypatch.setattr(RunResult, "unfinished", 3)
    first, *_ = sentences(result, {**result.summary(), "without_model": 5})
    assert "3 not finished yet, 2 without (the reason is in their row)" in first


def test_a_model_that_the_hold_out_rows_contradict_is_counted(tmp_path: Path) -> None:
    """A clock that wraps: what the folds knew of the column is false in the rows to come."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    good = pd.DataFrame({"day": range(100), "x": x, "y": x + rng.normal(scale=0.2, size=100)})
    wraps = good.assign(x=np.where(good["day"] < 80, x, x + 200))
    runner = TuneRunner(
        data={"good": good, "wraps": wraps}, target="y", task="regression", metric="rmse", drop=["day"],
        split={"type": "time", "column": "day"}, search_space="ridge", trials=2, mlflow=False, report=False,
    )  # fmt: skip
    result = runner.run(tmp_path / "run", progress=False, in_process=True)
    counts = result.summary()
    assert (counts["worse_than_constant"], counts["surely_worse"]) == (1, 1)
    (said,) = (each for each in sentences(result, counts) if "constant" in each)
    assert said.startswith("1 model does worse on the hold-out rows than a constant, which knows nothing, by more than")
