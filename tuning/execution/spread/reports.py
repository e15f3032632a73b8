"""What a spread trial's worker reports: one report per step, and one that says why training failed."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TypeAlias

from tuning.basics.wording import raised, stack
from tuning.errors import CustomerError, StudyError, reason_of
from tuning.execution.reports import FailureReport, StepReport, TrialLength
from tuning.execution.spread.state import SavedState
from tuning.notes import EndCode
from tuning.steps import Step
from tuning.study.core import NO_STEP
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import is_ctrl_c
from tuning.study.record import worker_name
from tuning.study.study import StudyTraining
from tuning.user_code import ignore_warnings

#: A report, and the state to save with it where one is due.
Reported: TypeAlias = tuple[StepReport | FailureReport, SavedState | None]


def step_reports(
    training: StudyTraining,
    config: Configuration,
    seed: int,
    restored: SavedState | None = None,
    pause: float = math.inf,
) -> Iterator[Reported]:
    """Train one configuration and report each step; an exception becomes the last report.

    restored: what an earlier worker has saved; training goes on from there. pause: seconds between states.
    """
    length: TrialLength | None = None
    made = [*restored.reports] if restored else list[StepReport]()
    spent, cpu = (restored.seconds, restored.fit_seconds) if restored else (0.0, 0.0)
    saved = time.monotonic()
    steps: Iterator[Step] | None = None
    while True:
        wall, before = time.perf_counter(), time.process_time()
        try:
            with ignore_warnings():
                if steps is None or length is None:
                    length = _length(training, config)
                    steps = iter(training.start(config, seed, restored.state if restored else None))
                step = next(steps, None)
                plain = None if step is None else _plain(step)
        except BaseException as error:  # sys.exit(), or the panic of a Rust library: it must not end the worker
            if is_ctrl_c(error):
                raise
            yield _failure(error, length, of_study=isinstance(error, StudyError)), None
            return
        if step is None or plain is None:
            if not made:
                yield FailureReport(NO_STEP, length=length), None
            return
        spent, cpu = spent + time.perf_counter() - wall, cpu + time.process_time() - before
        report = StepReport(plain, spent, cpu, length, worker_name())
        made.append(report)
        if step.get_state is None or time.monotonic() - saved < pause:
            yield report, None
            continue
        yield report, SavedState(step.get_state(), tuple(made))
        saved = time.monotonic()


def until_failure(reports: Generator[Reported, None, None]) -> Generator[Reported, None, None]:
    """The reports of a trial whose worker may fail to prepare it; an exception becomes the last report."""
    found: Reported | None
    try:
        with ignore_warnings():
            found = next(reports, None)
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        found = _failure(error, of_study=isinstance(error, CustomerError | StudyError)), None
    with closing(reports):
        if found is not None:
            yield found
            yield from reports


def _failure(error: BaseException, length: TrialLength | None = None, *, of_study: bool) -> FailureReport:
    if of_study:
        return FailureReport(reason_of(error), of_study=True)
    return FailureReport(EndCode.RAISED(type(error).__name__, error=raised(error)), stack(error), length)


def _length(training: StudyTraining, config: Configuration) -> TrialLength:
    shape = training.shape(config)
    steps, race = int(shape.full_steps), training.race_steps(config)
    return TrialLength(steps, shape.best_prefix, shape.progress, race)


def _plain(step: Step) -> Step:
    """A step in plain numbers and without its state; an exception where one is no number."""
    folds = tuple(float(score) for score in step.fold_scores)
    figures = {name: float(figure) for name, figure in step.metrics.items()}
    return Step(int(step.step), float(step.score), folds, figures)
