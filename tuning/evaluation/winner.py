"""Choosing a study's winner from its records, refitting it, and scoring it once on the hold-out rows.

Only a trial with its full budget can win. The baseline (trial 0) is scored beside it, so that what the search has
gained is always known; it is kept when nothing is better on cross-validation.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from tuning.evaluation.metrics import Metric, score_range
from tuning.evaluation.study_data import StudyData
from tuning.models.base import Matrix, Model, Simpler, Stage, SteppedFamily
from tuning.models.customer_model import ALL_ROWS, CustomerModel
from tuning.records.schema import FAILED, FINISHED, STOPPED, Config, TrialRecord
from tuning.seeds import trial_seed

BELIEVABLE_ROWS = 50  # with fewer rows, folds without a single error are no surprise
#: The families of a search space in its order, each with what makes its models simpler.
SimpleFirst: TypeAlias = Mapping[str, Simpler]


@dataclass(frozen=True)
class StudyOutcome:
    """A study's winner, or the reason why there is none; scores in the metric's own direction."""

    winner: TrialRecord | None
    baseline: TrialRecord | None
    reason: str = ""
    test_score: float | None = None
    baseline_test_score: float | None = None
    model: CustomerModel | None = None
    notes: str | None = None

    @property
    def gain(self) -> float | None:
        """Winner's hold-out score minus the baseline's; positive is better whatever the direction."""
        if self.winner is None or self.test_score is None or self.baseline_test_score is None:
            return None
        difference = self.test_score - self.baseline_test_score
        return difference if self.winner.mode == "max" else -difference

    @property
    def cv_error(self) -> float | None:
        """Standard error of the winner's score over the folds."""
        return None if self.winner is None else standard_error(self.winner.fold_scores)


def choose(records: Sequence[TrialRecord], simple_first: SimpleFirst | None = None) -> StudyOutcome:
    """The winner by score alone; of equal ones the earliest, so the baseline when nothing is better.

    simple_first: for the rule of one standard error (Breiman et al., Classification and Regression Trees, 1984,
    section 3.4.3): of the trials whose score is within one standard error (over the folds) of the best one's, the
    simplest. That is the family named first, then the one with fewer steps (rounds, trees, epochs), then the one with
    the simpler parameters (a stronger penalty, a smaller depth), then the earliest.
    """
    eligible = [record for record in records if record.state == FINISHED and record.score is not None]
    baseline = next((record for record in eligible if record.trial == 0), None)
    if not eligible:
        return StudyOutcome(None, baseline, reason=_why_none(records))
    sign = 1.0 if eligible[0].mode == "max" else -1.0
    winner = max(eligible, key=lambda record: (sign * (record.score or 0.0), -record.trial))
    if simple_first is not None:
        least = sign * (winner.score or 0.0) - (standard_error(winner.fold_scores) or 0.0)
        within = [record for record in eligible if sign * (record.score or 0.0) >= least]
        winner = min(within, key=lambda record: _simplicity(record, simple_first))
    return StudyOutcome(winner, baseline)


def standard_error(scores: Sequence[float]) -> float | None:
    """Of the mean of fold scores; None of a single one."""
    if len(scores) < 2:
        return None
    mean = math.fsum(scores) / len(scores)
    variance = math.fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)
    return math.sqrt(variance / len(scores))


def _simplicity(record: TrialRecord, simple_first: SimpleFirst) -> tuple[int, int, tuple[float, ...], int]:
    """Smaller is simpler."""
    family = record.family
    rank = list(simple_first).index(family) if family in simple_first else len(simple_first)
    values = tuple(_complexity(record.config.get(name), direction) for name, direction in simple_first.get(family, ()))
    return (rank, record.best_step or 0, values, record.trial)


def _complexity(value: object, direction: str) -> float:
    """What is no number (no limit on the depth, a rule of the library) is the most complex value."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.inf
    return -float(value) if direction == "larger" else float(value)


def conclude(
    records: Sequence[TrialRecord],
    data: StudyData,
    metric: Metric,
    customer: str,
    simple_first: SimpleFirst | None = None,
) -> StudyOutcome:
    """Choose (see `choose`), refit on the search rows, score on the hold-out; `fitted_on_all` is for afterwards."""
    outcome = choose(records, simple_first)
    if outcome.winner is None:
        return outcome
    model, test_score, note = _scored(outcome.winner, data, metric, customer)
    baseline_score, baseline_note = None, _why_no_baseline(records)
    if outcome.baseline is not None and outcome.baseline.trial == outcome.winner.trial:
        baseline_score = test_score
    elif outcome.baseline is not None:
        _, baseline_score, baseline_note = _scored(outcome.baseline, data, metric, customer)
    notes = (
        note,
        baseline_note if baseline_note != note else None,
        _refit_note(outcome.winner),
        _leak_note(outcome, data, metric),
        *data.notes,
    )
    return StudyOutcome(
        outcome.winner,
        outcome.baseline,
        test_score=test_score,
        baseline_test_score=baseline_score,
        model=model,
        notes="; ".join(filter(None, notes)) or None,
    )


def fitted_on_all(outcome: StudyOutcome, data: StudyData) -> StudyOutcome:
    """The outcome with the winner's model fitted once more, on the hold-out rows too. Its scores stay as they are: they
    come from the model that had not seen those rows."""
    if outcome.winner is None or outcome.model is None:
        return outcome
    encoder, rows = data.everything(data.family(outcome.winner.family))
    model = replace(outcome.model, encoder=encoder, fitted=_fit(outcome.winner, data, rows), final_fit=ALL_ROWS)
    return replace(outcome, model=model)


def _fit(record: TrialRecord, data: StudyData, rows: Matrix) -> Model:
    """A trial's model up to its best step."""
    family = data.family(record.family)
    if isinstance(family, SteppedFamily) and (stages := stages_of(record)):
        return family.fit_stages(stages, rows, data.task)
    return family.fit(parameters(record.config), rows, data.task, record.seed, steps=record.best_step)


