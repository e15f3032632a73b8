"""Population-based training over the built-in families: real models change hands, the others run in full."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data

import schedulers
from search_spaces import Choice, Constant, Float, Int, SearchSpace, algorithms
from tuning.data.customers import Customer
from tuning.definition.options import Resources
from tuning.evaluation.conclusion import conclude
from tuning.evaluation.fixed import FixedMember
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import full_steps, train
from tuning.models.base import SteppedFamily
from tuning.models.registry import family as find_family
from tuning.notes import texts
from tuning.study.build import PlannedStudy
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study, StudyTraining
from tuning.study.trial import TrialShape

SPACE = SearchSpace(
    [
        Choice("model", ["xgboost", "mlp", "ridge"]),
        Float("learning_rate", 0.01, 0.5, log=True, when={"model": "xgboost"}),
        Int("max_depth", 2, 6, when={"model": "xgboost"}),
        Constant("n_estimators", 40, when={"model": "xgboost"}),
        Float("learning_rate_init", 1e-4, 0.1, log=True, when={"model": "mlp"}),
        Int("width", 4, 16, when={"model": "mlp"}),
        Constant("max_iter", 40, when={"model": "mlp"}),
        Float("alpha", 1e-3, 10.0, log=True, when={"model": "ridge"}),
    ]
)


@pytest.fixture(scope="module")
def loop() -> Any:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 3)), columns=["a", "b", "c"])
    frame["y"] = frame["a"] * 2 - np.abs(frame["b"]) + rng.normal(scale=0.1, size=80)
    data = prepare_data(frame, target="y", task="regression", seed=0, split={"folds": 2})
    metric = Metric("r2", data.task)

    def frozen(config: Mapping[str, Any]) -> Any:
        found = find_family(config["model"])
        return found.frozen | {found.length} if isinstance(found, SteppedFamily) else None

    def shape(config: Mapping[str, Any]) -> TrialShape:
        stepped = isinstance(find_family(config["model"]), SteppedFamily)
        return TrialShape(full_steps(config, data), best_prefix=stepped, progress=stepped)

    training = StudyTraining(
        start=lambda config, seed, state: train(config, data, metric, seed, state),
        shape=shape,
        frozen=frozen,
    )

    def build(scheduler: Mapping[str, Any]) -> RecordedStudy:
        study = Study(
            id="s",
            customer=Customer("c"),
            algorithm=algorithms.parse("random"),
            scheduler=schedulers.parse(scheduler),
            seed=1,
            space=SPACE,
            n_trials=14,
            resources=Resources(),
        )
        return RecordedStudy(PlannedStudy("run", study, "r2", "max"), training)

    build.data, build.frame = data, frame
    return build


def test_models_of_every_stepped_family_change_hands(loop: Any) -> None:
    records = list(loop({"name": "pbt", "perturbation_interval": 2}))
    assert {record.state for record in records} == {"finished"}
    families = {record.trial: record.family for record in records}
    taken_over = [record for record in records if record.lineage]
    assert {record.family for record in taken_over} >= {"xgboost", "mlp"}
    assert "ridge" not in {record.family for record in taken_over}
    for record in taken_over:
        steps = [step.step for step in record.steps]
        assert steps == list(range(1, len(steps) + 1))
        assert {families[exploit["donor"]] for exploit in json.loads(record.lineage)} == {record.family}
        schedule = json.loads(record.schedule)
        assert schedule[-1][1] == record.config
        assert len({config.get("width") for _, config in schedule}) == 1
        for _, config in schedule:
            SPACE.check(config)


@pytest.mark.long
def test_a_winner_is_refitted_along_its_schedule(loop: Any) -> None:
    """The way that a record describes, trained again on the folds, gives its scores; on all rows, its model."""
    records = list(loop({"name": "pbt", "perturbation_interval": 1}))
    data, metric = loop.data, Metric("r2", loop.data.task)
    for name in ("xgboost", "mlp"):
        winner = max((r for r in records if r.family == name and r.lineage), key=lambda record: record.score)
        recorded = {step.step: step.score for step in winner.steps}
        stages = FixedMember.of(winner).stages
        assert len(stages) > 1
        state, done = None, 0
        for stage in stages:
            steps = train({"model": name, **stage.config}, data, metric, stage.seed, state)
            for step in itertools.islice(steps, stage.steps - done):
                assert step.score == recorded[step.step]
                assert step.get_state is not None
                state = step.get_state()
            done = stage.steps
        assert done == winner.best_step
        verdict = conclude([winner], data, metric, "c")
        assert "refitted along" in texts(verdict.notes)
        assert verdict.model is not None
        assert np.isfinite(verdict.model.predict(loop.frame)).all()
        # The last configuration alone is another model: what a refit has to follow is the schedule.
        plain = conclude([replace(winner, schedule=None, lineage=None)], data, metric, "c")
        assert verdict.test_score != plain.test_score


def test_each_family_is_a_race_of_its_own(loop: Any) -> None:
    records = list(loop({"name": "hyperband"}))
    assert len(records) == 14
    finished = {record.family for record in records if record.state == "finished"}
    assert finished == {"xgboost", "mlp", "ridge"}
    assert all(str(record.reason).startswith("hyperband: ") for record in records if record.state == "stopped")
