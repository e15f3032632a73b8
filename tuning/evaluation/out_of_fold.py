"""Trials' predictions of the rows that their folds left out, kept while a study runs: what an ensemble is chosen by.

They are in the memory of the process that trains; spread trials leave them in files. Whatever is missing when a study
ends, such as that of trials before a resume, is made again by the same training, which gives the same numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from schedulers.direction import Mode, worth_of
from tuning.models.pooled import PooledMember
from tuning.preprocessing.task import Prediction, Task
from tuning.records.schema import Config, canonical

#: Hears of a step of a trial: its number, its score, and the predictions of each fold's rows.
Watch: TypeAlias = Callable[[int, float, Sequence[Prediction]], None]

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
    """What a form of the run's pool says of a customer's rows.

    member: of the customer's model, fitted on the search rows; final: on all. folds: as of `OutOfFold`. prediction:
    of the hold-out rows.
    """

    member: PooledMember
    final: PooledMember
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
        """Return what hears of a trial's steps from the first one on, and keeps its predictions at the best so far.

        The first of equally good steps counts, as in the trial's record.
        """
        best = worth_of(-math.inf, self.mode)

        def hear(step: int, score: float, predictions: Sequence[Prediction]) -> None:
            nonlocal best
            if not math.isfinite(score) or not worth_of(score, self.mode) > worth_of(best, self.mode):
                return
            best = score
            answers = [each.proba if self.task.classification else each.values for each in predictions]
            folds = tuple(answer.copy() for answer in answers if answer is not None)
            if len(folds) == len(answers):  # else a classifier without probabilities
                self.keep(config, seed, OutOfFold(step, score, folds))

        return hear

    def of(self, config: Config, seed: int) -> OutOfFold | None:
        """Return what is kept of a trial; None where nothing is."""
        return self._kept.get((canonical(config), seed))

    def clear(self) -> None:
        """Let go of everything."""
        self._kept.clear()

    def keep(self, config: Config, seed: int, found: OutOfFold) -> None:
        """Keep what a trial has come to, in place of the worst one where there are too many."""
        self._kept[canonical(config), seed] = found
        if len(self._kept) > self.most:
            del self._kept[min(self._kept, key=lambda each: worth_of(self._kept[each].score, self.mode))]
