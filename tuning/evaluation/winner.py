"""Choosing a study's winner from its records, refitting it, and scoring it once on the hold-out rows.

Only a trial with its full budget can win. Where trials are better together, what is refitted and scored is their
ensemble; the winner stays the best single one. The baseline and a constant are scored beside it, so that what the
search has gained, and whether there was anything to learn, is always known. The first trial is kept when nothing is
better on the folds, and what does not beat the constant there gives way to it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tuning.basics.wording import amount, name_list, raised, value_text
from tuning.definition.baselines import GivenBaseline, is_first_trial
from tuning.evaluation.baseline import ScoredBaseline, find_baseline
from tuning.evaluation.calibration import is_calibrated, residuals_of, temperature_of
from tuning.evaluation.constant import ConstantPrediction, find_constant
from tuning.evaluation.contradictions import Promise, contradiction_note
from tuning.evaluation.ensemble import Ensemble, find_ensemble, left_out
from tuning.evaluation.fixed import FixedConfiguration, FixedMember
from tuning.evaluation.hold_out_error import gain_error, hold_out_error, hold_out_score, scores_without
from tuning.evaluation.leaks import leak_note
from tuning.evaluation.metrics import Metric
from tuning.evaluation.pooling import not_asked, pooled_answers
from tuning.evaluation.refit import AllRows, Refits
from tuning.evaluation.study_data import StudyData
from tuning.models.base import Simpler
from tuning.models.customer_model import ALL_ROWS, CustomerModel
from tuning.models.log_target import LOG, TARGET
from tuning.models.member import Member
from tuning.notes import EndCode, FitCode, Note
from tuning.notes import note as notes_of
from tuning.preprocessing.task import Prediction, average, calibrated
from tuning.records.gains import gain_over
from tuning.records.schema import FAILED, FINISHED, MODEL, STOPPED, TrialRecord, best_first

#: The families of a search space in its order, each with what makes its models simpler.
SimpleFirst: TypeAlias = Mapping[str, Simpler]


@dataclass(frozen=True)
class StudyOutcome:
    """A study's winner, or the reason why there is none; scores in the metric's own direction.

    test_score: of `model`, which is the winner's, that of `ensemble`, or `constant` where `is_constant`.
    test_error, gain_error, gain_over_constant_error: the standard errors of `test_score` and of the gains.
    refit_seconds, predict_ms_per_row: wall time in which `model` was fitted on the search rows, and predicted a
    hold-out row. held_back: hold-out rows for which it was held within its bounds; None where nothing holds it. These
    but the errors of gains are None where `is_constant`. fixed: what was fitted without a search
    (`tuning.evaluation.fixed_fit`); there is no winner then.
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
    """The winner by score alone; of equal ones the earliest, so the first trial when nothing is better.

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


def _kept_note(winner: TrialRecord, records: Sequence[TrialRecord], what: str) -> str | None:
    """Why the first trial is what is handed over; None where it is not, or where there was nothing else.

    what: it is called.
    """
    others = [each for each in records if each.trial != winner.trial]
    if winner.trial != 0 or winner.score is None or not others:
        return None
    finished = [record for record in others if record.state == FINISHED and record.score is not None]
    if not finished:
        none = f"none of the other {amount(len(others), 'trial')} finished"
        who = "the only other trial did not finish" if len(others) == 1 else none
        return f"{what} was kept: {who}"
    best = min(finished, key=lambda record: record.loss)
    rule = ", within one standard error of the best" if best.loss < winner.loss else ""
    own, other = (value_text(each.score) for each in (winner, best))
    if own == other and not rule:
        return f"{what} was kept: on the folds it scores {own}, and none of the others does better"
    return f"{what} was kept: on the folds it scores {own}{rule}, the best of the others {other}"


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
    alive: Callable[[], None] = lambda: None,
    or_constant: bool = True,
    given: GivenBaseline = None,
) -> StudyOutcome:
    """Choose (see `choose`), refit on the search rows, score on the hold-out; `fitted_on_all` is for afterwards.

    alive: called before each of the parts that take as long as a trial. or_constant: whether what does not beat the
    constant on the folds gives way to it. given: the baseline, as the definition has it.
    """
    outcome = choose(records, simple_first)
    winner = outcome.winner
    if winner is None:
        return outcome
    data, pool_note = _with_answers_of_the_pool(data, customer)
    refits = Refits(data)
    ensemble, failed = _together(records, winner, data, metric, refits, alive)
    picked = ((winner, 1),) if ensemble is None else ensemble.members
    unseen = left_out(picked, data, metric) if is_calibrated(data, metric) else None
    if data.kept is not None:
        data.kept.clear()
    constant = find_constant(data, metric)
    baseline, baseline_note = find_baseline(given, records, constant, refits, data, metric)
    choice: list[Note | str | None]
    temperature = 1.0
    test_error = refit_seconds = predict_ms_per_row = held_back = None
    if or_constant and constant is not None and (why := _gives_way(winner, ensemble, constant)):
        outcome, ensemble, choice = replace(outcome, is_constant=True), None, [why]
        members: tuple[Member, ...] = (constant.member(data, all_rows=False),)
        mean, test_score = constant.answers(data), constant.test_score
        scores = scores_without(mean, data, metric)
        undefined = f"{metric.name} is not defined for a constant on the hold-out"
        note = undefined if test_score is None else None
        residuals = residuals_of(constant.left_out(data), mean.values, data)
    else:
        fitted = [refits.of(record) for record, _ in picked]
        weights = [weight / sum(weight for _, weight in picked) for _, weight in picked]
        members = tuple(replace(member, weight=weight) for (member, _), weight in zip(fitted, weights, strict=True))
        said = [prediction for _, prediction in fitted]
        temperature = temperature_of(unseen, data, metric)
        mean = calibrated(average(said, weights, data.task), temperature)
        residuals = residuals_of(unseen, mean.values, data)
        test_score, note = hold_out_score(mean, data, metric)
        scores = None if test_score is None else scores_without(mean, data, metric)
        test_error = hold_out_error(scores)
        refit_seconds = sum(refits.fit_seconds[record.trial] for record, _ in picked)
        seconds = sum(refits.predict_seconds[record.trial] for record, _ in picked)
        predict_ms_per_row = 1000 * seconds / len(data.split.test)
        unbounded = all(member.bounds is None for member in members)
        held_back = None if unbounded else mean.held_back
        first = "the baseline" if is_first_trial(given) else "the first configuration"
        alone = (_kept_note(winner, records, first), _refit_note(winner)) if ensemble is None else ()
        nothing = None if constant is None else constant.score
        leak = leak_note(data, metric, winner.score, outcome.cv_error, nothing, test_score)
        promised = winner.score if ensemble is None else ensemble.score
        promise = Promise(promised or 0.0, tuple(winner.fold_scores))
        contradicted = contradiction_note(
            promise, data, metric, test_score, test_error, constant, mean, leaks=bool(leak)
        )
        choice = [
            FitCode.CONTRADICTED(text=contradicted) if contradicted else None,
            *alone,
            *failed,
            _held_note(members, said, held_back),
            leak,
        ]
    notes = (
        *choice,
        pool_note,
        note,
        baseline_note if baseline_note != note else None,
        _target_note(records, data),
        *data.notes,
    )
    return replace(
        outcome,
        test_score=test_score,
        baseline=baseline,
        model=CustomerModel(
            customer,
            data.task,
            members,
            data.example,
            data.preparation,
            residuals=residuals,
            temperature=temperature,
        ),
        notes=notes_of.as_notes(notes),
        ensemble=ensemble,
        constant=constant,
        test_error=test_error,
        gain_error=None if baseline is None else gain_error(scores, baseline.said, baseline.test_score, data, metric),
        gain_over_constant_error=None
        if constant is None
        else gain_error(scores, constant.answers(data), constant.test_score, data, metric),
        refit_seconds=refit_seconds,
        predict_ms_per_row=predict_ms_per_row,
        held_back=held_back,
    )


def _with_answers_of_the_pool(data: StudyData, customer: str) -> tuple[StudyData, str | None]:
    """The data with what the run's pool says of it, as far as an ensemble is wanted; else a note why it has no say."""
    if data.pool is None or data.kept is None:
        return data, None
    try:
        return replace(data, pooled=pooled_answers(data.pool, data, customer)), None
    except Exception as error:
        return data, not_asked(error)


