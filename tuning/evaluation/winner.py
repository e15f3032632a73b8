"""The winner among recorded trials: only a trial with its full budget can win; of equal ones the earliest does."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tuning.evaluation.baseline import ScoredBaseline
from tuning.evaluation.constant import ConstantPrediction
from tuning.evaluation.ensemble import Ensemble
from tuning.evaluation.fixed import FixedConfiguration
from tuning.models.base import Simpler
from tuning.models.customer_model import CustomerModel
from tuning.notes import EndCode, Note
from tuning.records.gains import gain_over
from tuning.records.schema import FAILED, STOPPED, TrialRecord, best_first

#: The families of a search space in its order, each with what makes its models simpler.
SimpleFirst: TypeAlias = Mapping[str, Simpler]


@dataclass(frozen=True)
class StudyOutcome:
    """A study's winner, or the reason why there is none; scores in the metric's own direction.

    test_score: of `model`, which is the winner's, that of `ensemble`, or `constant` where `is_constant`.
    test_error, gain_error, gain_over_constant_error: the standard errors of `test_score` and of the gains.
    refit_seconds, predict_ms_per_row: wall time in which `model` was fitted on the search rows, and predicted a
    hold-out row. held_back: hold-out rows for which it was held within its bounds; None where nothing holds it.
    own_score, pool_score: of its own members and of the pool, each alone, on the hold-out. These but the errors of
    gains are None where `is_constant`. fixed: what was fitted without a search (`tuning.evaluation.fixed_fit`); there
    is no winner then.
    """

    winner: TrialRecord | None
    baseline: ScoredBaseline | None
    reason: Note | None = None
    test_score: float | None = None
    model: CustomerModel | None = None
    notes: tuple[Note, ...] = ()
    ensemble: Ensemble | None = None
    constant: ConstantPrediction | None = None
    is_constant: bool = False
    test_error: float | None = None
    gain_error: float | None = None
    gain_over_constant_error: float | None = None
    refit_seconds: float | None = None
    predict_ms_per_row: float | None = None
    held_back: int | None = None
    own_score: float | None = None
    pool_score: float | None = None
    fixed: FixedConfiguration | None = None

    @property
    def gain(self) -> float | None:
        """How much better the model's hold-out score is than the baseline's (`gain_over`)."""
        return self._gain_over(None if self.baseline is None else self.baseline.test_score)

    @property
    def gain_over_constant(self) -> float | None:
        """The same against the constant."""
        return self._gain_over(None if self.constant is None else self.constant.test_score)

    def _gain_over(self, score: float | None) -> float | None:
        if self.winner is None or self.test_score is None or score is None:
            return None
        return gain_over(score, self.test_score, self.winner.metric, self.winner.mode)

    @property
    def cv_error(self) -> float | None:
        """Standard error of the winner's score over the folds, or of the constant's where that is the model."""
        if self.constant is not None and self.is_constant:
            return standard_error(self.constant.fold_scores)
        return None if self.winner is None else standard_error(self.winner.fold_scores)


def choose(records: Sequence[TrialRecord], simple_first: SimpleFirst | None = None) -> StudyOutcome:
    """Return the winner by score alone; of equal ones the earliest, so the first trial when nothing is better.

    simple_first: for the rule of one standard error (Breiman et al., Classification and Regression Trees, 1984,
    section 3.4.3): of the trials whose score is within one standard error (over the folds) of the best one's, the
    simplest. That is the family named first, then the one with fewer steps (rounds, trees, epochs), then the one with
    the simpler parameters (a stronger penalty, a smaller depth), then the earliest.
    """
    eligible = best_first(records)
    first = next((record for record in eligible if record.trial == 0), None)
    baseline = None if first is None else ScoredBaseline.of_trial(first)
    if not eligible:
        return StudyOutcome(None, baseline, reason=_why_none(records))
    winner = eligible[0]
    if simple_first is not None:
        most = winner.loss + (standard_error(winner.fold_scores) or 0.0)
        within = [record for record in eligible if record.loss <= most]
        winner = min(within, key=lambda record: _simplicity(record, simple_first))
    return StudyOutcome(winner, baseline)


def standard_error(scores: Sequence[float]) -> float | None:
    """Of the mean of fold scores; None of a single one. Squares of what a target or a metric may hold overflow."""
    count = len(scores)
    if count < 2:
        return None
    mean = math.fsum(score / count for score in scores)
    return math.hypot(*(score - mean for score in scores)) / math.sqrt(count * (count - 1))


def _simplicity(record: TrialRecord, simple_first: SimpleFirst) -> tuple[int, int, tuple[float, ...], int]:
    """Smaller is simpler."""
    family = record.family
    rank = list(simple_first).index(family) if family in simple_first else len(simple_first)
    values = tuple(_complexity(record.config.get(name), direction) for name, direction in simple_first.get(family, ()))
    return (rank, record.best_step or 0, values, record.trial)


def _complexity(value: object, direction: str) -> float:
    """Return a smaller number for a simpler value; what is no number, such as no limit on the depth, is the largest."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.inf
    return -float(value) if direction == "larger" else float(value)


def _why_none(records: Sequence[TrialRecord]) -> Note:
    if not records:
        return EndCode.NO_TRIAL_RUN()
    states = Counter(record.state for record in records)
    reasons = Counter(record.reason for record in records if record.state == FAILED)
    return EndCode.NO_TRIAL_FINISHED(
        trials=len(records),
        failed=states[FAILED],
        stopped=states[STOPPED],
        most_often=reasons.most_common(1)[0][0] if reasons else "",
    )
