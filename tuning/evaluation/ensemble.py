"""The trials of a study whose averaged predictions score better than the best one's: greedy selection with replacement.

Caruana et al., Ensemble selection from libraries of models, ICML 2004. It starts with the winner, and adds, one pick
after another, the trial with which the mean of all picks scores best on the rows that the folds left out, each fold by
itself as in a trial's own score. The best of these prefixes counts, and only where it is better than the winner alone.
With a pool, the customer's own picks together are one answer among those of the pool's forms (`fleet`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from schedulers.direction import worth_of
from tuning.evaluation.fleet import LEAST, best_weights, drawn_weights
from tuning.evaluation.greedy import FoldScores, greedy
from tuning.evaluation.metrics import Metric, proper_metric
from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.evaluation.study_data import StudyData, train
from tuning.models.pooled import LINEAR_POOL, OWN, POOL, POOL_FORMS
from tuning.records.schema import FINISHED, MODEL, TrialRecord

POOL_TRIALS = {POOL: -1, LINEAR_POOL: -2}  # in place of a trial's number


@dataclass(frozen=True)
class Ensemble:
    """What was found together.

    Attributes:
        members: trials and forms of the pool, the winner first where it is one of them, each with its weight.
        score: of their mean over the folds, as a trial's `score`.
    """

    members: tuple[tuple[TrialRecord, float], ...]
    score: float

    def to_json(self) -> str:
        """As a study's record holds it."""
        total = sum(weight for _, weight in self.members)
        return json.dumps(
            [
                {
                    "trial": None if each.family in POOL_FORMS else each.trial,
                    "family": each.family,
                    "weight": weight / total,
                }
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
    """The best ensemble of these finished trials and of the run's pool; None where the winner alone is no worse.

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
    if len(found) + len(data.pooled) < 2 or not found:
        return None
    first = next((record for record, _ in found if record.trial == winner.trial), found[0][0])
    found.sort(key=lambda each: each[0].trial)
    answers, scores = [answer for _, answer in found], FoldScores(data, metric)
    start = next(place for place, (record, _) in enumerate(found) if record is first)
    least = -winner.loss
    if (proper := proper_metric(metric, data.rarest_rows)) is not metric:
        scores = FoldScores(data, proper)
        alone = scores(answers)
        least, start = alone[start], alone.index(max(alone))
    picks, together = greedy(answers, scores, start, alive)
    if not data.pooled and ((len(set(picks)) < 2 and found[start][0] is first) or not together > least):
        return None
    chosen = [(*found[place], times / len(picks)) for place, times in Counter(picks).items()]
    if data.pooled:
        chosen = _with_pool(chosen, winner, data, scores)
    weights = [weight for *_, weight in chosen]
    (score,) = FoldScores(data, metric)([np.average([answer for _, answer, _ in chosen], axis=0, weights=weights)])
    if not math.isfinite(score) or (len(chosen) == 1 and chosen[0][0].trial == winner.trial):
        return None
    return Ensemble(tuple((record, weight) for record, _, weight in chosen), worth_of(score, metric.mode))


def _with_pool(
    own: Sequence[tuple[TrialRecord, np.ndarray, float]], winner: TrialRecord, data: StudyData, scores: FoldScores
) -> list[tuple[TrialRecord, np.ndarray, float]]:
    """Return a customer's own trials and the forms of the pool, each with its answer and its weight."""
    pooled = [(pool_record(winner, each.member.family), np.concatenate(each.folds)) for each in data.pooled]
    mean = np.average([answer for _, answer, _ in own], axis=0, weights=[weight for *_, weight in own])
    weights = best_weights([mean, *(answer for _, answer in pooled)], scores)
    if data.pool is not None and data.pool.weights:
        fleet = np.array([data.pool.weights.get(name, 0.0) for name in (OWN, *(each.family for each, _ in pooled))])
        weights = drawn_weights(weights, fleet, len(data.split.search))
    shares = weights.tolist()
    every = [(record, answer, weight * shares[0]) for record, answer, weight in own]
    every += [(record, answer, share) for (record, answer), share in zip(pooled, shares[1:], strict=True)]
    total = sum(weight for *_, weight in every if weight >= LEAST)
    return [(record, answer, weight / total) for record, answer, weight in every if weight >= LEAST]


def left_out(picked: Sequence[tuple[TrialRecord, float]], data: StudyData, metric: Metric) -> np.ndarray | None:
    """What the mean of trials said of the rows that the folds left out, one fold after the other.

    None where that is not kept, or cannot be had again. picked: each with its weight.
    """
    answers = []
    for record, _ in picked:
        folds: Sequence[np.ndarray] = ()
        if (pooled := data.pooled_form(record.family)) is not None:
            folds = pooled.folds
        elif data.kept is not None and _unchanged(record):
            found = _predictions(record, data, metric, data.kept)
            folds = () if found is None else found.folds
        if not folds:
            return None
        answers.append(np.concatenate(folds))
    return np.average(answers, axis=0, weights=[weight for _, weight in picked])


def pool_record(winner: TrialRecord, form: str) -> TrialRecord:
    """A form of the pool in the place of a trial of the winner's study. It is none, and is recorded by the run."""
    return replace(
        winner, trial=POOL_TRIALS[form], family=form, config={MODEL: form}, best_step=None, score=None, steps=()
    )


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
