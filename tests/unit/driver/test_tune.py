"""`tune(X, y)` for those who come from `fit(X, y)`."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tuning import tune
from tuning.errors import DataError, DefinitionError

USUAL = {"models": ["ridge"], "trials": 2, "mlflow": False, "report": False, "in_process": True, "progress": False}


def test_one_data_set_is_not_told_of_customers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    result = tune(X, X[:, 0], run_dir=tmp_path / "run", **{**USUAL, "progress": True}, name="price")
    said = capsys.readouterr().err
    assert "note: task 'regression' is guessed" in said
    assert said.count("note: ") == 1
    assert result.customer().customer == "price"


def test_what_x_and_y_say_is_no_key_and_the_others_complete() -> None:
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, 1.0]})
    with pytest.raises(DefinitionError, match=r"target: X and y say .* TuneRunner\(data=frame, target='column'\)"):
        tune(X, [0, 1], target="b", **USUAL)
    with pytest.raises(DataError, match="y: 'b' is one text"):
        tune(X, "b", **USUAL)
    assert {"X", "y", "run_dir", "trials", "metric"} <= set(inspect.signature(tune).parameters)
