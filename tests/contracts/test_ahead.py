"""Helpers that train ahead of a study's decisions make no difference to its records, nor does the death of one.

The same study runs in one process, and with helpers that answer in an order that is drawn; the records are compared
field by field.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from local_helpers import LocalLink
from two_families import SPACE, STEPS, models, objective, told

import schedulers
from schedulers import stopping
from search_spaces import Float, SearchSpace, algorithms
from tuning.basics.seeds import trial_seed
from tuning.data.customers import Customer
from tuning.definition.options import Resources
from tuning.errors import StudyError
from tuning.notes import EndCode
from tuning.steps import Step
from tuning.study.build import PlannedStudy
from tuning.study.helpers import HelperPool
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study, StudyTraining
from tuning.study.trial import TrialShape

SCHEDULERS: dict[str, dict[str, Any]] = {
    "pbt": {"name": "pbt", "perturbation_interval": 2},
    "each at its own time": {"name": "pbt", "perturbation_interval": 2, "synch": False},
    "burn-in": {"name": "pbt", "perturbation_interval": 3, "burn_in_period": 4},
    "pb2": {"name": "pb2", "perturbation_interval": 4, "quantile_fraction": 0.1},
    "hyperband": {"name": "hyperband"},
    "halves": {"name": "hyperband", "reduction_factor": 2.0},
    "bohb": {"name": "bohb"},
}
ALGORITHMS: dict[str, Any] = {
    "hyperband": "optuna",
    "halves": "random",
    "bohb": {"name": "bohb", "num_samples": 8},  # of 64, which cost most of these tests' time
    "burn-in": "sobol",
}
TRIALS = {"pb2": 6}
RULES: dict[str, dict[str, Any]] = {
    "none": {},
    "target": {"target": 0.93},
    "all": {"trial_plateau": {"steps": 2, "min_delta": 0.05}, "study_plateau": 9, "study_time": 3600.0, "target": 1.5},
}
WEIGHTS = SearchSpace([Float("x", 0.0, 1.0, default=0.2), Float("y", 0.0, 1.0, default=0.5)])


def train(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
    """Rises with x; what goes wrong is in the configuration, so that it does wherever it is trained."""
    x, kind = float(config["x"]), int(1000 * float(config["x"])) % 20
    if config.get("model") == "folds":
        for fold in range(1, 4):
            yield Step(fold, x + 0.3 * math.sin(17 * x + fold))
        return
    if kind == 3:
        raise ValueError("no such matrix")
    done, weight = state or (0, seed % 7 / 100)
    for step in range(done + 1, config.get("n", STEPS) + 1):
        if step == 4 and kind == 5:
            raise SystemExit(3)
        weight += (1 - weight) * 0.3 * x * (1 - abs(float(config.get("y", 0.4)) - weight))
        now = math.nan if step == 5 and kind == 7 else weight
        yield Step(step, now, (now, now / 2), {"loss": 1 - now}, get_state=lambda at=(step, weight): at)


def study(name: str, space: SearchSpace) -> Study:
    return Study(
        id="acme",
        customer=Customer("acme"),
        algorithm=algorithms.parse(ALGORITHMS.get(name, "random")),
        scheduler=schedulers.parse(SCHEDULERS[name]),
        seed=7,
        space=space,
        n_trials=TRIALS.get(name, 22),
        resources=Resources(),
    )


def searched(
    name: str,
    training: StudyTraining,
    stop: Mapping[str, Any],
    link: LocalLink | None = None,
    space: SearchSpace = SPACE,
) -> tuple[list[dict[str, str]], str]:
    """The study's records, and why it ended early."""
    rules = [rule.build(metric="score", mode="max") for rule in stopping.parse(stop)]
    loop = RecordedStudy(
        PlannedStudy("run", study(name, space), "auc", "max", rules),
        training,
        helpers=None if link is None else HelperPool(link),
    )
    return [told(record) for record in loop], loop.stopped_by


def linked(training: StudyTraining, size: int, **more: Any) -> LocalLink:
    def start(config: Mapping[str, Any], number: int, state: Any) -> Any:
        return training.start(config, trial_seed(7, number), state)

    return LocalLink(start, size, **more)


