"""What knowing nothing is worth, and that it is what a customer gets whose columns do not tell the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data
from sklearn.dummy import DummyRegressor

from tuning import RunResult, TuneRunner
from tuning.evaluation.constant import find_constant
from tuning.evaluation.metrics import Metric
from tuning.execution.study_run import conclude_study
from tuning.execution.worker import Worker, WorkerContext
from tuning.models.bounds import GivenBounds
from tuning.notes import FitCode, texts
from tuning.preprocessing.task import REGRESSION
from tuning.runs.plan_file import read_plan

SIX = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": [9.0, 1.0, 8.0, 2.0, 9.5, 1.5]})
MADE_WITHOUT_A_MODEL = ("constant_cv_score", "constant_test_score", "gain_over_constant")


def search(folder: Path, data: Any, **fields: Any) -> RunResult:
    given: dict[str, Any] = {
        "target": "y",
        "trials": 4,
        "algorithm": "random",
        "scheduler": "fifo",
        "mlflow": False,
        "report": False,
    }
    given |= {"search_space": "ridge", **fields}
    return TuneRunner(data=data, **given).run(str(folder), progress=False, in_process=True)


def test_a_hold_out_of_one_value_has_no_r2_whatever_is_scored(tmp_path: Path) -> None:
    early = np.arange(100) < 80
    a = np.random.default_rng(0).normal(size=100)
    frame = pd.DataFrame({"a": a, "day": range(100), "y": np.where(early, a, 6.0)})
    result = search(tmp_path / "run", frame, metric="r2", split={"type": "time", "column": "day"}, drop=["day"])
    (row,) = result.leaderboard().to_dict("records")
    undefined = ("test_score", "constant_test_score", "gain_over_constant", "baseline_test_score", "gain")
    assert {name: row[name] for name in undefined if not pd.isna(row[name])} == {}


def noise(rows: int = 40) -> pd.DataFrame:
    """A target with which no column has anything to do."""
    rng = np.random.default_rng(2)
    return pd.DataFrame(
        {"a": rng.normal(size=rows), "b": rng.choice(["p", "q"], rows), "y": rng.exponential(size=rows)}
    )


@pytest.mark.parametrize("metric", ["rmse", "mae"])
def test_a_constant_is_that_of_scikit_learn_to_the_last_bit(metric: str) -> None:
    rng = np.random.default_rng(0)
    for rows in (20, 21, 130, 1001):
        frame = pd.DataFrame({"x": rng.normal(size=rows), "y": rng.exponential(size=rows) * 1e3})
        data = prepare_data(frame, target="y", task=REGRESSION, seed=0)
        found = find_constant(data, Metric(metric, data.task))
        assert found is not None
        y = data.y[data.split.search]
        theirs = DummyRegressor(strategy=found.config["strategy"]).fit(np.empty((len(y), 1)), y)
        assert set(found.answers(data).values) == set(theirs.constant_.ravel())


def told(rows: int = 40) -> pd.DataFrame:
    """A target that a column tells."""
    frame = noise(rows)
    frame["y"] = 3 * frame["a"]
    return frame


def test_six_rows_that_say_nothing_get_the_constant_and_a_note(tmp_path: Path) -> None:
    result = search(tmp_path / "run", {"six": SIX, "told": told()})
    six, other = (next(each for each in result.study_records if each.customer == name) for name in ("six", "told"))
    assert (six.status, six.family, six.trial, six.ensemble) == ("ok", "constant", None, None)
    assert six.config == result.best_config("six") == {"model": "constant", "strategy": "mean"}
    assert six.cv_score == six.constant_cv_score
    assert six.test_score == six.constant_test_score
    assert six.gain_over_constant == 0
    best = min(record.score for record in result.trial_records if record.customer == "six")
    assert best > six.cv_score
    why = f"on the folds it scores {six.cv_score:.4g}, the best that was found {best:.4g}"
    assert f"the model is a constant, the mean of the target: {why}" in texts(six.notes)
    # Saved, loaded and asked like any other, and fitted on all rows.
    np.testing.assert_allclose(result.model("six").predict(SIX[["x"]]), SIX["y"].mean())
    row = result.leaderboard().set_index("customer").loc["six"]
    assert (row["model"], row["gain_over_constant"]) == ("constant", 0)
    assert other.family == "ridge"
    assert other.gain_over_constant == pytest.approx(100 * (1 - other.test_score / other.constant_test_score))
    assert other.gain_over_constant > 0
    assert result.summary()["constants"] == 1


def by_hand(frame: pd.DataFrame, metric: str, task: str, **fields: Any) -> tuple[Any, Any]:
    data = prepare_data(frame, target="y", task=task, seed=1, **fields)
    return data, find_constant(data, Metric(metric, data.task))


def test_a_constant_is_scored_by_hand() -> None:
    data, found = by_hand(noise(), "rmse", "regression")
    rows = data.split.search
    folds = [np.sqrt(np.mean((data.y[rows[v]] - data.y[rows[t]].mean()) ** 2)) for t, v in data.split.folds]
    assert found.fold_scores == pytest.approx(folds)
    assert found.score == pytest.approx(np.mean(folds))
    expected = np.sqrt(np.mean((data.y[data.split.test] - data.y[rows].mean()) ** 2))
    assert found.test_score == pytest.approx(expected)

    data, found = by_hand(noise(), "mae", "regression")
    assert found.config["strategy"] == "median", "which is what absolute errors want"
    expected = np.abs(data.y[data.split.test] - np.median(data.y[data.split.search])).mean()
    assert found.test_score == pytest.approx(expected)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("bounds", ["auto", (None, -3e3)])
def test_a_constant_is_what_its_model_says_to_the_last_bit(whole: bool, bounds: GivenBounds) -> None:
    frame = told(61).assign(y=lambda rows: rows["y"] * 1e3)
    data = prepare_data(frame.round() if whole else frame, target="y", task="regression", seed=3, bounds=bounds)
    for name in ("rmse", "mae"):
        metric = Metric(name, data.task)
        found = find_constant(data, metric)
        assert found is not None
        member = found.member(data, all_rows=False)
        unseen = data.whole(member.kind)[2]
        said = member.prediction(unseen, data.task)
        assert found.test_score == metric.score(unseen.y, said)
        assert bounds == "auto" or set(said.values) == set(found.answers(data).values) == {
            -3e3
        }  # it is held like any model


def test_shares_of_weighted_classes_by_hand() -> None:
    frame = noise().assign(w=np.arange(40) % 3 + 1.0)
    frame["y"] = np.where(frame["y"] > 1, "yes", "no")
    data, found = by_hand(frame, "log_loss", "binary", weight="w")
    search, test = data.split.search, data.split.test
    share = np.average(data.y[search], weights=data.weight[search])
    losses = -np.log(np.where(data.y[test] == 1, share, 1 - share))
    assert found.test_score == pytest.approx(np.average(losses, weights=data.weight[test]))
    assert by_hand(frame, "roc_auc", "binary")[1].score == 0.5


VARIETY = """
import sys


