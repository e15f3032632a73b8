"""The user's own estimators through a whole run and back from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import by_name, make_frame
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeRegressor
from warm_children import run_script

from tuning import TuneRunner
from tuning.errors import CustomerError, PlanError, RunError


def run(tmp_path: Path, models: Any, **fields: Any) -> Any:
    for customer, seed in (("acme", 1), ("bolt", 2)):
        make_frame(seed=seed).to_csv(tmp_path / f"{customer}.csv", index=False)
    runner = TuneRunner(
        data=fields.pop("data", str(tmp_path / "*.csv")),
        target="y",
        task="regression",
        metric="mae",
        models=models,
        storage=str(tmp_path / "runs"),
        mlflow=False,
        **fields,
    )
    return runner.run(str(tmp_path / "run"), progress=False, in_process=True)


def test_the_best_of_a_few_estimators_for_every_customer(tmp_path: Path) -> None:
    result = run(tmp_path, [LinearRegression(), DecisionTreeRegressor(), DecisionTreeRegressor(splitter="random")])
    board = result.leaderboard()
    assert list(board["status"]) == ["ok", "ok"]
    assert list(board["model"]) == ["LinearRegression", "LinearRegression"]
    assert list(board["trials"]) == [3, 3]
    predicted = result.model("acme").predict(make_frame(seed=5))
    assert np.corrcoef(predicted, make_frame(seed=5)["y"])[0, 1] > 0.99


READ = """
import json, sys
import pandas as pd
from tuning import RunResult

model = RunResult(sys.argv[1]).model("bolt")
print(json.dumps([float(value) for value in model.predict(pd.read_parquet(sys.argv[2]))]))
"""


def test_a_pipeline_by_column_names_gets_the_columns_themselves(tmp_path: Path) -> None:
    result = run(tmp_path, {"mine": by_name()})
    model = result.model("bolt")
    assert {member.encoder.encoding for member in model.members} == {"frame"}
    fresh = make_frame(seed=9)
    expected = [float(value) for value in model.predict(fresh)]
    assert np.corrcoef(expected, fresh["y"])[0, 1] > 0.99
    fresh.to_parquet(tmp_path / "fresh.parquet")
    (tmp_path / "read.py").write_text(READ)
    done = run_script(tmp_path / "read.py", str(tmp_path / "run"), str(tmp_path / "fresh.parquet"))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected


def test_a_pipeline_by_column_names_gets_numbers_as_numbers_and_refuses_what_is_none(tmp_path: Path) -> None:
    frames = {}
    for customer in ("acme", "bolt"):
        frame = make_frame()
        frames[customer] = frame.assign(shop=(frame["shop"] == "a").astype(int))
    indicators = ColumnTransformer([("shop", OneHotEncoder(handle_unknown="ignore"), ["shop"])], remainder="drop")
    model = run(tmp_path, make_pipeline(indicators, Ridge()), data=frames).model("acme")
    new = frames["acme"][:6]
    told = model.predict(new)
    assert len(set(told)) == 2
    np.testing.assert_allclose(model.predict(new.assign(shop=new["shop"].astype(str))), told)
    with pytest.raises(CustomerError, match="column 'shop' held numbers when the model was fitted, now it holds text"):
        model.predict(new.assign(shop="a"))
    with pytest.raises(CustomerError, match="column 'x' held numbers when the model was fitted, now it holds dates"):
        model.predict(new.assign(x=np.datetime64("2024-01-01")))
    assert len(model.predict(new.assign(empty="text in a column that was empty"))) == 6


OWN_CODE = """
from sklearn.base import BaseEstimator, RegressorMixin
import numpy as np

class Slope(RegressorMixin, BaseEstimator):
    def __init__(self, shift=0.0):
        self.shift = shift
    def fit(self, X, y):
        self.slope_, self.middle_ = np.polyfit(X[:, 0], y, 1)
        return self
    def predict(self, X):
        return self.middle_ + self.shift + self.slope_ * X[:, 0]
"""


def test_a_class_of_the_users_own_is_only_pickled_when_that_is_said(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN_CODE)
    entry = {
        "estimator": f"{file}:Slope",
        "search_space": {"shift": {"type": "float", "low": -1.0, "high": 1.0, "default": 0.0}},
    }
    with pytest.raises(PlanError, match=r"cannot be saved safely.*allow_code: true"):
        run(tmp_path, [entry], trials=4)
    result = run(tmp_path, [entry], trials=4, allow_code=True)
    assert list(result.leaderboard()["model"]) == ["Slope", "Slope"]
    file.unlink()  # the run has its own copy, and the model goes without either
    with pytest.raises(RunError, match="allow_code=True"):
        result.model("acme")
    predicted = result.model("acme", allow_code=True).predict(make_frame())
    assert len(set(predicted)) == 60


UNSAVED = """
from pathlib import Path
from sklearn.linear_model import Ridge

class Shy(Ridge):
    def __reduce__(self):
        if hasattr(self, "coef_") and Path(BROKEN).exists():
            raise AttributeError("no way to write it down")
        return super().__reduce__()
"""


def test_a_model_that_cannot_be_saved_is_saved_by_a_resume(tmp_path: Path) -> None:
    (broken := tmp_path / "broken").touch()
    (tmp_path / "mine.py").write_text(UNSAVED.replace("BROKEN", repr(str(broken))))
    fields = {"models": {"mine": f"{tmp_path}/mine.py:Shy"}, "allow_code": True, "trials": 2}
    result = run(tmp_path, **fields)
    why = "the model could not be saved: AttributeError: no way to write it down. Remove the cause, or set "
    assert {reason[: len(why)] for reason in result.leaderboard()["reason"]} == {why}
    known = {record.key: record.started for record in result.trial_records}
    broken.unlink()
    result = TuneRunner.resume(tmp_path / "run", in_process=True, progress=False)
    assert list(result.leaderboard()["status"]) == ["ok", "ok"]
    assert {record.key: record.started for record in result.trial_records} == known, "no trial runs again"
    assert len(result.model("acme", allow_code=True).predict(make_frame())) == 60


def test_resuming_needs_the_same_models(tmp_path: Path) -> None:
    result = run(tmp_path, [{"name": "mine", "estimator": by_name()}, "ridge"], trials=3)
    before = result.leaderboard()
    again = TuneRunner.resume(str(tmp_path / "run"), progress=False, in_process=True).leaderboard()
    assert again["cv_score"].tolist() == before["cv_score"].tolist()
    other = TuneRunner(
        data=str(tmp_path / "*.csv"),
        target="y",
        task="regression",
        metric="mae",
        models=["ridge"],
        trials=3,
        mlflow=False,
        storage=str(tmp_path / "runs"),
    )
    with pytest.raises(RunError, match="models"):
        other.run(str(tmp_path / "run"), resume=True, progress=False, in_process=True)
