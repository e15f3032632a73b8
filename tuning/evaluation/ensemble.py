"""The trials of a study whose averaged predictions score better than the best one's: greedy selection with replacement.

Caruana et al., Ensemble selection from libraries of models, ICML 2004. It starts with the winner, and adds, one pick
after another, the trial with which the mean of all picks scores best on the rows that the folds left out, each fold by
itself as in a trial's own score. The best of these prefixes counts, and only where it is better than the winner alone.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from schedulers.direction import worth_of
from tuning.evaluation.metrics import Metric
from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.evaluation.study_data import StudyData, train
from tuning.models.pooled import POOL
from tuning.preprocessing.task import as_prediction
from tuning.records.schema import FINISHED, MODEL, TrialRecord

PICKS = 15
AT_ONCE = 1 << 16  # numbers that are scored together; beyond that, calls do not count
POOL_TRIAL = -1
MOST_MEMBERS = 5  # different trials: each is fitted twice, saved, and asked for every prediction


@dataclass(frozen=True)
class Ensemble:
    """What was found together.

    Attributes:
        members: trials, the winner first where it is one of them, each with how often it was picked.
        score: of their mean over the folds, as a trial's `score`.
    """

    members: tuple[tuple[TrialRecord, int], ...]
    score: float

    def to_json(self) -> str:
        """As a study's record holds it."""
        picks = sum(weight for _, weight in self.members)
        return json.dumps(
            [
                {"trial": None if each.family == POOL else each.trial, "family": each.family, "weight": weight / picks}
                for each, weight in self.members
            ]
        )


def find_ensemble(
    records: Sequence[TrialRecord],
    winner: TrialRecord,
    data: StudyData,
    metric: Metric,
    alive: Callable[[], None] = lambda: None,
) -> Ensemble | None:
    """The best ensemble of these finished trials; None where none is better than the winner alone.

    alive: called now and then.
    """
    kept = data.kept
    if kept is None or winner.score is None:
        return None
    best = sorted(filter(_unchanged, records), key=lambda record: (record.loss, record.trial))
    found: list[tuple[TrialRecord, np.ndarray]] = []
    for record in best[: kept.most]:
        alive()
        predictions = _predictions(record, data, metric, kept)
        if predictions is not None:
            found.append((record, np.concatenate(predictions.folds)))
    if len(found) + (data.pooled is not None) < 2 or not found:
        return None
    first = next((record for record, _ in found if record.trial == winner.trial), found[0][0])
    found.sort(key=lambda each: each[0].trial)
    start = next(place for place, (record, _) in enumerate(found) if record is first)
    answers, scores = [answer for _, answer in found], _FoldScores(data, metric)
    if data.pooled is None:
        picks, together = greedy(answers, scores, start, alive)
    else:
        found.append((pool_record(winner), np.concatenate(data.pooled.folds)))
        picks, together = with_one_more(answers, found[-1][1], scores, start, alive)
    if len(set(picks)) < 2 or not together > -winner.loss:
        return None
    members = tuple((found[place][0], times) for place, times in Counter(picks).items())
    return Ensemble(members, worth_of(together, metric.mode))


def left_out(picked: Sequence[tuple[TrialRecord, float]], data: StudyData, metric: Metric) -> np.ndarray | None:
    """What the mean of trials said of the rows that the folds left out, one fold after the other.

    None where that is not kept, or cannot be had again. picked: each with its weight.
    """
    answers = []
    for record, _ in picked:
        folds: Sequence[np.ndarray] = ()
        if record.family == POOL and data.pooled is not None:
            folds = data.pooled.folds
        elif data.kept is not None and _unchanged(record):
            found = _predictions(record, data, metric, data.kept)
            folds = () if found is None else found.folds
        if not folds:
            return None
        answers.append(np.concatenate(folds))
    return np.average(answers, axis=0, weights=[weight for _, weight in picked])


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


def with_one_more(
    answers: Sequence[np.ndarray],
    more: np.ndarray,
    scores: Callable[[Sequence[np.ndarray]], list[float]],
    start: int,
    alive: Callable[[], None] = lambda: None,
) -> tuple[list[int], float]:
    """`greedy` with one more answer, the last one, where that is better than without: it makes no score worse."""
    without = greedy(answers, scores, start, alive)
    with_it = greedy([*answers, more], scores, start, alive)
    return with_it if with_it[1] > without[1] else without


def pool_record(winner: TrialRecord) -> TrialRecord:
    """The run's pool in the place of a trial of the winner's study. It is none, and is recorded by the run."""
    return replace(winner, trial=POOL_TRIAL, family=POOL, config={MODEL: POOL}, best_step=None, score=None, steps=())


def _unchanged(record: TrialRecord) -> bool:
    """Whether a trial may be a member: a full one that is a single configuration's from its first step to its last."""
    return record.state == FINISHED and record.score is not None and not record.lineage


def _predictions(record: TrialRecord, data: StudyData, metric: Metric, kept: KeptPredictions) -> OutOfFold | None:
    """What a trial said of the rows that its folds left out; None where it cannot be had, as it was, any more."""
    found = kept.of(record.config, record.seed)
    if found is None or found.step != record.best_step:
        anew = KeptPredictions(kept.task, kept.mode, most=1)
        try:
            steps = train(record.config, replace(data, kept=anew), metric, record.seed)
            next(step for step in steps if step.step == record.best_step)
        except Exception:  # the user's code; the trial itself is recorded
            return None
        found = anew.of(record.config, record.seed)
    same = found is not None and found.step == record.best_step and found.score == record.score
    return found if same else None


class _FoldScores:
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
