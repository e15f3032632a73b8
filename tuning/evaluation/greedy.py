"""Greedy selection with replacement: which answers score best together on the rows that the folds left out.

Caruana et al., Ensemble selection from libraries of models, ICML 2004. It adds, one pick after another, the answer with
which the mean of all picks scores best, each fold by itself as in a trial's own score. The best of these prefixes
counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from schedulers.direction import worth_of
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import StudyData
from tuning.preprocessing.task import as_prediction

PICKS = 15
AT_ONCE = 1 << 16  # numbers that are scored together; beyond that, calls do not count
MOST_MEMBERS = 5  # different trials: each is fitted twice, saved, and asked for every prediction


def greedy(
    answers: Sequence[np.ndarray],
    scores: Callable[[Sequence[np.ndarray]], list[float]],
    start: int,
    alive: Callable[[], None] = lambda: None,
) -> tuple[list[int], float]:
    """(positions in the order of picks, their mean's score). scores: of answers, larger is better.

    Of equally good ones the first is picked, and of equally good prefixes the shortest is taken.
    """
    picks, total = [start], answers[start].astype(np.float64)
    (best,), length = scores([total]), 1
    while len(picks) < PICKS:
        alive()
        members = set(picks)
        allowed = range(len(answers)) if len(members) < MOST_MEMBERS else sorted(members)
        found = scores([(total + answers[place]) / (len(picks) + 1) for place in allowed])
        highest = max(found)
        chosen = allowed[found.index(highest)]
        picks.append(chosen)
        total = total + answers[chosen]
        if highest > best:
            best, length = highest, len(picks)
    return picks[:length], best


class FoldScores:
    """What the mean scores of answers for the left-out rows of all folds, one after the other, are worth."""

    def __init__(self, data: StudyData, metric: Metric) -> None:
        self.metric, self.task = metric, data.task
        rows = [data.split.search[valid] for _, valid in data.split.folds]
        ends = accumulate(map(len, rows), initial=0)
        weight = data.weight
        self._folds = [
            (slice(*border), data.y[index], None if weight is None else weight[index])
            for border, index in zip(pairwise(ends), rows, strict=True)
        ]

    def __call__(self, answers: Sequence[np.ndarray]) -> list[float]:
        """-inf where the metric is not defined."""
        together = self._at_once(answers)
        return [self._one(answer) for answer in answers] if together is None else [*map(self._mean, together)]

    def _at_once(self, answers: Sequence[np.ndarray]) -> list[list[float]] | None:
        """The score of each answer in each fold; None where they cannot be had together."""
        weighted = any(weight is not None for *_, weight in self._folds)
        if weighted or self.task.classification or sum(map(len, answers)) > AT_ONCE:
            return None
        folds: list[list[float]] = []
        table = np.stack(answers)
        for place, y, _ in self._folds:
            scores = self.metric.scores(y, table[:, place])
            if scores is None:
                return None
            folds.append(scores.tolist())
        return [*map(list, zip(*folds, strict=True))]

    def _one(self, answer: np.ndarray) -> float:
        try:
            return self._mean(
                [
                    self.metric.score(y, as_prediction(answer[place], self.task), weight)
                    for place, y, weight in self._folds
                ]
            )
        except Exception:  # the user's metric, or one that wants more than probabilities
            return -math.inf

    def _mean(self, scores: Sequence[float]) -> float:
        mean = math.fsum(scores) / len(scores)
        # Without the last digits: what is equal but for their noise is a tie, and the first of equals is picked.
        return float(f"{worth_of(mean, self.metric.mode):.12g}") if math.isfinite(mean) else -math.inf
