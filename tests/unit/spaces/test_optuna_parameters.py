"""A space may be a dict of Optuna's distributions, also mixed with Ray Tune's domains."""

from __future__ import annotations

from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from ray import tune

from search_spaces import Choice, Float, Int, SearchSpace


def test_optunas_distributions_are_parameters() -> None:
    space = SearchSpace.parse(
        {
            "lr": FloatDistribution(1e-4, 1.0, log=True),
            "dropout": FloatDistribution(0.0, 0.5, step=0.1),
            "layers": IntDistribution(1, 7, step=2),
            "net": {"kind": CategoricalDistribution(["mlp", None]), "depth": tune.randint(1, 4)},
        }
    )
    assert space == SearchSpace(
        [
            Float("lr", 1e-4, 1.0, log=True),
            Float("dropout", 0.0, 0.5, step=0.1),
            Int("layers", 1, 7, step=2),
            Choice("net__kind", ["mlp", None], nested=("net", "kind")),
            Int("net__depth", 1, 3, nested=("net", "depth")),
        ]
    )
