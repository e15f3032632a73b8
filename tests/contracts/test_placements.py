"""Where a study's trials run makes no difference to its records.

The same study runs packed (in this process) and spread (each trial's steps come as a worker's reports), one trial at a
time, and the records are compared field by field.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from spread_workers import one_at_a_time
from two_families import SPACE, STEPS, models, objective, told

import schedulers
from schedulers import stopping
from search_spaces import Choice, Int, SearchSpace, algorithms
from tuning.data.customers import Customer
from tuning.definition.options import Resources, WarmStart
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.study.build import PlannedStudy
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study, StudyTraining
from tuning.study.warm_start import evaluated_points, points_to_evaluate

TRIALS = 24

SCHEDULERS: list[dict[str, Any]] = [
    *({"name": name} for name in schedulers.names() if not schedulers.parse(name).pauses),
    {"name": "asha", "brackets": 3},
    {"name": "median", "min_samples_required": 2},
]
SEARCHERS = ["random", "optuna", "hyperopt", "grid"]
RULES: dict[str, dict[str, Any]] = {
    "none": {},
    "target": {"target": 1.3},
    "target of the last trial": {"target": 0.0},
    "study_plateau": {"study_plateau": 5},
    "study_time": {"study_time": 3600.0},
    "trial_plateau": {"trial_plateau": {"steps": 2, "min_delta": 0.05}},
    "all": {"trial_plateau": 3, "study_plateau": 8, "study_time": 3600.0, "target": 1.4},
}
assert set(stopping.names()) <= set(RULES)

GRID = SearchSpace(
    [
        Choice("model", ["stepped", "folds"], default="stepped"),
        Choice("x", [0.0, 0.2, 0.4, 0.7, 1.0], default=0.2),
        Choice("n", [3, 6, STEPS], default=6, when={"model": "stepped"}),
    ]
)


class Trouble:
    """Training code in which every seventh configuration or so goes wrong, each time in another way."""

    KINDS = ("early", "late", "nan", "inf", "empty", "exit", "text")

    def __init__(self, *kinds: str) -> None:
        self.kinds, self.started = kinds, 0

    def __call__(self, config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
        number, self.started = self.started, self.started + 1
        kind = self.kinds[number // 3 % len(self.kinds)] if self.kinds and number % 3 == 2 else ""
        if kind == "early":
            raise ValueError("no such\n   matrix")
        if kind == "empty":
            return
        for step, score in enumerate(curve(config), 1):
            if step == 2 and kind == "late":
                raise RuntimeError("lost " * 200)
            if step == 2 and kind == "exit":
                raise SystemExit(3)
            wrong: dict[str, Any] = {"nan": math.nan, "inf": math.inf, "text": "high"}
            broken = wrong.get(kind) if step == 2 else None
            yield Step(step, score if broken is None else broken, (score, score / 2), {"loss": 1 - score})


def curve(config: Mapping[str, Any]) -> list[float]:
    """Scores that rise, fall or stay where they are, and folds that say nothing about each other."""
    x = float(config["x"])
    if config.get("model") == "folds":
        return [x + 0.3 * math.sin(17 * x + fold) for fold in range(1, 4)]
    top = 2 + int(5 * x)
    return [x + min(step, top) / STEPS - 0.2 * max(0, step - top - 3) for step in range(1, config.get("n", STEPS) + 1)]


@dataclass(frozen=True)
class Case:
    """A study in both placements."""

    algorithm: str
    scheduler: Mapping[str, Any]
    stop: Mapping[str, Any]
    training: Callable[[Callable[..., Iterator[Step]]], StudyTraining] = models
    trouble: tuple[str, ...] = Trouble.KINDS
    mode: str = "max"
    n_trials: int = TRIALS
    warm: tuple[WarmStart, ...] = ()

    @property
    def space(self) -> SearchSpace:
        if self.training is objective:
            return SearchSpace([Choice("x", [0.0, 0.2, 0.4, 0.7, 1.0, 0.3], default=0.2), Int("y", 1, 5, default=1)])
        return GRID if self.algorithm == "grid" else SPACE

    @property
    def study(self) -> Study:
        spec = schedulers.parse(self.scheduler)
        fields: dict[str, Any] = {"id": "acme", "customer": Customer("acme"), "seed": 7}
        fields |= {"space": self.space, "n_trials": self.n_trials, "resources": Resources()}
        return Study(algorithm=algorithms.parse(self.algorithm), scheduler=spec, **fields)

    def rules(self) -> list[Any]:
        return [rule.build(metric="score", mode=self.mode) for rule in stopping.parse(self.stop)]

    def start(self) -> dict[str, Any]:
        points = points_to_evaluate(self.space, entries=self.warm)
        return {"points_to_evaluate": points, "evaluated": evaluated_points(self.warm)}

    def packed(self) -> tuple[list[TrialRecord], str]:
        planned = PlannedStudy("run", self.study, "auc", self.mode, self.rules(), **self.start())
        loop = RecordedStudy(planned, self.training(Trouble(*self.trouble)))
        return list(loop), loop.stopped_by

    def spread(self) -> tuple[list[TrialRecord], str]:
        return one_at_a_time(
            self.study,
            self.training(Trouble(*self.trouble)),
            metric="auc",
            mode=self.mode,
            rules=self.rules(),
            **self.start(),
        )


def compare(case: Case) -> list[TrialRecord]:
    packed, why = case.packed()
    spread, reason = case.spread()
    assert [record.trial for record in packed] == [record.trial for record in spread]
    for one, other in zip(packed, spread, strict=True):
        assert told(one) == told(other)
    assert why == reason
    return packed


def name(value: Any) -> str:
    return "-".join(map(str, value.values())) if isinstance(value, dict) else str(getattr(value, "__name__", value))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=name)
@pytest.mark.parametrize("training", [models, objective], ids=name)
def test_schedulers_and_rules_decide_alike(
    training: Callable[..., StudyTraining], scheduler: Mapping[str, Any], rule: str
) -> None:
    records = compare(Case("random", scheduler, RULES[rule], training))
    assert rule != "none" or {record.state for record in records} >= {"finished", "failed"}


@pytest.mark.parametrize("algorithm", SEARCHERS)
@pytest.mark.parametrize("scheduler", ["asha", "fifo"])
@pytest.mark.parametrize("training", [models, objective], ids=name)
def test_searchers_hear_the_same(algorithm: str, scheduler: str, training: Callable[..., StudyTraining]) -> None:
    """Whatever one of them learns too much or too little shows in what it proposes next."""
    records = compare(Case(algorithm, {"name": scheduler}, RULES["trial_plateau"], training))
    assert len(records) == (20 if algorithm == "grid" and training is models else 24)


@pytest.mark.parametrize("kind", Trouble.KINDS)
@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=name)
def test_failures_are_recorded_alike(scheduler: Mapping[str, Any], kind: str) -> None:
    records = compare(Case("optuna", scheduler, {}, trouble=(kind,), mode="min"))
    failed = [record for record in records if record.state == "failed"]
    assert 0 < len(failed) <= TRIALS // 3
    assert all(record.reason for record in failed)


@pytest.mark.parametrize("scheduler", SCHEDULERS, ids=name)
def test_warm_started_studies_are_recorded_alike(scheduler: Mapping[str, Any]) -> None:
    given = tuple(WarmStart(config={"model": "folds", "x": x}) for x in (0.9, 0.1))
    known = (WarmStart(config={"model": "stepped", "x": 0.8, "n": 4}, score=1.2),)
    records = compare(Case("optuna", scheduler, {}, warm=given + known))
    assert [record.config["x"] for record in records[:3]] == [0.2, 0.9, 0.1]


def test_a_target_that_the_last_trial_reaches_is_named_in_both() -> None:
    case = Case("random", {"name": "fifo"}, {}, trouble=(), n_trials=6)
    scores = [record.score for record in case.packed()[0]]
    last = Case("random", {"name": "fifo"}, {"target": scores[0]}, trouble=(), n_trials=1)
    compare(last)
    assert str(last.packed()[1]).startswith("target: trial 00000 reached")
