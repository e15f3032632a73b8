"""The Tune trainable of a spread trial: the same training code, each step a report.

A worker keeps its customer: trials of the same customer on a reused actor do not load it again. A state is saved
through Tune about every `CHECKPOINT_S` seconds, so that a killed trial goes on from there.
"""

from __future__ import annotations

import json
import tempfile
import time
import traceback
from typing import Any

from tuning.definition import Definition
from tuning.epochs import Epoch
from tuning.errors import CustomerError, StudyError
from tuning.run import read_plan
from tuning.seeds import trial_seed
from tuning.spread.adapters import REPORT
from tuning.spread.state import read_state, write_state
from tuning.storage import RunDirectory
from tuning.study import Study, worker_name
from tuning.worker import Workshop, heed_sigterm, quiet

CHECKPOINT_S = 5.0


def spread_trainable(uri: str, epoch: Epoch, name: str, definition: Definition | None, pause: float) -> Any:
    """The trainable of one trial; its name carries the run. pause: seconds between checkpoints."""

    def trainable(config: dict[str, Any]) -> None:
        heed_sigterm()
        run_trial(uri, epoch, definition, config, pause)

    trainable.__name__ = name
    return trainable


def run_trial(uri: str, epoch: Epoch, definition: Definition | None, config: dict[str, Any], pause: float) -> None:
    """One trial, every step reported; an exception of the user's code is reported too, and not tried again."""
    from ray import tune

    steps = _steps(uri, epoch, definition, config, pause)
    while True:
        try:
            with quiet():
                found = next(steps, None)
        except (Exception, SystemExit) as raised:
            known = isinstance(raised, CustomerError | StudyError)
            reason = str(raised) if known else f"{type(raised).__name__}: {raised}"[:500]
            found = {"failed": reason, "error": None if known else traceback.format_exc()}, None
        if found is None:
            return
        report, folder = found
        # Outside of the try: Tune ends a stopped trial by a SystemExit from here.
        checkpoint = tune.Checkpoint.from_directory(folder) if folder else None
        tune.report({REPORT: json.dumps(report)}, checkpoint=checkpoint)
        if "failed" in report:
            return


def _steps(uri: str, epoch: Epoch, definition: Definition | None, config: dict[str, Any], pause: float) -> Any:
    workshop, studies = _workshop(uri, epoch, definition)
    study = studies[config["study"]]
    training = workshop.training(workshop.data(study.customer))
    params, state = config["config"], _restored(workshop.directory, config)
    steps = iter(training.start(params, trial_seed(study.seed, config["trial"]), state["state"] if state else None))
    spent, cpu = (state["seconds"], state["fit_seconds"]) if state else (0.0, 0.0)
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
            "full": training.full_steps(params),
            "race": training.race_steps(params, study.space or workshop.space),
            "prefix": training.best_prefix(params),
            "fit_seconds": cpu,
            "worker": worker_name(),
        }
        if step.get_state is None or time.monotonic() - saved < pause:
            yield report, None
            continue
        with tempfile.TemporaryDirectory() as folder:
            content = {"state": step.get_state(), "seconds": spent, "fit_seconds": cpu}
            write_state(folder, content)
            yield report, folder
        saved = time.monotonic()


def _restored(directory: RunDirectory, config: dict[str, Any]) -> dict[str, Any] | None:
    """The state of this trial's last checkpoint: Tune's own after a lost worker, the journal's after a lost driver."""
    from ray import tune

    checkpoint = tune.get_checkpoint()
    path = str(checkpoint.path) if checkpoint is not None else config["checkpoint"]
    return read_state(directory, path) if path else None


_OPEN: dict[tuple[str, str], tuple[Workshop, dict[str, Study]]] = {}


def _workshop(uri: str, epoch: Epoch, definition: Definition | None) -> tuple[Workshop, dict[str, Study]]:
    """This process's workshop of a run, opened once: it keeps the customer at hand."""
    key = (uri, epoch.folder)
    if key not in _OPEN:
        _OPEN.clear()
        _OPEN[key] = _open(uri, epoch, definition)
    return _OPEN[key]


def _open(uri: str, epoch: Epoch, definition: Definition | None) -> tuple[Workshop, dict[str, Study]]:
    directory = RunDirectory(uri)
    settings, studies, _ = read_plan(directory, epoch)
    return Workshop.open(directory, epoch, settings, definition), {study.id: study for study in studies}