# Each scheduler with each number of helpers, and with each rule; all with all is slow.
SIZES = {"none": 4, "target": 2, "all": 1}
RULES_AND_SIZES = [
    pytest.param(rule, size, marks=[pytest.mark.slow] * (size != SIZES[rule])) for rule in RULES for size in (1, 2, 4)
]


@pytest.mark.parametrize(("rule", "size"), RULES_AND_SIZES)
@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("made", [models, objective], ids=["models", "objective"])
def test_any_number_of_helpers_finds_what_one_process_finds(made: Any, name: str, rule: str, size: int) -> None:
    space = SPACE if made is models else WEIGHTS
    one = searched(name, made(train), RULES[rule], space=space)
    link = linked(made(train), size, seed=size)
    assert searched(name, made(train), RULES[rule], link, space) == one
    assert link.most_at_once == size, "some helper had nothing to do"


def test_something_goes_wrong_and_something_is_copied_in_what_is_compared() -> None:
    records = [record for name in SCHEDULERS for record in searched(name, objective(train), {}, space=WEIGHTS)[0]]
    reasons = " ".join(str(record["reason"]) for record in records)
    assert all(
        word in reasons for word in ("no such matrix", "SystemExit: 3", "the score is nan", "not among the best")
    )
    assert sum(record["lineage"] != "None" for record in records) > 10


@pytest.mark.parametrize("name", SCHEDULERS)
def test_helpers_that_die_cost_steps_and_change_nothing(name: str) -> None:
    one = searched(name, objective(train), {}, space=WEIGHTS)
    often = linked(objective(train), 4, kills=range(0, 400, 5))
    assert searched(name, objective(train), {}, often, WEIGHTS) == one
    for_good = linked(objective(train), 4, kills=range(2, 9), gone=(1, 2, 3))
    assert searched(name, objective(train), {}, for_good, WEIGHTS) == one


def test_all_helpers_train_at_once_while_the_baseline_does() -> None:
    """A population's first trial is in no one's way: there is nothing to learn from it."""
    link = linked(objective(train), 8)
    searched("pbt", objective(train), {}, link, WEIGHTS)
    assert link.most_at_once == 8


def test_a_killed_helper_costs_the_steps_since_the_last_decision() -> None:
    trained: list[int] = []

    def counting(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
        for step in train({**config, "x": 0.2 + config["x"] / 100}, seed, state):  # nothing goes wrong
            trained.append(step.step)
            yield step

    def steps(**more: Any) -> int:
        trained.clear()
        training = StudyTraining(start=counting, shape=lambda _: TrialShape(STEPS))
        searched("pbt", training, {}, linked(training, 2, **more), WEIGHTS)
        return len(trained)

    whole = steps()
    # The request of the helper that dies is not trained here at all: what the others on it had is what is repeated.
    assert steps(kills=[20]) <= whole
    assert steps(kills=[20, 30, 40]) <= whole + 3 * STEPS


def test_training_that_gives_no_state_or_one_that_cannot_be_sent_says_so_once_it_is_needed() -> None:
    def stateless(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
        for step in range(1, STEPS + 1):
            yield Step(step, config["x"] * step)

    def unsendable(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
        for step in range(1, STEPS + 1):
            yield Step(step, config["x"] * step, get_state=lambda: (each for each in "generator"))

    for start, said in ((stateless, "gives no `Step.get_state`"), (unsendable, "cannot pickle 'generator' object")):
        training = StudyTraining(start=start, shape=lambda _: TrialShape(STEPS))
        with pytest.raises(StudyError, match=said):
            searched("pbt", training, {}, linked(training, 2), WEIGHTS)
        assert len(searched("hyperband", training, {}, linked(training, 2), WEIGHTS)[0]) == 22


def test_a_study_that_cannot_go_on_ends_with_the_same_words() -> None:
    def impossible(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
        yield Step(1, 0.5)
        raise StudyError(EndCode.MORE_STEPS(step=10, steps=9))

    training = StudyTraining(start=impossible, shape=lambda _: TrialShape(STEPS))
    for link in (None, linked(training, 2)):
        with pytest.raises(StudyError, match="the objective yields step 10"):
            searched("hyperband", training, {}, link, WEIGHTS)
