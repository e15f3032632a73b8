"""Every model family with every task that it can do, and data for them."""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from prepared_rows import prepare_data

from tuning.evaluation.study_data import StudyData
from tuning.models.base import Stage, SteppedFamily
from tuning.models.registry import families
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, TASKS

CASES = [(name, task) for name, family in sorted(families().items()) for task in TASKS if task in family.tasks]
STEPPED = [(name, task) for name, task in CASES if isinstance(families()[name], SteppedFamily)]
# A metric that a family without probabilities can be scored with.
PLAIN = {REGRESSION: "mae", BINARY: "roc_auc", MULTICLASS: "accuracy"}

# What an exploit of population based training changes; a new stepped family adds a row.
CHANGED: dict[str, dict[str, Any]] = {
    "catboost": {"learning_rate": 0.01},
    "extra_trees": {"max_depth": 1},
    "hist_gradient_boosting": {"learning_rate": 0.01},
    "lightgbm": {"learning_rate": 0.01},
    "mlp": {"learning_rate_init": 0.1},
    "sgd": {"penalty": "l1", "alpha": 0.3},
    "random_forest": {"max_depth": 1},
    "xgboost": {"learning_rate": 0.01},
    "xgboost_ray": {"learning_rate": 0.01},
}


def make_frame(task: str, rows: int = 120, seed: int = 0) -> pd.DataFrame:
    """Numbers with holes, a text column with a rare value and holes, and a target that depends on both."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    colour = rng.choice(["red", "green", "blue"], rows).astype(object)
    effect = pd.Series(colour).map({"red": -1.5, "green": 0.0, "blue": 1.5}).to_numpy(dtype=float)
    signal = 2 * x[:, 0] - x[:, 1] + effect + rng.normal(scale=0.3, size=rows)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "noise": x[:, 2] * 1e6, "colour": colour})
    frame.loc[rng.choice(rows, rows // 10, replace=False), "b"] = np.nan
    frame.loc[rng.choice(rows, rows // 10, replace=False), "colour"] = None
    frame.loc[0, "colour"] = "octarine"
    if task == REGRESSION:
        frame["y"] = 5000 + 100 * signal
    elif task == BINARY:
        frame["y"] = np.where(signal > np.median(signal), "yes", "no")
    else:
        frame["y"] = pd.qcut(signal, 3, labels=["low", "mid", "high"]).astype(str)
    return frame


def make_data(frame: pd.DataFrame, task: str, folds: int = 2) -> StudyData:
    return prepare_data(frame, target="y", task=task, seed=3, split={"folds": folds})


@cache
def data_of(task: str) -> StudyData:
    """Shared by the tests, as a worker's trials share it: so a family that spoils it fails some test."""
    return make_data(make_frame(task), task)


def file_digests(backwards: bool = False) -> dict[str, str]:
    """The SHA-256 of each family's file, fitted and grown along two stages."""
    found = {}
    for name, task in CASES[:: -1 if backwards else 1]:
        data, family = data_of(task), families()[name]
        rows = data.whole(family)[1]
        models = {"fit": family.fit({}, rows, data.task, 5, 2)}
        if isinstance(family, SteppedFamily):
            models["stages"] = family.fit_stages([Stage({}, 5, 1), Stage(CHANGED[name], 6, 2)], rows, data.task)
        for way, model in models.items():
            file, content = family.save(model)
            found[f"{name} {task} {way} {file}"] = hashlib.sha256(content).hexdigest()
    return found
