"""Every model family with every task that it can do, and data for them."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from prepared_rows import prepare_data

from tuning.evaluation.study_data import StudyData
from tuning.models.base import SteppedFamily
from tuning.models.registry import families
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, TASKS

CASES = [(name, task) for name, family in sorted(families().items()) for task in TASKS if task in family.tasks]
STEPPED = [(name, task) for name, task in CASES if isinstance(families()[name], SteppedFamily)]
# A metric that a family without probabilities can be scored with.
PLAIN = {REGRESSION: "neg_mean_absolute_error", BINARY: "roc_auc", MULTICLASS: "accuracy"}


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
