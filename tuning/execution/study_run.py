"""What a worker does with one study: load its customer, run its trials, choose and refit the winner."""

from __future__ import annotations

import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any
from uuid import uuid4

from tuning.errors import CustomerError, StorageError, StudyError
from tuning.evaluation.winner import StudyOutcome, choose, conclude
from tuning.execution.context import WorkerContext
from tuning.records.schema import FAILED, NO_MODEL, OK, STOPPED, Record, StudyRecord, TrialRecord
from tuning.steps import Step
from tuning.storage.names import slug
from tuning.study.record import versions, worker_name
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study
from tuning.study.warm_start import of_customer


class Hooks:
    """Hears what a worker turns to; by itself it does nothing, see `tuning.execution.packed.WorkerHooks`."""

    def loading(self) -> None:
        """The customer's data is read and prepared."""

    def trial(self, number: int) -> None:
        """A trial's training begins."""

    def concluding(self) -> None:
        """The winner is refitted."""

    def saving(self) -> None:
        """What follows is not the customer's doing: models and records are written."""

    def steps(self, start: Callable[..., Iterable[Step]], *, paused: bool) -> Callable[..., Iterable[Step]]:
        """Training code, watched step by step."""
        return start

    def over(self) -> str:
        """Why the study should propose no further trial; empty while it may."""
        return ""


def run_study(
    context: WorkerContext,
    study: Study,
    before: Sequence[TrialRecord],
    trials: Iterable[TrialRecord] | None = None,
    failure: str | None = None,
    watch: Hooks | None = None,
    over: str = "",
) -> Iterator[list[Record]]:
    """One study to its end: its new trial records, then its study record. Never raises for a bad customer.

    Records that come in one list must be written together: under a scheduler that pauses, all trials of a study are
    one race, and either all of them are known or none.

    trials: run elsewhere already (a spread study's); None runs them here. failure: why the study cannot
    be used. over: why it ended before its budget was used up.
    """
    watch, clock = watch or Hooks(), Clock()
    records = list(before)
    outcome = StudyOutcome(None, None, reason="no trial was run.")
    data: Any = None
    error, status = None, NO_MODEL
    saved: tuple[str | None, str | None] = (None, None)
    ended = ""
    try:
        watch.loading()
        data = context.data(study.customer)
        if failure is not None:
            raise StudyError(failure)
        loop: Iterable[TrialRecord] = _trials(context, study, data, before, watch) if trials is None else trials
        if study.scheduler.pauses:
            if not before:
                records = list(loop)
                yield [*records]
        else:
            for record in loop:
                records.append(record)
                yield [record]
                if ended := watch.over():
                    break
        ended = ended or over or getattr(loop, "stopped_by", "")
        watch.concluding()
        if context.objective is not None:
            outcome = choose(records, context.simple_first(study))
        else:
            outcome = conclude(records, data, context.metric(data), study.customer.id, context.simple_first(study))
        watch.saving()
        if outcome.model is not None and context.definition.save_models:
            path = f"models/{slug(study.id)}/{uuid4().hex[:8]}"  # never that of another attempt, which it may outlive
            saved = (path, outcome.model.save(context.filing, path))
        if ended:
            planned = study.trials or context.definition.trials
            why = f"{ended}; {len(records)} of {planned} trials were run"
            outcome = replace(outcome, notes="; ".join(filter(None, (why, outcome.notes))))
        status = OK if outcome.winner is not None else NO_MODEL
    except (CustomerError, StudyError) as known:
        outcome = replace(outcome, winner=None, model=None, reason=str(known))
        error = traceback.format_exc() if known.__cause__ is not None else None
    except StorageError:
        raise
    except Exception as unknown:
        reason = f"{type(unknown).__name__}: {unknown}"[:500]
        outcome, error = replace(outcome, winner=None, model=None, reason=reason), traceback.format_exc()
    yield [study_record(context, study, records, status, outcome, clock, data=data, saved=saved, error=error)]


def study_record(
    context: WorkerContext,
    study: Study,
    records: Sequence[TrialRecord],
    status: str,
    outcome: StudyOutcome,
    clock: Clock,
    *,
    data: Any = None,
    saved: tuple[str | None, str | None] = (None, None),
    error: str | None = None,
) -> StudyRecord:
    """What came of a study.

    records: all of its trials. saved: path and digest of its model. error: the traceback or stack behind the reason.
    """
    winner, default = outcome.winner, outcome.default
    return StudyRecord(
        run=context.settings.run,
        study=study.id,
        customer=study.customer.id,
        algorithm=study.algorithm.name,
        scheduler=study.scheduler.name,
        study_seed=study.seed,
        status=status,
        reason="" if status == OK else outcome.reason,
        task=context.settings.task or "objective",
        metric=context.settings.metric,
        mode=context.settings.mode,
        family=winner.family if winner else None,
        trial=winner.trial if winner else None,
        best_step=winner.best_step if winner else None,
        config=winner.config if winner else None,
        cv_score=winner.score if winner else None,
        cv_error=outcome.cv_error,
        test_score=outcome.test_score,
        default_cv_score=default.score if default else None,
        default_test_score=outcome.default_test_score,
        gain=outcome.gain,
        trials=len(records),
        stopped=sum(record.state == STOPPED for record in records),
        failed=sum(record.state == FAILED for record in records),
        rows=len(data.y) if hasattr(data, "y") else 0,
        test_rows=len(data.split.test) if hasattr(data, "split") else 0,
        features=len(data.columns) if hasattr(data, "split") else 0,
        started=clock.started,
        seconds=clock.wall,
        fit_seconds=clock.cpu,
        model_path=saved[0],
        model_sha256=saved[1],
        worker=worker_name(),
        versions=versions(),
        error=error,
        notes=outcome.notes,
    )


def unblock_sigterm() -> None:
    """What this thread starts may be ended with SIGTERM, which Ray's processes do not hear (`driver.signals.kept`)."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})


class Clock:
    """Wall and CPU seconds of this thread since it was made."""

    def __init__(self) -> None:
        self.started, self._wall, self._cpu = time.time(), time.perf_counter(), time.thread_time()

    @property
    def wall(self) -> float:
        return time.perf_counter() - self._wall

    @property
    def cpu(self) -> float:
        return time.thread_time() - self._cpu


def _trials(
    context: WorkerContext, study: Study, data: Any, before: Sequence[TrialRecord], watch: Hooks
) -> RecordedStudy:
    training = context.training(data)
    start = watch.steps(training.start, paused=bool(study.scheduler.pauses))
    return RecordedStudy(
        run=context.settings.run,
        study=study,
        training=replace(training, start=start),
        space=study.space or context.space,
        metric=context.settings.metric,
        mode=context.settings.mode,
        trials=study.trials or context.definition.trials,
        recorded=before,
        on_start=watch.trial,
        rules=context.rules(),
        warm=of_customer(context.definition.warm_start, study.customer.id),
    )


class ignore_warnings(warnings.catch_warnings):  # noqa: N801  # reads as the context manager that it is
    """Warnings of the models stay out of the user's terminal; what matters is in the records."""

    def __enter__(self) -> Any:
        entered = super().__enter__()
        warnings.simplefilter("ignore")
        return entered