def _scored(
    record: TrialRecord, data: StudyData, metric: Metric, customer: str
) -> tuple[CustomerModel, float | None, str | None]:
    """A trial's model of the search rows, its score on the hold-out rows, and why there is none."""
    family = data.family(record.family)
    encoder, rows, unseen = data.whole(family)
    fitted = _fit(record, data, rows)
    own = data.own.get(record.family)
    columns = data.columns_of(family)
    config = family.at_step(record.config, record.best_step or len(record.steps))
    model = CustomerModel(
        customer, family.name, data.task, columns, encoder, fitted, own, data.example, data.preparation, config
    )
    score: float | None = None
    note = None
    try:
        score = metric.score(unseen.y, family.predict(fitted, unseen, data.task), unseen.weight)
    except ValueError as error:
        note = f"the hold-out ({len(unseen.y)} rows) cannot be scored: {error}"
    if score is not None and not math.isfinite(score):
        score, note = None, f"{metric.name} is not defined on the hold-out ({len(unseen.y)} rows)"
    return model, score, note


def stages_of(record: TrialRecord) -> list[Stage]:
    """The way of a population-based trial to its best step; empty when its configuration never changed.

    Up to an exploit the donor trained, with its own seed: `lineage` names it, and each entry of `schedule` but the
    last ends with one.
    """
    schedule = json.loads(record.schedule or "[]")
    donors = [exploit["donor"] for exploit in json.loads(record.lineage or "[]")]
    seeds = [*(trial_seed(record.study_seed, donor) for donor in donors), record.seed]
    last = record.best_step or len(record.steps)
    ends = [*(begin for begin, _ in schedule[1:]), last]
    stages: list[Stage] = []
    for (_, config), seed, end in zip(schedule, seeds, ends, strict=True) if schedule else ():
        steps = min(end, last)
        if steps > (stages[-1].steps if stages else 0):
            stages.append(Stage(parameters(config), seed, steps))
    return stages


def _refit_note(record: TrialRecord) -> str:
    stages = stages_of(record)
    return f"the winner was refitted along the {len(stages)} stages of its schedule" if len(stages) > 1 else ""


def is_too_good(metric: str, score: float | None, error: float | None, rows: int) -> bool:
    """Whether a model is perfect on every fold: on real rows, a sign of a column that tells the target.

    metric: a scorer's name; nothing is known of a user's own function. score, error: `cv_score` and `cv_error`.
    """
    return ":" not in metric and rows >= BELIEVABLE_ROWS and score == score_range(metric)[1] and error == 0.0


def _leak_note(outcome: StudyOutcome, data: StudyData, metric: Metric) -> str:
    score = None if outcome.winner is None else outcome.winner.score
    too_good = is_too_good(metric.name, score, outcome.cv_error, len(data.y))
    return f"{metric.name} is exactly {score:g} on every fold: a column may tell the target" if too_good else ""


def parameters(config: Config) -> dict[str, Any]:
    """A configuration without the name of its family."""
    return {name: value for name, value in config.items() if name != "model"}


def _why_no_baseline(records: Sequence[TrialRecord]) -> str | None:
    baseline = next((record for record in records if record.trial == 0), None)
    if baseline is None or baseline.state == FINISHED:
        return None
    return f"there is no gain: the baseline (trial 0) {baseline.state}: {baseline.reason}"


def _why_none(records: Sequence[TrialRecord]) -> str:
    if not records:
        return "no trial was run."
    states = Counter(record.state for record in records)
    parts = [f"{states[state]} {state}" for state in (FAILED, STOPPED) if states[state]]
    reasons = Counter(record.reason for record in records if record.state == FAILED)
    most = f"; most often: {reasons.most_common(1)[0][0]}" if reasons else ""
    return f"none of {len(records)} trials finished ({', '.join(parts)}){most}"
