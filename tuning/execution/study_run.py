"""What a worker does with one study: load its customer, run its trials, choose and refit the winner."""

from __future__ import annotations

import contextlib
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

from tuning.data.customers import Customer
from tuning.data.loading import Loader, read_always
from tuning.definition.definition import Definition, define
from tuning.errors import CustomerError, StorageError, StudyError
from tuning.evaluation.winner import StudyOutcome, choose, conclude
from tuning.models.base import Family
from tuning.models.entries import own_families
from tuning.planning.model_space import parameters_by_model
from tuning.planning.plan import resolve_space
from tuning.records.ownership import Term
from tuning.records.schema import FAILED, NO_MODEL, OK, STOPPED, Record, StudyRecord, TrialRecord
from tuning.runs.plan_file import RunSettings, frozen_definition
from tuning.steps import Step
from tuning.storage.background import BackgroundWriter
from tuning.storage.run_directory import RunDirectory, slug
from tuning.study.study import SCORE, RecordedStudy, Study, Training, versions, worker_name
from tuning.study.warm_start import of_customer
from tuning.user_code import apply_prepare, load_function


@dataclass
class WorkerContext:
    """What a worker keeps while it goes through its studies: the definition, the space and the customer at hand."""

    directory: RunDirectory
    definition: Definition
    settings: RunSettings
    space: Any
    loader: Loader
    filing: BackgroundWriter
    own: Mapping[str, Family] = field(default_factory=dict)
    objective: Callable[..., Any] | None = None
    prepare: Callable[..., Any] | None = None
    metric_function: Callable[..., Any] | None = None
    _customer: Customer | None = None
    _data: Any = None

    @classmethod
    def open(
        cls,
        directory: RunDirectory,
        term: Term,
        settings: RunSettings,
        definition: Definition | None = None,
        studies: Sequence[Study] = (),
        at_hand: Callable[[str], Any] = read_always,
    ) -> WorkerContext:
        """studies: those to come, whose keyed customers are read together. at_hand: as of a `Loader`."""
        from tuning.evaluation.objective import resolve_objective

        definition = definition or frozen_definition(directory, term)
        own = own_families(definition.models, directory, definition.allow_pickle)
        return cls(
            directory=directory,
            definition=definition,
            settings=settings,
            space=resolve_space(definition, settings.task, settings.metric, own)[0],
            loader=Loader(definition, [study.customer for study in studies], at_hand),
            filing=BackgroundWriter(directory),
            own=own,
            objective=None if definition.objective is None else resolve_objective(definition.objective),
            prepare=load_function(definition.prepare, directory) if definition.prepare else None,
            metric_function=load_function(definition.metric, directory)
            if definition.own_metric and definition.metric
            else None,
        )

    def data(self, customer: Customer) -> Any:
        """The customer's `StudyData`, or its frame for an objective; `CustomerError` when it cannot be used."""
        if self._customer != customer:
            self._customer, self._data = None, None
            self._data = self._load(customer)
            self._customer = customer
        return self._data

    def _load(self, customer: Customer) -> Any:
        if not customer.files:
            return None
        frame = self.loader.read(customer)
        if self.prepare is not None:
            frame = apply_prepare(self.prepare, frame)
        if self.objective is not None:
            return frame
        from tuning.evaluation.study_data import keep_scorable_folds, study_data

        assert self.settings.task is not None
        data = study_data(frame, self.definition, self.settings.task, customer.id, self.own)
        return keep_scorable_folds(data, self.metric(data))

    def metric(self, data: Any) -> Any:
        from tuning.evaluation.metrics import Metric

        return Metric(self.settings.metric, data.task, self.metric_function)

    def simple_first(self, study: Study) -> list[str] | None:
        """The order of families for the rule of one standard error; None where the best score wins."""
        if self.definition.winner != "one_standard_error":
            return None
        return list(parameters_by_model(study.space or self.space))

    def rules(self) -> list[Any]:
        """New stopping rules for one study."""
        return stopping_rules(self.definition, self.settings.mode)

    def training(self, data: Any) -> Training:
        """How trials train on this customer's data."""
        if self.objective is not None:
            return self._objective_training(self.objective, data)
        from tuning.evaluation.study_data import full_steps, train
        from tuning.models.base import SteppedFamily

        def stepped(config: Mapping[str, Any]) -> SteppedFamily | None:
            found = data.family(config["model"])
            return found if isinstance(found, SteppedFamily) else None

        metric = self.metric(data)
        return Training(
            start=lambda config, seed, state: train(config, data, metric, seed, state),
            family=lambda config: str(config["model"]),
            full_steps=lambda config: full_steps(config, data),
            best_prefix=lambda config: stepped(config) is not None,
            progress=lambda config: stepped(config) is not None,
            frozen=lambda config: found.frozen | {found.length} if (found := stepped(config)) else None,
            length=lambda config: found.length if (found := stepped(config)) else None,
        )

    def _objective_training(self, objective: Callable[..., Any], data: Any) -> Training:
        from tuning.evaluation.objective import steps_of

        name = self.settings.metric

        def start(config: Mapping[str, Any], seed: int, state: Any) -> Iterator[Step]:
            # A space that came from Ray's notation may be nested, and so is what its function expects.
            return steps_of(objective, self.space.nest(config), name, seed, data, state)

        return Training(
            start=start,
            family=lambda config: str(config.get("model", "objective")),
            full_steps=lambda _: self.definition.steps,
            best_prefix=lambda _: False,
            progress=lambda _: True,
        )


def stopping_rules(definition: Definition, mode: Any) -> list[Any]:
    """New stopping rules for one study: the definition's, and the seconds of a comparison. mode: "max" or "min"."""
    from schedulers import stopping

    wanted = dict(definition.stop or {})
    if definition.compare is not None and definition.compare.seconds is not None:
        wanted["study_time"] = {"seconds": definition.compare.seconds}
    return [spec.build(metric=SCORE, mode=mode) for spec in stopping.parse(wanted)]


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
        ended = ended or over or getattr(loop, "over", "")
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


def warm_up(context: WorkerContext, study: Study) -> bool:
    """Load and start up all libraries that studies like this one use, so that no limit of time counts it.

    A few trials on twelve made-up rows, and a step of every family. False when that is not possible: an objective
    loads what only it knows.
    """
    import numpy as np
    import pandas as pd

    task = context.settings.task
    if context.objective is not None or task is None:
        return False
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"number": rng.normal(size=12), "text": list("abcdefabcdef")})
    frame["target"] = rng.normal(size=12) if task == "regression" else [0, 1] * 6
    with contextlib.suppress(Exception), ignore_warnings():
        from tuning.evaluation.study_data import study_data, train
        from tuning.models.customer_model import dump_skops

        dump_skops([])
        plain = {"name": "warm-up", "data": "-", "target": "target", "split": {"folds": 2}, "trials": 3}
        definition = define({**plain, "save_models": False})
        data = study_data(frame, definition, task, "warm-up", context.own)
        customer = Customer("warm-up")
        other = replace(context, definition=definition, _customer=customer, _data=data)
        for _ in run_study(other, replace(study, id="warm-up", customer=customer, trials=3), []):
            pass
        seen = set()
        for config in ((study.space or context.space).sample(rng) for _ in range(100)):
            if config.get("model") not in seen:
                seen.add(config.get("model"))
                next(iter(train(config, data, context.metric(data), 0)), None)
    return True


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
