"""What may change during training follows from the search space and the model family."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import schedulers
from search_spaces import Choice, Constant, Float, Int, SearchSpace, algorithms, presets
from tuning.data.customers import Customer
from tuning.definition.options import Resources
from tuning.models.base import SteppedFamily
from tuning.models.registry import families
from tuning.steps import Step
from tuning.study.build import PlannedStudy
from tuning.study.mutations import longest, mutations
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study, StudyTraining
from tuning.study.trial import TrialShape


def names(found: schedulers.Mutations) -> list[str]:
    return [parameter.path[-1] for parameter in found.parameters]


def test_only_parameters_of_the_race_that_nothing_hangs_on_change() -> None:
    space = SearchSpace(
        [
            Choice("model", ["svm", "mlp"]),
            Float("alpha", 1e-6, 1.0, log=True, when={"model": "mlp"}),
            Float("alpha", 0.0, 9.0, when={"model": "svm"}),
            Choice("kernel", ["rbf", "linear"], when={"model": "svm"}),
            Float("gamma", 0.1, 1.0, when={"model": "svm", "kernel": "rbf"}),
            Int("width", 8, 64, step=8, when={"model": "mlp"}),
            Int("batch_size", 16, 64, step=16, when={"model": "mlp"}),
            Constant("epochs", 10, when={"model": "mlp"}),
            Int("seed", 3, 3),
        ]
    )
    mlp = mutations(space, {"model": "mlp"}, {"width"}, "model")
    assert names(mlp) == ["alpha", "batch_size"]
    assert [parameter.when for parameter in mlp.parameters] == [{}, {}]
    svm = mutations(space, {"model": "svm"}, (), "model")
    assert names(svm) == ["alpha", "gamma"]
    assert dict(svm.parameters[1].when) == {"kernel": ("rbf",)}


def test_varied_configurations_of_every_preset_are_in_the_space() -> None:
    rng, draws = random.Random(0), __import__("numpy").random.default_rng(0)
    tried = 0
    for name, family in families().items():
        if not isinstance(family, SteppedFamily) or name not in presets.names():
            continue
        space = presets.load(name)
        for _ in range(30):
            config = space.sample(draws)
            found = mutations(space, config, family.frozen, "model")
            varied = found.vary(config, 0.25, (1.2, 0.8), rng)
            space.check(varied)
            tried += varied != config
            assert all(varied[name] == config[name] for name in family.frozen if name in config)
    assert tried > 100


def test_constraints_go_along() -> None:
    space = SearchSpace(
        [Float("x", 0.0, 1.0), Float("y", 0.0, 1.0)], constraints=[lambda config: config["x"] <= config["y"]]
    )
    found = mutations(space, {"x": 0.2, "y": 0.4}, (), "model")
    rng, config = random.Random(0), {"x": 0.2, "y": 0.4}
    for _ in range(100):
        config = found.vary(config, 0.25, (1.2, 0.8), rng)
        assert config["x"] <= config["y"]


def test_a_race_is_as_long_as_its_longest_trial() -> None:
    space = SearchSpace(
        [
            Choice("model", ["forest", "mlp", "ridge", "sgd"]),
            Int("n", 10, 90, default=10, when={"model": "forest"}),
            Choice("n", [5, 40, 20], when={"model": "mlp"}),
            Constant("n", 7, when={"model": "sgd"}),
        ]
    )
    found = {name: longest(space, {"model": name}, "n", "model") for name in ("forest", "mlp", "sgd", "ridge")}
    assert {name: config.get("n") for name, config in found.items()} == {
        "forest": 90,
        "mlp": 40,
        "sgd": 7,
        "ridge": None,
    }


@pytest.mark.parametrize("scheduler", ["asha", "hyperband", "median", "fifo"])
def test_trials_longer_than_the_first_one_run_to_their_own_end(scheduler: str) -> None:
    """Trial 0 has two steps here and others up to nine: rungs are those of nine, and each may end at its own length."""

    def start(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
        for step in range((state or 0) + 1, config["n"] + 1):
            yield Step(step, config["n"] + step / 100, get_state=lambda step=step: step)

    space = SearchSpace([Int("n", 2, 9, default=2), Float("x", 0.0, 1.0)])
    training = StudyTraining(
        start,
        lambda config: TrialShape(int(config["n"]), best_prefix=True, progress=True),
        longest=lambda config: longest(space, config, "n", "model"),
    )
    assert training.cohort_steps({"n": 2}) == 9
    study = Study(
        id="s",
        customer=Customer("c"),
        algorithm=algorithms.parse("random"),
        scheduler=schedulers.parse(scheduler),
        seed=1,
        space=space,
        n_trials=30,
        resources=Resources(),
    )
    records = list(RecordedStudy(PlannedStudy("run", study, "score", "max"), training))
    assert len(records) == 30
    for record in records:
        assert (record.state == "finished") == (len(record.steps) == record.config["n"])
    assert max(len(record.steps) for record in records) == 9
    assert any(2 < record.config["n"] < 9 for record in records if record.state == "finished")


@pytest.mark.parametrize(("high", "step"), [(0.3, 0.1), (0.1 * 3, 0.1), (1.0, 1 / 3), (2 * math.pi, math.pi / 6)])
def test_the_highest_step_can_be_reached(high: float, step: float) -> None:
    space = SearchSpace([Float("x", 0.0, high, step=step)])
    (parameter,) = mutations(space, space.default(), (), "model").parameters
    rng = random.Random(0)
    values = [parameter.sample(rng) for _ in range(200)]
    assert max(values) == pytest.approx(high)
    below = sorted({*values})[-2]
    assert parameter.perturb(below, 1.2, rng) == pytest.approx(high)
    assert all(space.contains({"x": value}) for value in values)
