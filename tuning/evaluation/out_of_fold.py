"""Trials' predictions of the rows that their folds left out, kept while a study runs: what an ensemble is chosen by.

They are in the memory of the process that trains; spread trials leave them in files. Whatever is missing when a study
ends, such as that of trials before a resume, is made again by the same training, which gives the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from schedulers.direction import Mode, worth_of
from tuning.models.pooled import PooledMember
from tuning.preprocessing.task import Prediction, Task
from tuning.records.schema import Config, canonical

MOST_TRIALS = 20
MOST_BYTES = 64 * 2**20  # of one study; with very many rows and classes fewer trials are kept
BYTES = np.dtype(np.float64).itemsize


@dataclass(frozen=True)
class OutOfFold:
    """What a trial said at the step that counts.

    step: that step. score: there. folds: of each fold the numbers (n,) or probabilities (n, classes).
    """

    step: int
    score: float
    folds: tuple[np.ndarray, ...]


@dataclass(frozen=True)
class PooledAnswers:
    """What the run's pool says of a customer's rows.

    member: of the customer's model. folds: as of `OutOfFold`. prediction: of the hold-out rows.
    """

    member: PooledMember
    folds: tuple[np.ndarray, ...]
    prediction: Prediction


@dataclass
class KeptPredictions:
    """Those of the best trials of a study.

    task: what is predicted. mode: the metric's better direction. most: how many trials are kept.
    """

    task: Task
    mode: Mode
    most: int
    _kept: dict[tuple[str, int], OutOfFold] = field(default_factory=dict)

    @classmethod
    def of_rows(cls, rows: int, task: Task, mode: Mode) -> KeptPredictions:
        """With a number of trials that only depends on the data. rows: of all folds together."""
        size = max(1, rows * max(1, len(task.classes)) * BYTES)
        return cls(task, mode, min(MOST_TRIALS, MOST_BYTES // size))

    def watch(self, config: Config, seed: int) -> Watch:
        """Hears of a trial's steps from the first one on."""
        return Watch(self, (canonical(config), seed))

    def of(self, config: Config, seed: int) -> OutOfFold | None:
        """What is kept of a trial; None where nothing is."""
        return self._kept.get((canonical(config), seed))

    def clear(self) -> None:
        """Let go of everything."""
        self._kept.clear()

    def better(self, score: float, other: float) -> bool:
        """Whether a score is better than another one."""
        return worth_of(score, self.mode) > worth_of(other, self.mode)

    def keep(self, config: Config, seed: int, found: OutOfFold) -> None:
        """Take in what was kept elsewhere."""
        self.replace((canonical(config), seed), found)

    def replace(self, key: tuple[str, int], found: OutOfFold) -> None:
        """Take in what a trial has come to, in place of the worst one where there are too many."""
        self._kept[key] = found
        if len(self._kept) > self.most:
            del self._kept[min(self._kept, key=lambda each: worth_of(self._kept[each].score, self.mode))]


class Watch:
    """Keeps what a trial says at its best step so far; the first of equally good ones counts, as in its record."""

    __slots__ = ("_best", "_kept", "_key")

    def __init__(self, kept: KeptPredictions, key: tuple[str, int]) -> None:
        self._kept, self._key = kept, key
        self._best = worth_of(-math.inf, kept.mode)

    def __call__(self, step: int, score: float, predictions: Sequence[Prediction]) -> None:
        """A step's score and what was said of each fold's rows."""
        if not math.isfinite(score) or not self._kept.better(score, self._best):
            return
        self._best = score
        answers = [each.proba if self._kept.task.classification else each.values for each in predictions]
        folds = tuple(answer.copy() for answer in answers if answer is not None)
        if len(folds) == len(answers):  # else a classifier without probabilities
            self._kept.replace(self._key, OutOfFold(step, score, folds))
