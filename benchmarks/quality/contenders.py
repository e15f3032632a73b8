"""The contenders, each in a process of its own:

    python -m benchmarks.quality.contenders NAME ROUNDS ANSWERS [SECONDS]

ROUNDS and ANSWERS are pickles that this benchmark writes and reads itself. A contender sees the given rows and the
features of the unseen ones. FLAML and MLJAR get SECONDS per customer: what ours took.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from benchmarks.quality import defaults, rivals, tools
from benchmarks.quality.rounds import Answers, Round

OURS = (5, 8, 10, 20, 50)
REFERENCE = "ours_20"
#: What a part of ours is worth: a run without it, or with it.
VARIANTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "ours_20_no_portfolio": ("ours, 20 trials, without the portfolio", {"portfolio": "none"}),
    "ours_20_no_ensemble": ("ours, 20 trials, without the ensemble", {"ensemble": "none"}),
    "ours_20_pool": ("ours, 20 trials, with the pool", {"pool": "on"}),
    "ours_20_no_pool": ("ours, 20 trials, without the pool", {"pool": "off"}),
}
Run: TypeAlias = Callable[[Sequence[Round], float], Answers]


@dataclass(frozen=True)
class Contender:
    """title: for tables. run: answers of all rounds, for (rounds, seconds per customer). missing: what it needs and is
    not here, empty where nothing is."""

    name: str
    title: str
    run: Run
    missing: str = ""


def _each(answer: Callable[[Round], np.ndarray]) -> Run:
    return lambda rounds, _: Answers({one.key: answer(one) for one in rounds})


def _one(answer: Callable[[Round], np.ndarray]) -> Run:
    return lambda rounds, _: defaults.of_all(answer, rounds)


def _rival(tool: str, title: str, limit: float | None = None) -> Contender:
    """With the seconds that ours took, or with a limit of its own."""
    return Contender(tool, title, lambda found, seconds: rivals.rival(tool, found, limit or seconds), rivals.missing())


def _without(package: str) -> str:
    return "" if find_spec(package) else f"{package} is not installed"


def _ours(keys: Mapping[str, Any]) -> Run:
    return lambda rounds, _: tools.ours(rounds, {"trials": 20, **keys})


def contenders() -> dict[str, Contender]:
    """All of them, in the order of tables."""
    linear = partial(defaults.linear, scoring="neg_log_loss")
    found = (
        *(Contender(f"ours_{trials}", f"ours, {trials} trials", _ours({"trials": trials})) for trials in OURS),
        *(Contender(name, title, _ours(keys)) for name, (title, keys) in VARIANTS.items()),
        Contender("linear", "ridge or logistic regression, built-in CV", _each(defaults.linear)),
        Contender("random_forest", "random forest, defaults", _each(defaults.forest)),
        Contender("extra_trees", "extra trees, defaults", _each(defaults.extra_trees)),
        Contender("hist_boosting", "histogram boosting, defaults", _each(defaults.hist_boosting)),
        Contender("xgboost", "XGBoost, defaults", _each(defaults.xgboost)),
        Contender("lightgbm", "LightGBM, defaults", _each(defaults.lightgbm), _without("lightgbm")),
        Contender("catboost", "CatBoost, defaults", _each(defaults.catboost), _without("catboost")),
        Contender("vote", "vote of linear, forest, extra trees, two boosters", _each(defaults.vote)),
        Contender("halving", "HalvingRandomSearchCV over histogram boosting", _each(defaults.halving)),
        Contender(
            "flaml",
            "FLAML, the CPU seconds of ours with 20 trials",
            lambda rounds, seconds: Answers({one.key: tools.flaml(one, seconds) for one in rounds}),
            _without("flaml"),
        ),
        _rival("mljar", "MLJAR, the CPU seconds of ours with 20 trials"),
        _rival("autogluon_medium", "AutoGluon `medium`, 30 s at most", 30.0),
        _rival("autogluon_best", "AutoGluon `best`, 30 s at most", 30.0),
        Contender("one_linear", "one linear model of all rows, the customer as a column, CV", _one(linear)),
        Contender(
            "one_catboost",
            "one CatBoost of all rows, defaults, the customer as a column",
            _one(defaults.catboost),
            _without("catboost"),
        ),
        Contender("nothing", "the median, or the shares of the classes", _each(defaults.nothing)),
    )
    return {contender.name: contender for contender in found}


def main(name: str, given: str, wanted: str, seconds: str = "1") -> None:
    warnings.simplefilter("ignore")
    rounds = pickle.loads(Path(given).read_bytes())
    Path(wanted).write_bytes(pickle.dumps(contenders()[name].run(rounds, float(seconds))))


if __name__ == "__main__":
    main(*sys.argv[1:])
