"""What a spread trial's worker reports: one report per step, and one that says why training failed."""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Iterator
from contextlib import closing
from typing import Any

from search_spaces import SearchSpace
from tuning.errors import CustomerError, StudyError
from tuning.execution.study_run import ignore_warnings
from tuning.steps import Step
from tuning.study.core import NO_STEP
from tuning.study.interfaces import Configuration
from tuning.study.local_trial import END, is_ctrl_c
from tuning.study.record import worker_name
from tuning.study.study import Training
from tuning.wording import raised, stack

REPORT = "report"  # the key of a worker's report that holds the step, as JSON: Tune flattens nested results
#: A report, and the state to save with it where one is due.
Reported = tuple[dict[str, Any], dict[str, Any] | None]


def step_reports(
    training: Training,
    config: Configuration,
    seed: int,
    space: SearchSpace,
    restored: dict[str, Any] | None = None,
    pause: float = math.inf,
) -> Iterator[Reported]:
    """Train one configuration and report each step; an exception becomes the last report.

    restored: the state that an earlier worker has saved; training goes on from there. pause: seconds between states.
    """
    known: dict[str, Any] = {}
    spent, cpu = (restored["seconds"], restored["fit_seconds"]) if restored else (0.0, 0.0)
    saved, count = time.monotonic(), 0
    steps: Iterator[Step] | None = None
    while True:
        wall, before = time.perf_counter(), time.process_time()
        try:
            with ignore_warnings():
                if steps is None:
                    known = _shape(training, config, space)
                    steps = iter(training.start(config, seed, restored["state"] if restored else None))
                step: Any = next(steps, END)
                report = {} if step is END else _figures(step)
        except BaseException as error:  # sys.exit(), or the panic of a Rust library: it must not end the worker
            if is_ctrl_c(error):
                raise
            yield {**known, **_failed(error, unusable=isinstance(error, StudyError))}, None
            return
        if step is END:
            if not count and restored is None:
                yield {**known, "failed": NO_STEP, "error": None}, None
            return
        count, spent, cpu = count + 1, spent + time.perf_counter() - wall, cpu + time.process_time() - before
        report = {**known, **report, "seconds": spent, "fit_seconds": cpu, "worker": worker_name()}
        if step.get_state is None or time.monotonic() - saved < pause:
            yield report, None
            continue
        yield report, {"state": step.get_state(), "seconds": spent, "fit_seconds": cpu}
        saved = time.monotonic()


def until_failure(reports: Generator[Reported, None, None]) -> Generator[Reported, None, None]:
    """The reports of a trial whose worker may fail to prepare it; an exception becomes the last report."""
    try:
        with ignore_warnings():
            found = next(reports, None)
    except BaseException as error:
        if is_ctrl_c(error):
            raise
        found = _failed(error, unusable=isinstance(error, CustomerError | StudyError)), None
    with closing(reports):
        if found is not None:
            yield found
            yield from reports


def _failed(error: BaseException, *, unusable: bool) -> dict[str, Any]:
    """Why a trial failed. unusable: the study cannot go on, whatever the configuration."""
    if unusable:
        return {"failed": str(error), "error": None, "unusable": True}
    return {"failed": raised(error), "error": stack(error)}


def _shape(training: Training, config: Configuration, space: SearchSpace) -> dict[str, Any]:
    """What the driver has to know of a trial before its first step."""
    shape = training.shape(config)
    return {
        "full": shape.full_steps,
        "race": training.race_steps(config, space),
        "prefix": shape.best_prefix,
        "progress": shape.progress,
    }


def _figures(step: Step) -> dict[str, Any]:
    """A step's numbers, as JSON can hold them; an exception where one is none."""
    return {
        "step": int(step.step),
        "score": float(step.score),
        "folds": [float(score) for score in step.fold_scores],
        "figures": {name: float(figure) for name, figure in step.metrics.items()},
    }
