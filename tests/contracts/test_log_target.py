"""The parameter `target: log` of every family: fitted to the logarithm, scored and answered in the target's units."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from mlflow_records import trial
from model_cases import CASES, STEPPED, make_data, make_frame

from tuning import TuneRunner
from tuning.errors import DefinitionError, PlanError
from tuning.evaluation.conclusion import conclude
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData, full_steps, train
from tuning.evaluation.winner import StudyOutcome
from tuning.models.base import Stage, SteppedFamily
from tuning.models.customer_model import load_model
from tuning.notes import texts
from tuning.preprocessing.task import REGRESSION
from tuning.records.schema import Config
from tuning.storage.run_directory import RunDirectory

REGRESSORS = [name for name, task in CASES if task == REGRESSION]
METRIC = "mape"


def skewed() -> pd.DataFrame:
    """A target over several orders of magnitude, whose logarithm is what the columns tell."""
    frame = make_frame(REGRESSION)
    return frame.assign(y=np.exp((frame["y"] - 5000) / 100))


def short(name: str, target: str, data: StudyData) -> Config:
    family = data.family(name)
    length = {family.length: 2 * family.step_length} if isinstance(family, SteppedFamily) else {}
    return {"model": name, "target": target, **length}


def concluded(config: Config, data: StudyData) -> StudyOutcome:
    metric = Metric(METRIC, data.task)
    *_, last = train(config, data, metric, 5)
    record = trial(
        config=config, family=config["model"], metric=METRIC, mode="min", seed=5, score=last.score,
        fold_scores=last.fold_scores, best_step=full_steps(config, data), schedule=None, lineage=None,
    )  # fmt: skip
    return conclude([record], data, metric, "acme")


@pytest.mark.parametrize("name", REGRESSORS)
def test_a_model_of_the_logarithm_answers_in_the_targets_units_also_from_disk(name: str, tmp_path: Path) -> None:
    frame = skewed()
    data = make_data(frame, REGRESSION)
    outcome = concluded(short(name, "log", data), data)
    plain = concluded(short(name, "plain", data), data)
    assert outcome.winner is not None
    assert plain.winner is not None
    assert outcome.model is not None
    assert (outcome.winner.score or 0) < (plain.winner.score or 0)
    outcome.model.save(RunDirectory(str(tmp_path)), "models/acme")
    again = load_model(RunDirectory(str(tmp_path)), "models/acme")
    unseen = frame.iloc[data.split.test]
    said = again.predict(unseen)
    assert np.mean(np.abs(said / unseen["y"] - 1)) == pytest.approx(outcome.test_score)
    assert (said > 0).all()


@pytest.mark.parametrize("name", [name for name, task in STEPPED if task == REGRESSION])
def test_a_growing_model_of_the_logarithm_goes_on_and_is_fitted_as_it_was_scored(name: str) -> None:
    data = make_data(skewed(), REGRESSION)
    metric, config = Metric(METRIC, data.task), short(name, "log", data)
    expected = [step.fold_scores for step in train(config, data, metric, 5)]
    state = next(train(config, data, metric, 5)).get_state()
    assert [step.fold_scores for step in train(config, data, metric, 5, state)] == expected[1:]
    family, params = data.family_of(config), data.parameters_of(config)
    assert isinstance(family, SteppedFamily)
    rows, unseen = data.folds(family)[0]
    models = [
        family.fit(params, rows, data.task, 5, 2),
        family.fit_stages([Stage(params, 5, 1), Stage(params, 5, 2)], rows, data.task),
    ]
    for model in models:
        answer = family.predict(model, unseen, data.task)
        assert metric.score(unseen.y, answer) == pytest.approx(expected[1][0], rel=1e-6)


def test_a_target_that_is_not_above_zero_is_taken_as_it_is_and_the_outcome_says_so() -> None:
    data = make_data(skewed().assign(y=lambda frame: frame["y"] - frame["y"].min()), REGRESSION)
    metric = Metric("mae", data.task)
    scores = [
        [step.score for step in train(short("xgboost", target, data), data, metric, 5)] for target in ("log", "plain")
    ]
    assert scores[0] == scores[1]
    notes = [concluded(short("ridge", target, data), data).notes for target in ("log", "plain")]
    assert "target: log is plain here, as a target is not above 0" in texts(notes[0])
    assert "log" not in texts(notes[1])


@pytest.mark.parametrize(
    ("task", "values", "message"),
    [
        ("regression", ["plain", "square"], "target of 'ridge' is 'square'; it is plain or log"),
        ("binary", ["plain", "log"], "only for regression"),
    ],
)
def test_what_is_no_target_is_told_before_the_run(tmp_path: Path, task: str, values: list[str], message: str) -> None:
    make_frame(task).to_csv(tmp_path / "a.csv", index=False)
    model = "ridge" if task == REGRESSION else "logistic"
    space = {"target": {"type": "choice", "values": values}}
    with pytest.raises(DefinitionError, match=message):
        TuneRunner(data=str(tmp_path / "a.csv"), target="y", task=task, models=model, search_space=space).plan()


def test_the_target_does_not_change_while_a_model_grows(tmp_path: Path) -> None:
    skewed().to_csv(tmp_path / "a.csv", index=False)
    space = {"target": {"type": "choice", "values": ["plain", "log"]}}
    runner = TuneRunner(
        data=str(tmp_path / "a.csv"),
        target="y",
        models="xgboost",
        search_space=space,
        algorithm="random",
        scheduler="pbt",
    )
    with pytest.raises(PlanError, match="has none that could change"):
        runner.plan()
