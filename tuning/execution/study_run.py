"""What a worker does with one study: load its customer, run its trials, choose and refit the winner."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import pandas as pd

from tuning.basics.stopwatch import Clock
from tuning.basics.wording import raised, stack
from tuning.data.customers import Customer
from tuning.definition.definition import define
from tuning.definition.run_spec import RunSpec
from tuning.errors import RunError, StorageError, StudyError, UnsavedModelError, reason_of
from tuning.evaluation.conclusion import conclude, fitted_on_all
from tuning.evaluation.fixed import FixedConfiguration
from tuning.evaluation.fixed_fit import fit_fixed
from tuning.evaluation.out_of_fold import OutOfFold
from tuning.evaluation.study_data import StudyData, study_data, train
from tuning.evaluation.winner import StudyOutcome, choose
from tuning.execution.study_record import asked_pool, study_record
from tuning.execution.worker import TrialData, Worker, WorkerContext, planned_study
from tuning.models.compute import trains_with
from tuning.models.customer_model import ALL_ROWS, CustomerModel, Saved
from tuning.models.skops_format import dump_skops
from tuning.notes import EndCode, Note
from tuning.records.schema import (
    FINISHED,
    MODEL,
    NO_MODEL,
    OK,
    POOLED,
    Record,
    StudyRecord,
    TrialRecord,
)
from tuning.storage.names import slug
from tuning.study.helpers import HelperPool
from tuning.study.local_trial import is_ctrl_c
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study
from tuning.user_code import ignore_warnings

#: Finds the helpers of a study, by what its trials train on.
FindHelpers: TypeAlias = Callable[[TrialData], contextlib.AbstractContextManager[HelperPool | None]]


class NoHelpersError(Exception):
    """No helper can work here, for lack of memory most likely; the study's own process can."""


class UnfinishedStudyError(Exception):
    """Leaves a study without a record: whoever runs it knows what becomes of it."""


def run_study(
    worker: Worker,
    study: Study,
    before: Sequence[TrialRecord],
    helpers: FindHelpers = lambda _: contextlib.nullcontext(),
) -> Iterator[list[Record]]:
    """Run one study to its end: its new trial records, then its study record. Never raises for a bad customer.

    Records that come in one list must be written together: under a scheduler that pauses, all trials of a study are
    one cohort, and either all of them are known or none. A study with a fixed configuration has no trials.

    before: records of earlier attempts. helpers: train its trials where its scheduler pauses them; None of them where
    this process does.
    """
    with trains_with(study.resources.compute), _Ending(worker, study, before) as ending:
        ending.load()
        if study.fixed is None:
            yield from _search(worker, study, ending, before, helpers)
        ending.conclude()
    yield [ending.record()]


def _search(
    worker: Worker, study: Study, ending: _Ending, before: Sequence[TrialRecord], helpers: FindHelpers
) -> Iterator[list[Record]]:
    """Run the trials of a study."""
    loop = _trials(worker, study, ending.data, before)
    if study.scheduler.pauses:
        if not before:
            try:
                with helpers(ending.data) as loop.helpers:
                    ending.records = list(loop)
            except NoHelpersError:
                loop = _trials(worker, study, ending.data, before)
                ending.records = list(loop)
            yield [*ending.records]
    else:
        for record in loop:
            ending.records.append(record)
            yield [record]
    ending.ended_by = loop.stopped_by


def conclude_study(
    worker: Worker,
    study: Study,
    records: Sequence[TrialRecord],
    *,
    ended_by: Note | None = None,
    failure: Note | None = None,
    predictions: Callable[[int], OutOfFold | None] = lambda _: None,
) -> StudyRecord:
    """Return the record of a study after its trials, which have run elsewhere. Never raises for a bad customer.

    ended_by: why it ended before its budget was used up, as a sentence. failure: why it cannot be used. predictions:
    what a trial said of the rows that its folds left out, by its number.
    """
    with trains_with(study.resources.compute), _Ending(worker, study, records) as ending:
        ending.load()
        if isinstance(ending.data, StudyData) and (kept := ending.data.kept) is not None and failure is None:
            for trial in records:
                if trial.state == FINISHED and (found := predictions(trial.trial)) is not None:
                    kept.keep(trial.config, trial.seed, found)
        ending.ended_by = ended_by
        if failure is not None:
            raise StudyError(failure)
        ending.conclude()
    record = ending.record()
    return replace(
        record,
        started=min([record.started, *(trial.started for trial in records)]),
        seconds=record.seconds + sum(trial.seconds for trial in records),
        fit_seconds=record.fit_seconds + sum(trial.fit_seconds for trial in records),
    )


