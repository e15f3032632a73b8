"""What may change during training follows from the search space and the model family."""

from __future__ import annotations

import random

import schedulers
from search_spaces import Choice, Constant, Float, Int, SearchSpace, presets
from tuning.models import families
from tuning.models.base import SteppedFamily
from tuning.mutations import mutations


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
