"""What a spread trial's worker reports: one report per step, and one that says why training failed."""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import Any

from tuning.errors import CustomerError, StudyError
from tuning.execution.study_run import ignore_warnings
from tuning.study.recorded_study import worker_name
from tuning.study.study import Training
from tuning.study.trial import is_ctrl_c

#: A report, and the state to save with it where one is due.
Reported = tuple[dict[str, Any], dict[str, Any] | None]


def step_reports(
    training: Training,
    config: Mapping[str, Any],
    seed: int,
    space: Any,
    restored: Mapping[str, Any] | None = None,
    pause: float = math.inf,
) -> Iterator[Reported]:
    """Train one configuration and report each step.

    restored: the state that an earlier worker has saved; training goes on from there. pause: seconds between states.
    """
    steps = iter(training.start(config, seed, restored["state"] if restored else None))
    spent, cpu = (restored["seconds"], restored["fit_seconds"]) if restored else (0.0, 0.0)
    saved = time.monotonic()
    while True:
        wall, before = time.perf_counter(), time.process_time()
        step = next(steps, None)
        spent, cpu = spent + time.perf_counter() - wall, cpu + time.process_time() - before
        if step is None:
            return
        report = {
            "step": step.step,
            "score": step.score,
            "seconds": spent,
            "folds": list(step.fold_scores),
            "figures": dict(step.metrics),
            "full": training.full_steps(config),
            "race": training.race_steps(config, space),
            "prefix": training.best_prefix(config),
            "progress": training.progress(config),
            "fit_seconds": cpu,
            "worker": worker_name(),
        }
        if step.get_state is None or time.monotonic() - saved < pause:
            yield report, None
            continue
        yield report, {"state": step.get_state(), "seconds": spent, "fit_seconds": cpu}
        saved = time.monotonic()


def until_failure(reports: Iterator[Reported]) -> Iterator[Reported]:
    """The reports; an exception becomes the last one of them, since the trial must not be tried again."""
    while True:
        try:
            with ignore_warnings():
                found = next(reports, None)
        except BaseException as raised:  # sys.exit(), or the panic of a Rust library: it must not end the worker
            if is_ctrl_c(raised):
                raise
            found = failed_report(raised), None
        if found is None:
            return
        yield found
        if "failed" in found[0]:
            return


def failed_report(raised: BaseException) -> dict[str, Any]:
    """Why training failed; "unusable" when the customer's data is the reason, whatever the configuration."""
    known = isinstance(raised, CustomerError | StudyError)
    reason = str(raised) if known else f"{type(raised).__name__}: {raised}"[:500]
    unusable = isinstance(raised, CustomerError)
    return {"failed": reason, "error": None if known else traceback.format_exc(), "unusable": unusable}