class _Ending:
    """Brings a study to its record, whatever its customer's data or code do: what they raise becomes the reason."""

    def __init__(self, worker: Worker, study: Study, records: Sequence[TrialRecord]) -> None:
        self.worker, self.context, self.study, self.clock = worker, worker.context, study, Clock()
        self.records = list(records)
        self.data: TrialData = None
        self.ended_by: Note | None = None  # why the study ended before its budget was used up
        self._status = NO_MODEL
        self._error: str | None = None
        self._outcome = StudyOutcome(None, None, reason=EndCode.NO_TRIAL_RUN())
        self._saved: Saved | None = None

    def __enter__(self) -> _Ending:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        # A sys.exit() of the user's model or metric is its study's end, and not the program's.
        if error is None or isinstance(error, GeneratorExit | StorageError | UnfinishedStudyError) or is_ctrl_c(error):
            return False
        reason = reason_of(error)
        self._outcome = replace(self._outcome, winner=None, model=None, reason=reason)
        if reason.code is EndCode.RAISED or error.__cause__ is not None:
            self._error = stack(error)
        return True

    def load(self) -> None:
        """Read and prepare the customer's data."""
        self.worker.loading()
        self.data = self.context.data(self.study.customer)

    def conclude(self) -> None:
        """Choose the winner, or take the fixed configuration; fit and save it."""
        definition, fixed = self.context.spec.definition, self.study.fixed
        self.worker.concluding()
        if fixed is not None:
            self._outcome = self._fitted(fixed)
        elif isinstance(self.data, StudyData):
            self._outcome = self._searched(self.data)
        else:
            self._outcome = choose(self.records, self.context.simple_first(self.study))
        self.worker.guard.pause()
        if self._outcome.model is not None and definition.save_models and not (fixed and fixed.only_scored):
            self._saved = self._save(self._outcome.model)
        if self.ended_by:
            run = EndCode.TRIALS_RUN(run=len(self.records), trials=self.study.n_trials)
            self._outcome = replace(self._outcome, notes=(self.ended_by, run, *self._outcome.notes))
        self._status = OK if fixed is not None or self._outcome.winner is not None else NO_MODEL

    def _searched(self, data: StudyData) -> StudyOutcome:
        definition, alive = self.context.spec.definition, self.worker.concluding
        metric = self.context.customers.metric(data)
        if self.ended_by is not None and self.ended_by.code is EndCode.TOOK_LONGER:
            data = replace(data, kept=None)  # an ensemble takes several fits more
        outcome = conclude(
            self.records,
            data,
            metric,
            self.study.customer.id,
            self.context.simple_first(self.study),
            alive,
            or_constant=definition.compare is None,  # else it would stand for what an algorithm has found
            given=definition.baseline,
        )
        if definition.save_models and definition.final_fit == ALL_ROWS:
            return fitted_on_all(outcome, data, alive)
        return outcome

    def _fitted(self, fixed: FixedConfiguration) -> StudyOutcome:
        data = self.data
        assert isinstance(data, StudyData)  # a plan has no others
        all_rows = self.context.spec.definition.final_fit == ALL_ROWS and not fixed.only_scored
        metric, alive = self.context.customers.metric(data), self.worker.concluding
        return fit_fixed(fixed, data, metric, self.study.customer.id, all_rows=all_rows, alive=alive)

    def _save(self, model: CustomerModel) -> Saved:
        """`UnsavedModelError` for whatever the model's own code makes of it."""
        try:
            return model.save(self.context.background, self.context.background.folder("models", slug(self.study.id)))
        except BaseException as error:
            if isinstance(error, StorageError) or is_ctrl_c(error):
                raise
            why = str(error) if isinstance(error, RunError) else raised(error)
            raise UnsavedModelError(EndCode.UNSAVED_MODEL(error=why.rstrip("."))) from error

    def _ask_pool(self) -> None:
        """Have the run's pool answer for a customer without a model of its own, where it can."""
        self.worker.loading()
        model, note = asked_pool(self.context, self.study.customer, self._outcome.reason)
        self._outcome = replace(self._outcome, model=model, notes=(*self._outcome.notes, *filter(None, [note])))
        if model is not None:
            self.worker.guard.pause()
            self._saved, self._status = self._save(model), POOLED

    def record(self) -> StudyRecord:
        """Return the study's record."""
        if self._status == NO_MODEL and self.context.customers.pool is not None:
            self._ask_pool()
        outcome = self._outcome
        if outcome.winner is None and isinstance(self.data, StudyData):
            outcome = replace(outcome, notes=(*outcome.notes, *self.data.notes))
        return study_record(
            self.context,
            self.study,
            self.records,
            self._status,
            outcome,
            self.clock,
            data=self.data,
            saved=self._saved,
            error=self._error,
        )