def _gives_way(winner: TrialRecord, ensemble: Ensemble | None, constant: ConstantPrediction) -> Note | None:
    """Return why the constant is handed over; None where what was found is better, or is itself a constant."""
    found = winner.score if ensemble is None else ensemble.score
    if found is None or (found > constant.score if winner.mode == "max" else found < constant.score):
        return None
    if found == constant.score and winner.family == constant.config[MODEL]:
        return None
    own, other = (value_text(score) for score in (constant.score, found))
    return FitCode.CONSTANT_MODEL(what=constant.what, own=own, other=other)


def _together(
    records: Sequence[TrialRecord],
    winner: TrialRecord,
    data: StudyData,
    metric: Metric,
    refits: Refits,
    alive: Callable[[], None],
) -> tuple[Ensemble | None, list[str]]:
    """The best ensemble all of whose members can be fitted again, and a note on each trial that cannot."""
    failed: dict[int, str] = {}
    while True:
        left = [record for record in records if record.trial not in failed]
        found = find_ensemble(left, winner, data, metric, alive)
        lost = (
            {}
            if found is None
            else {record.trial: why for record, _ in found.members if (why := _lost(record, refits, alive))}
        )
        if not lost:
            return found, list(failed.values())
        failed |= lost


def _lost(record: TrialRecord, refits: Refits, alive: Callable[[], None]) -> str:
    """Why a trial cannot be a member after all; empty when it can."""
    alive()
    try:
        refits.of(record)
    except Exception as error:
        return _not_refitted(record, error)
    return ""


