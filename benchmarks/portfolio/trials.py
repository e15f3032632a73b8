"""What every candidate comes to on a table: its loss by cross-validation, and what that cost."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.quality.sets import TARGET
from search_spaces import presets
from tuning.definition.definition import define
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import study_data, train
from tuning.models.base import SteppedFamily
from tuning.planning.model_space import parameters_by_model, space_of
from tuning.planning.portfolios.learning import Cell
from tuning.preprocessing.task import REGRESSION
from tuning.records.schema import Config, canonical

DRAWS = 5  # of each family, beside its default and the settings below
#: What people take who know these models.
KNOWN_GOOD: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "xgboost": (
        {"learning_rate": 0.05, "max_depth": 4, "subsample": 0.8, "colsample_bytree": 0.8},
        {"learning_rate": 0.1, "max_depth": 3, "subsample": 0.8, "colsample_bytree": 0.8, "min_child_weight": 3.0},
        {"learning_rate": 0.1, "max_depth": 6, "subsample": 0.8, "colsample_bytree": 0.6},
    ),
    "lightgbm": (
        {"learning_rate": 0.05, "num_leaves": 8, "min_child_samples": 5, "subsample": 0.8, "colsample_bytree": 0.8},
        {"learning_rate": 0.1, "num_leaves": 16, "min_child_samples": 5, "colsample_bytree": 0.6},
    ),
    "hist_gradient_boosting": (
        {"learning_rate": 0.05, "max_leaf_nodes": 8, "min_samples_leaf": 5},
        {"learning_rate": 0.1, "max_leaf_nodes": 15, "min_samples_leaf": 5, "max_features": 0.6},
    ),
    "extra_trees": (
        {"max_features": 1.0, "min_samples_leaf": 3},
        {"max_features": "sqrt", "min_samples_leaf": 1},
        {"max_features": 0.5, "min_samples_leaf": 2},
    ),
    "catboost": (
        {"learning_rate": 0.05, "depth": 6},
        {"learning_rate": 0.1, "depth": 4},
        {"learning_rate": 0.03, "depth": 6},
        {"learning_rate": 0.1, "depth": 3},
    ),
}


def candidates(task: str) -> list[Config]:
    """Complete configurations: of each default family its own default, the known good ones, and
    draws from its preset. The optional families must be installed."""
    found: dict[str, Config] = {}
    for family in parameters_by_model(space_of(None, (), task)):
        space = presets.load(family, task)
        rng = np.random.default_rng(zlib.crc32(f"{family}{task}".encode()))
        known = [space.complete({"model": family, **point}) for point in KNOWN_GOOD.get(family, ())]
        for config in (space.default(), *known, *(space.sample(rng) for _ in range(DRAWS))):
            found.setdefault(canonical(config), config)
    return list(found.values())


def evaluate(name: str, rows: pd.DataFrame, task: str, configs: Sequence[Config]) -> dict[str, Cell]:
    """By configuration its loss (root mean squared error, log loss) over three folds of four fifths of the rows, at
    its best step, and CPU seconds; without those that failed."""
    seed = zlib.crc32(name.encode())
    data = study_data(rows, define({"data": "x", "target": TARGET}), task, seed)
    metric = Metric("rmse" if task == REGRESSION else "log_loss", data.task)
    found: dict[str, Cell] = {}
    for number, config in enumerate(configs):
        began = time.thread_time()
        try:
            scores = [step.score for step in train(config, data, metric, seed + number)]
        except Exception:  # a candidate that cannot do these rows has no cell
            continue
        stepped = isinstance(data.family(config["model"]), SteppedFamily)
        found[canonical(config)] = Cell(min(scores) if stepped else scores[-1], time.thread_time() - began)
    return found


def config_of(name: str) -> Config:
    """The configuration that a cell stands for."""
    config: Config = json.loads(name)
    return config
