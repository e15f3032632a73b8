"""What a study hands over: its winner, or the ensemble around it, refitted and scored once on the hold-out rows.

Where trials are better together, their ensemble is refitted and scored; the winner stays the best single trial. The
baseline and a constant are scored on the same rows, so that what the search has gained, and whether there was anything
to learn, is always known. What does not beat the constant on the folds gives way to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tuning.basics.wording import raised
from tuning.definition.baselines import GivenBaseline, is_first_trial
from tuning.errors import reason_of
from tuning.evaluation.baseline import find_baseline
from tuning.evaluation.constant import ConstantPrediction, find_constant
from tuning.evaluation.doubts import contradiction_note, leak_note
from tuning.evaluation.ensemble import Ensemble, find_ensemble, left_out
from tuning.evaluation.fixed import FixedMember
from tuning.evaluation.hold_out_error import gain_error, hold_out_score, scores_without
from tuning.evaluation.metrics import FEW, Metric, proper_metric
from tuning.evaluation.pooling import final_member, pool_alone, pooled_answers
from tuning.evaluation.refit import Refits, fitted_member
from tuning.evaluation.scored_model import model_of, on_hold_out, residuals_of
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import SimpleFirst, StudyOutcome, choose
from tuning.models.customer_model import ALL_ROWS
from tuning.models.member import Member
from tuning.models.pooled import POOL_FORMS, PooledMember
from tuning.notes import FitCode, Note, PoolCode
from tuning.notes.note import ordered
from tuning.preprocessing.task import Prediction, average
from tuning.records.schema import FINISHED, MODEL, TrialRecord


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
    ensemble, lost = _together(records, winner, data, metric, refits, alive)
    picked = ((winner, 1.0),) if ensemble is None else ensemble.members
    unseen = None if data.task.classification else left_out(picked, data, metric)
    if data.kept is not None:
        data.kept.clear()
    constant = find_constant(data, metric)
    baseline, baseline_note = find_baseline(given, records, constant, refits, data, metric)
    if or_constant and constant is not None and (why := _gives_way(winner, ensemble, constant)):
        outcome, scores = _constant(outcome, constant, why, data, metric, customer)
        lost = []
    else:
        outcome = replace(outcome, ensemble=ensemble)
        outcome, scores = _searched(outcome, picked, refits, unseen, constant, metric, customer)
        if ensemble is None:
            first = "the baseline" if is_first_trial(given) else "the first configuration"
            lost = [*filter(None, (_kept_note(winner, records, first), _schedule_note(winner))), *lost]
    return replace(
        outcome,
        baseline=baseline,
        notes=ordered([*outcome.notes, *lost, _few_note(data, metric), pool_note, baseline_note, *data.notes]),
        constant=constant,
        gain_error=None if baseline is None else gain_error(scores, baseline.said, baseline.test_score, data, metric),
        gain_over_constant_error=None
        if constant is None
        else gain_error(scores, constant.answers(data), constant.test_score, data, metric),
    )


def _constant(
    outcome: StudyOutcome, constant: ConstantPrediction, why: Note, data: StudyData, metric: Metric, customer: str
) -> tuple[StudyOutcome, np.ndarray | None]:
    """Return the outcome with the constant as its model, and the scores of `scores_without`. why: it is."""
    mean = constant.answers(data)
    residuals = residuals_of(constant.left_out(data), mean.values, data)
    undefined = FitCode.NO_TEST_SCORE(metric=metric.name, rows=len(data.split.test))
    found = replace(
        outcome,
        is_constant=True,
        model=model_of((constant.member(data, all_rows=False),), data, customer, residuals),
        test_score=constant.test_score,
        notes=(why, undefined) if constant.test_score is None else (why,),
    )
    return found, scores_without(mean, data, metric)


def _searched(
    outcome: StudyOutcome,
    picked: Sequence[tuple[TrialRecord, float]],
    refits: Refits,
    unseen: np.ndarray | None,
    constant: ConstantPrediction | None,
    metric: Metric,
    customer: str,
) -> tuple[StudyOutcome, np.ndarray | None]:
    """Return the outcome with the winner or the ensemble, refitted, and the scores of `scores_without`.

    picked: its trials, each with how often it was picked. unseen: its predictions of rows that the folds left out.
    """
    data, winner = refits.data, outcome.winner
    assert winner is not None
    fitted, picks = [refits.of(record) for record, _ in picked], sum(times for _, times in picked)
    members = [replace(each.member, weight=times / picks) for each, (_, times) in zip(fitted, picked, strict=True)]
    said = [each.prediction for each in fitted]
    outcome, scores = on_hold_out(outcome, members, said, unseen, data, metric, customer)
    outcome = _with_parts(outcome, members, said, data, metric)
    test_score, nothing = outcome.test_score, None if constant is None else constant.score
    leak = leak_note(data, metric, winner.score, outcome.cv_error, nothing, test_score)
    promised = (winner.score if outcome.ensemble is None else outcome.ensemble.score) or 0.0
    against = contradiction_note(promised, winner.fold_scores, test_score, outcome.test_error, constant, data, metric)
    found = replace(
        outcome,
        notes=tuple(filter(None, (against, leak, _held_note(members, said, outcome.held_back), *outcome.notes))),
        refit_seconds=sum(each.fit_seconds for each in fitted),
        predict_ms_per_row=1000 * sum(each.predict_seconds for each in fitted) / len(data.split.test),
    )
    return found, scores


def _with_parts(
    outcome: StudyOutcome, members: Sequence[Member], said: Sequence[Prediction], data: StudyData, metric: Metric
) -> StudyOutcome:
    """Return the outcome with what its own members and the pool score apart, where the pool was asked."""
    if data.pool is None or not data.pooled:
        return outcome
    own = [(answer, each.weight) for each, answer in zip(members, said, strict=True) if each.family not in POOL_FORMS]
    pool_score, _ = hold_out_score(pool_alone(data.pool, data.pooled, data.task)[1], data, metric)
    if not own:
        return replace(outcome, pool_score=pool_score)
    answers, weights = zip(*own, strict=True)
    own_score, _ = hold_out_score(average(answers, weights, data.task), data, metric)
    return replace(outcome, own_score=own_score, pool_score=pool_score)


def _kept_note(winner: TrialRecord, records: Sequence[TrialRecord], what: str) -> Note | None:
    """Return why the first trial was kept; None where another one won, or where there was no other.

    what: it is called.
    """
    others = [each for each in records if each.trial != winner.trial]
    if winner.trial != 0 or winner.score is None or not others:
        return None
    finished = [record for record in others if record.state == FINISHED and record.score is not None]
    if not finished:
        return FitCode.FIRST_ALONE(what)
    best = min(finished, key=lambda record: record.loss)
    code = FitCode.FIRST_IS_SIMPLER if best.loss < winner.loss else FitCode.FIRST_KEPT
    return code(what, own=winner.score, other=best.score)


def _few_note(data: StudyData, metric: Metric) -> Note | None:
    """Return how many search rows of the rarest class decide, and by what members are compared; None of many rows."""
    rows = data.rarest_rows
    if rows is None or rows >= FEW:
        return None
    rarest = int(np.bincount(data.y[data.split.search], minlength=len(data.task.classes)).argmin())
    compared = proper_metric(metric, rows).name if data.kept is not None else metric.name
    other = compared if compared != metric.name else ""
    return FitCode.FEW_OF_CLASS(rows=rows, label=data.task.classes[rarest], metric=other)


def _with_answers_of_the_pool(data: StudyData, customer: str) -> tuple[StudyData, Note | None]:
    """Return the data with the answers of the run's pool, where an ensemble is wanted, or a note why it has none."""
    if data.pool is None or data.kept is None:
        return data, None
    try:
        return replace(data, pooled=pooled_answers(data.pool, data, customer)), None
    except Exception as error:
        return data, PoolCode.POOL_NOT_ASKED(why=reason_of(error))