def variety(truth, values):
    if len(set(values)) < 2:
        {refusal}
    return -abs(truth - values).mean()
"""


@pytest.mark.parametrize(
    "refusal",
    ["raise ValueError('all predictions are the same')", "sys.exit('the same')", "return -sys.float_info.max"],
)
def test_a_metric_that_no_constant_can_be_scored_by_leaves_the_winner(tmp_path: Path, refusal: str) -> None:
    (tmp_path / "mine.py").write_text(VARIETY.format(refusal=refusal))
    (study,) = search(tmp_path / "run", noise(), metric=f"{tmp_path / 'mine.py'}:variety").study_records
    assert study.status == "ok"
    assert study.family == "ridge"
    assert [getattr(study, name) for name in MADE_WITHOUT_A_MODEL] == [None] * 3


def test_an_objective_and_a_comparison_have_no_constant(tmp_path: Path) -> None:
    def loss(config: dict[str, Any]) -> float:
        return float(config["x"])

    space = {"x": {"type": "float", "low": 0.0, "high": 1.0}}
    made = TuneRunner(
        objective=loss, search_space=space, metric="loss", mode="min", trials=2, mlflow=False, report=False
    )
    (study,) = made.run(str(tmp_path / "objective"), progress=False, in_process=True).study_records
    assert [getattr(study, name) for name in MADE_WITHOUT_A_MODEL] == [None] * 3
    assert study.trial is not None
    compared = search(tmp_path / "compared", noise(), compare={"algorithms": ["random", "sobol"], "seeds": 1})
    assert {record.family for record in compared.study_records} == {"ridge"}, "what each algorithm found"


@pytest.mark.long
@pytest.mark.parametrize("task", ["regression", "binary"])
def test_a_constant_is_the_same_resumed_and_where_trials_ran_elsewhere(tmp_path: Path, task: str) -> None:
    frame = noise()
    if task == "binary":
        frame["y"] = np.where(frame["y"] > 1, "yes", "no")
    fields = {"search_space": "ridge" if task == "regression" else "logistic"}
    (whole,) = search(tmp_path / "whole", frame, trials=6, metric=METRIC[task], **fields).study_records
    search(tmp_path / "cut", frame, trials=3, metric=METRIC[task], **fields)
    result = TuneRunner.resume(str(tmp_path / "cut"), trials=6, progress=False, in_process=True)
    (resumed,) = result.study_records
    assert whole.family == "constant"
    plan = read_plan(result.directory, result.term)
    (study,) = plan.ended or plan.studies
    # As of a spread study, whose trials have all run elsewhere.
    worker = Worker(WorkerContext.open(result.directory, plan.run, plan.spec))
    elsewhere = conclude_study(worker, study, result.trial_records)
    said = ("family", "trial", "config", "cv_score", "cv_error", "test_score", "gain", "notes", *MADE_WITHOUT_A_MODEL)
    for other in (resumed, elsewhere):
        assert [getattr(other, name) for name in said] == [getattr(whole, name) for name in said]
    model = result.model()
    if task == "binary":
        np.testing.assert_allclose(model.predict_proba(frame)[:, 1], (frame["y"] == "yes").mean())


METRIC = {"regression": "rmse", "binary": "log_loss"}


@pytest.mark.long
def test_a_row_says_why_the_baseline_was_kept(tmp_path: Path) -> None:
    fields = {"search_space": {"model": {"type": "constant", "value": "ridge"}, "alpha": {
        "type": "float", "low": 0.001, "high": 1000.0, "log": True, "default": 0.001}}}  # fmt: skip
    result = search(tmp_path / "run", told(), ensemble="none", portfolio="none", **fields)
    (study,) = result.study_records
    others = min(record.score for record in result.trial_records if record.trial)
    assert study.trial == 0
    assert study.notes == (FitCode.FIRST_KEPT("the baseline", own=study.cv_score, other=others),)


@pytest.mark.long
def test_a_constant_may_be_named_as_a_model(tmp_path: Path) -> None:
    (study,) = search(tmp_path / "run", noise(), models=["constant", "ridge"], search_space=None).study_records
    assert study.family == "constant"
    assert study.trial is not None, "a trial like any other"