def _not_refitted(record: TrialRecord, error: Exception) -> str:
    return f"trial {record.trial} ({record.family}) is left out of the ensemble, its refit failed: {raised(error)}"


def fitted_on_all(outcome: StudyOutcome, data: StudyData, alive: Callable[[], None] = lambda: None) -> StudyOutcome:
    """The outcome with its model fitted once more, on the hold-out rows too. Its scores stay as they are: they come
    from the model that had not seen those rows."""
    winner, model, ensemble = outcome.winner, outcome.model, outcome.ensemble
    if winner is None or model is None:
        return outcome
    if outcome.constant is not None and outcome.is_constant:
        members = (outcome.constant.member(data, all_rows=True),)
        return replace(outcome, model=replace(model, members=members, final_fit=ALL_ROWS))
    all_rows = AllRows(data)
    if ensemble is None:
        alive()
        return replace(
            outcome, model=replace(model, members=(all_rows.of(model.members[0], winner),), final_fit=ALL_ROWS)
        )
    found: list[tuple[Member, tuple[TrialRecord, int]]] = []
    notes = list(outcome.notes)
    for member, (record, weight) in zip(model.members, ensemble.members, strict=True):
        alive()
        try:
            found.append((all_rows.of(member, record), (record, weight)))
        except Exception as error:
            notes.append(notes_of.uncoded(f"{_not_refitted(record, error)}; test_score is with it"))
            if len(notes) - len(outcome.notes) >= len(ensemble.members):
                raise
    return replace(
        outcome,
        model=replace(model, members=tuple(member for member, _ in found), final_fit=ALL_ROWS),
        notes=tuple(notes),
        ensemble=replace(ensemble, members=tuple(of for _, of in found)),
    )


def _held_note(members: Sequence[Member], said: Sequence[Prediction], count: int | None) -> str:
    if not count:
        return ""
    whose = dict.fromkeys(member.family for member, each in zip(members, said, strict=True) if each.held is not None)
    rows = len(said[0].values)
    return f"{name_list(whose)} went beyond `bounds` on {count} of {rows} hold-out rows, and was held there"


def _refit_note(record: TrialRecord) -> str:
    stages = FixedMember.of(record).stages
    return (
        f"the winner was refitted along the {amount(len(stages), 'stage')} of its schedule" if len(stages) > 1 else ""
    )


def _target_note(records: Sequence[TrialRecord], data: StudyData) -> str:
    ignored = any(record.config.get(TARGET) == LOG and data.target_of(record.config) != LOG for record in records)
    return "target: log is plain here, as a target is not above 0" if ignored else ""


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
