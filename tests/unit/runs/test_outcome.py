"""What is said of a run when it has ended."""

from __future__ import annotations

from pathlib import Path

from builders import make_frame

from tuning import TuneRunner
from tuning.runs.outcome import sentences


def test_one_customer_with_notes_is_said_as_one(tmp_path: Path) -> None:
    given = {"data": make_frame(), "target": "y", "task": "regression", "search_space": "ridge", "trials": 2}
    runner = TuneRunner({**given, "mlflow": False, "report": False})
    result = runner.run(tmp_path / "run", progress=False, in_process=True)
    said = " ".join(sentences(result, result.summary()))
    assert "Notes are on 1 of 1 customer, such as columns that were left out" in said