def _trials(worker: Worker, study: Study, data: TrialData, before: Sequence[TrialRecord]) -> RecordedStudy:
    context, guard = worker.context, worker.guard
    training = context.training(study, data)
    start = guard.limited(training.start)
    if study.scheduler.pauses or guard.limits.trial_seconds is None:
        start = guard.each_step(start)
    planned = planned_study(context.run, context.spec, study)
    return RecordedStudy(planned, replace(training, start=start), before, worker.trial)


def load_libraries(spec: RunSpec, study: Study) -> None:
    """Load what each fork of this process would load for itself: the libraries of searchers, of Ray, and for models."""
    if spec.definition.loggers:
        import ray.tune.logger  # noqa: F401  # for the time that it takes
    if spec.definition.objective is None and spec.definition.save_models:
        dump_skops([])
    with contextlib.suppress(Exception):  # its study says why
        planned = planned_study("", spec, study)
        planned.searcher()
        planned.scheduler({}, 1)


def spare_loading(worker: Worker, study: Study | None) -> None:
    """Load what a worker's studies use, and take back its grace, which is for that; also where no limit needs it.

    study: the first one; None without any.
    """
    limits = worker.context.spec.definition.limits
    timed = limits.trial_seconds is not None or limits.study_seconds is not None
    if study is None or not timed or warm_up(worker.context, study):
        worker.guard.grace = 0.0


def warm_up(context: WorkerContext, study: Study) -> bool:
    """Load and start up all libraries that studies like this one use, so that no limit of time counts it.

    A few trials on twelve made-up rows, and a step of every family. False when that is not possible: an objective
    loads what only it knows.
    """
    task = context.spec.task
    if context.objective is not None or task is None:
        return False
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"number": rng.normal(size=12), "text": list("abcdefabcdef")})
    frame["target"] = rng.normal(size=12) if task == "regression" else [0, 1] * 6
    with contextlib.suppress(Exception), ignore_warnings():
        dump_skops([])
        plain = {"name": "warm-up", "data": "-", "target": "target", "split": {"folds": 2}, "trials": 3}
        definition = define({**plain, "save_models": False})
        data = study_data(frame, definition, task, 0, context.customers.code.families)
        customer = Customer("warm-up")
        spec = replace(context.spec, definition=definition, stop=())
        other = replace(context, spec=spec, _kept={customer.id: (0, data)})
        for _ in run_study(Worker(other), replace(study, id="warm-up", customer=customer, n_trials=3, fixed=None), []):
            pass
        metric = context.customers.metric(data)
        seen = set()
        for config in (study.space.sample(rng) for _ in range(100)):
            if config.get(MODEL) not in seen:
                seen.add(config.get(MODEL))
                next(iter(train(config, data, metric, 0)), None)
    return True
