"""What knowing nothing is worth: a constant scored on a study's own folds, and its model where no trial is better.

It is the mean or the median of a target, whichever the metric prefers on the search rows, or the shares of the classes.
It looks at no column, so that it costs microseconds, and is no trial.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from schedulers.direction import worth_of
from tuning.evaluation.fixed import FixedMember
from tuning.evaluation.hold_out_error import hold_out_score
from tuning.evaluation.metrics import Metric
from tuning.evaluation.refit import fitted_member
from tuning.evaluation.study_data import StudyData, parameters_of
from tuning.models.base import EncodedRows
from tuning.models.bounds import GivenBounds, bounds_of
from tuning.models.families.constant import FAMILY
from tuning.models.member import Member
from tuning.preprocessing.columns import to_raw
from tuning.preprocessing.encoding import Encoder, medians
from tuning.preprocessing.task import Prediction, Task
from tuning.records.schema import MODEL, Config

STATISTICS = ("mean", "median")  # of a number to predict; of equally good ones the first


@dataclass(frozen=True)
class ConstantPrediction:
    """A constant fitted on each fold's training rows, and scored like a trial.

    Attributes:
        config: of the family `constant`.
        fold_scores: as a trial's.
        test_score: fitted on the search rows, on the hold-out; None where the metric is not defined there.
    """

    config: Config
    fold_scores: tuple[float, ...]
    test_score: float | None

    @property
    def score(self) -> float:
        """The mean over the folds."""
        return math.fsum(self.fold_scores) / len(self.fold_scores)

    @property
    def what(self) -> str:
        """What it answers, in words."""
        return answer_of(self.config)

    def answers(self, data: StudyData) -> Prediction:
        """Return what it answers to the hold-out rows."""
        return _answer(self.config, data, data.split.search, len(data.split.test))

    def member(self, data: StudyData, *, all_rows: bool) -> Member:
        """Its model, fitted on the rows of the search or on all. It asks for the columns that any model asks for."""
        return fitted_member(FixedMember(self.config, 0), data, all_rows=all_rows)

    def left_out(self, data: StudyData) -> np.ndarray:
        """Its numbers for the rows that the folds leave out, one fold after the other."""
        search = data.split.search
        folds = (_answer(self.config, data, search[train], len(valid)) for train, valid in data.split.folds)
        return np.concatenate([fold.values for fold in folds])


def answer_of(config: Config) -> str:
    """Return what a constant answers, in words."""
    statistic = config.get("strategy")
    return "the shares of the classes" if statistic is None else f"the {statistic} of the target"


def find_constant(data: StudyData, metric: Metric) -> ConstantPrediction | None:
    """Return the best constant; None where the metric is not defined for one."""
    split = data.split
    try:
        config = max(
            _configs(data.task), key=lambda one: _worth(_score(one, data, metric, split.search, split.search), metric)
        )
        folds = [_score(config, data, metric, split.search[train], split.search[valid]) for train, valid in split.folds]
    except (Exception, SystemExit):  # the user's metric, or one that is not defined for constants
        return None
    if not all(map(math.isfinite, folds)) or not math.isfinite(sum(folds)):
        return None
    test_score = None
    with contextlib.suppress(Exception, SystemExit):
        test_score, _ = hold_out_score(_answer(config, data, split.search, len(split.test)), data, metric)
    return ConstantPrediction(config, tuple(folds), test_score)


def constant_of(y: np.ndarray, task: Task, metric: Metric, bounds: GivenBounds) -> Member:
    """Return the constant of some targets, however few, which asks for no column; the best one where the metric tells.

    bounds: as a definition has them.
    """
    rows = EncodedRows(np.empty((len(y), 0)), y)
    within = None if task.classification else bounds_of(rows, bounds)

    def worth(config: Config) -> float:
        try:
            model = FAMILY.fit(parameters_of(config), rows, task, 0)
            return _worth(metric.score(y, FAMILY.predict(model, rows, task)), metric)
        except (Exception, SystemExit):  # the user's metric, or one that is not defined for constants
            return -math.inf

    config = max(_configs(task), key=worth)
    encoder = Encoder(*FAMILY.preprocessing).fit(to_raw(pd.DataFrame(index=range(len(y))), ()))
    fitted = FAMILY.fit(parameters_of(config), rows, task, 0)
    return Member(FAMILY.name, (), encoder, fitted, config=config, bounds=within)


def _configs(task: Task) -> list[Config]:
    if task.classification:
        return [{MODEL: FAMILY.name}]
    return [{MODEL: FAMILY.name, "strategy": statistic} for statistic in STATISTICS]


def _worth(score: float, metric: Metric) -> float:
    """Larger is better, and undefined is the worst."""
    return worth_of(score, metric.mode) if math.isfinite(score) else -math.inf


def _score(config: Config, data: StudyData, metric: Metric, train: np.ndarray, other: np.ndarray) -> float:
    """Of the constant of some rows on others."""
    return data.score(_answer(config, data, train, len(other)), other, metric)


def _answer(config: Config, data: StudyData, train: np.ndarray, rows: int) -> Prediction:
    given = EncodedRows(np.empty((len(train), 0)), data.y[train], data.fit_weight(train))
    if not data.task.classification and data.weight is None:  # what scikit-learn's dummy says, without its checks
        column = given.y.reshape(-1, 1)
        found = medians(column) if config["strategy"] == "median" else np.add.reduce(column) / len(column)
        said = Prediction(values=np.full(rows, found[0]))
    else:
        model = FAMILY.fit(parameters_of(config), given, data.task, 0)
        said = FAMILY.predict(model, EncodedRows(np.empty((rows, 0)), np.zeros(rows)), data.task)
    within = data.bounds_of(given)
    return said if within is None else within.hold(said)