def _gives_way(winner: TrialRecord, ensemble: Ensemble | None, constant: ConstantPrediction) -> Note | None:
    """Return why the constant is handed over; None where what was found is better, or is itself a constant."""
    found = winner.score if ensemble is None else ensemble.score
    if found is None or (found > constant.score if winner.mode == "max" else found < constant.score):
        return None
    if found == constant.score and winner.family == constant.config[MODEL]:
        return None
    return FitCode.CONSTANT_MODEL(what=constant.what, own=constant.score, other=found)


def _together(
    records: Sequence[TrialRecord],
    winner: TrialRecord,
    data: StudyData,
    metric: Metric,
    refits: Refits,
    alive: Callable[[], None],
) -> tuple[Ensemble | None, list[Note]]:
    """Return the best ensemble of trials that can be fitted again, and a note on each trial that cannot."""
    failed: dict[int, Note] = {}
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


def _lost(record: TrialRecord, refits: Refits, alive: Callable[[], None]) -> Note | None:
    """Return why a trial cannot be a member after all; None when it can."""
    alive()
    try:
        refits.of(record)
    except Exception as error:
        return FitCode.REFIT_FAILED(trial=record.trial, family=record.family, error=raised(error))
    return None


def fitted_on_all(outcome: StudyOutcome, data: StudyData, alive: Callable[[], None] = lambda: None) -> StudyOutcome:
    """The outcome with its model fitted once more, on the hold-out rows too. Its scores stay as they are: they come
    from the model that had not seen those rows."""
    winner, model, ensemble = outcome.winner, outcome.model, outcome.ensemble
    if winner is None or model is None:
        return outcome
    if outcome.constant is not None and outcome.is_constant:
        members = (outcome.constant.member(data, all_rows=True),)
        return replace(outcome, model=replace(model, members=members, final_fit=ALL_ROWS))
    picked = ((winner, 1.0),) if ensemble is None else ensemble.members
    found: list[tuple[Member, tuple[TrialRecord, float]]] = []
    notes = list(outcome.notes)
    for member, (record, times) in zip(model.members, picked, strict=True):
        alive()
        try:
            found.append((_on_all_rows(member, record, data, model.customer), (record, times)))
        except Exception as error:
            notes.append(FitCode.LAST_REFIT_FAILED(trial=record.trial, family=record.family, error=raised(error)))
            if len(notes) - len(outcome.notes) >= len(picked):
                raise
    return replace(
        outcome,
        model=replace(model, members=tuple(member for member, _ in found), final_fit=ALL_ROWS),
        notes=tuple(notes),
        ensemble=ensemble and replace(ensemble, members=tuple(of for _, of in found)),
    )


def _on_all_rows(member: Member, record: TrialRecord, data: StudyData, customer: str) -> Member:
    """Return a trial's model of the search rows, fitted on all rows; the run has fitted the pool so."""
    if isinstance(member, PooledMember) and data.pool is not None:
        return replace(final_member(data.pool, member.family, data, customer), weight=member.weight)
    return fitted_member(FixedMember.of(record, member.weight), data, all_rows=True)


def _held_note(members: Sequence[Member], said: Sequence[Prediction], count: int | None) -> Note | None:
    if not count:
        return None
    held = dict.fromkeys(member.family for member, each in zip(members, said, strict=True) if each.held is not None)
    return FitCode.HELD_IN_BOUNDS(families=list(held), held=count, rows=len(said[0].values))


def _schedule_note(record: TrialRecord) -> Note | None:
    stages = FixedMember.of(record).stages
    return FitCode.ALONG_SCHEDULE(stages=len(stages)) if len(stages) > 1 else None
