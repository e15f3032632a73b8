"""The data sets that scikit-learn brings along, one experiment each: the task is guessed, the winner beats guessing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sklearn import datasets

from tuning import TuneRunner

# data set → the task that has to be found, a score that is clearly better than always saying the same
KNOWN: dict[str, tuple[str, float]] = {
    "diabetes": ("regression", 0.3),
    "breast_cancer": ("binary", 0.9),
    "iris": ("multiclass", 0.85),
    "wine": ("multiclass", 0.85),
}


@pytest.mark.parametrize("name", KNOWN)
def test_a_bundled_data_set_gets_a_good_model(tmp_path: Path, name: str) -> None:
    bunch: Any = getattr(datasets, f"load_{name}")(as_frame=True)
    frame = bunch.frame
    if name != "diabetes":
        frame["target"] = bunch.target_names[frame["target"]]
    task, good = KNOWN[name]
    metric = "r2" if task == "regression" else "accuracy"
    runner = TuneRunner(data={name: frame}, target="target", metric=metric, search_space="fast", trials=6, mlflow=False)
    assert runner.plan().spec.task == task
    result = runner.run(str(tmp_path / "run"), progress=False, in_process=True)
    (record,) = result.study_records
    assert record.status == "ok", record.reason
    assert record.cv_score is not None
    assert record.cv_score >= good
    assert len(result.model(name).predict(frame.drop(columns="target"))) == len(frame)
