"""The Tune trainable of a spread trial: the same training code, each step a report.

A worker keeps the customers it has loaded: their other trials on a reused actor do not load them again. A state is
saved through Tune about every `CHECKPOINT_S` seconds, so that a killed trial goes on from there.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tuning.data.customers import Customer
from tuning.definition.definition import Definition
from tuning.execution.context import WorkerContext
from tuning.execution.spread.adapters import REPORT
from tuning.execution.spread.reports import Reported, step_reports, until_failure
from tuning.execution.spread.sharing import fetch
from tuning.execution.spread.state import read_state, write_state
from tuning.execution.study_run import unblock_sigterm
from tuning.records.ownership import Term
from tuning.runs.plan_file import read_plan
from tuning.seeds import trial_seed
from tuning.storage.run_directory import RunDirectory
from tuning.study.study import Study

CHECKPOINT_S = 5.0
KEPT_BYTES = 200e6  # of customers' files; in memory they are several times as large


def spread_trainable(uri: str, term: Term, name: str, definition: Definition | None, pause: float, shared: Any) -> Any:
    """The trainable of one trial; its name carries the run.

    pause: seconds between checkpoints. shared: has the run's own files in the object store.
    """

    def trainable(config: dict[str, Any]) -> None:
        unblock_sigterm()
        run_trial(uri, term, definition, config, pause, shared)

    trainable.__name__ = name
    return trainable


def run_trial(
    uri: str, term: Term, definition: Definition | None, config: dict[str, Any], pause: float, shared: Any
) -> None:
    """One trial, every step reported; an exception of the user's code is reported too, and not tried again."""
    from ray import tune

    for report, state in until_failure(_reports(uri, term, definition, config, pause, shared)):
        # Tune ends a stopped trial by a SystemExit from `tune.report`.
        if state is None:
            tune.report({REPORT: json.dumps(report)})
            continue
        with tempfile.TemporaryDirectory() as folder:
            write_state(folder, state)
            tune.report({REPORT: json.dumps(report)}, checkpoint=tune.Checkpoint.from_directory(folder))


def _reports(
    uri: str, term: Term, definition: Definition | None, config: dict[str, Any], pause: float, shared: Any
) -> Iterator[Reported]:
    opened = _open_studies(uri, term, definition, shared)
    context, study = opened.context, opened.studies[config["study"]]
    training = context.training(opened.data(study.customer))
    seed, space = trial_seed(study.seed, config["trial"]), study.space or context.space
    yield from step_reports(training, config["config"], seed, space, _restored(context.directory, config), pause)


def _restored(directory: RunDirectory, config: dict[str, Any]) -> dict[str, Any] | None:
    """The state of this trial's last checkpoint: Tune's own after a lost worker, the journal's after a lost driver."""
    from ray import tune

    checkpoint = tune.get_checkpoint()
    if checkpoint is None and not config["checkpoint"]:
        return None
    return read_state(directory, str(checkpoint.path) if checkpoint else directory.path(config["checkpoint"]))


@dataclass
class OpenStudies:
    """What this process keeps between trials: the run's worker context and the customers that it used last."""

    context: WorkerContext
    studies: Mapping[str, Study]
    _kept: dict[str, tuple[int, Any]] = field(default_factory=dict)

    def data(self, customer: Customer) -> Any:
        """The customer's data, loaded once; of many customers those used last, up to `KEPT_BYTES` of their files."""
        size, data = self._kept.pop(customer.id, (customer.size, None))
        self._kept[customer.id] = (size, self.context.data(customer) if data is None else data)
        while len(self._kept) > 1 and sum(size for size, _ in self._kept.values()) > KEPT_BYTES:
            del self._kept[next(iter(self._kept))]
        return self._kept[customer.id][1]


_OPEN: dict[tuple[str, str], OpenStudies] = {}


def _open_studies(uri: str, term: Term, definition: Definition | None, shared: Any) -> OpenStudies:
    """This process's open studies of a run, opened once."""
    key = (uri, term.folder)
    if key not in _OPEN:
        _OPEN.clear()
        directory = RunDirectory(uri)
        settings, studies, _ = read_plan(directory, term)
        context = WorkerContext.open(directory, term, settings, definition, at_hand=partial(fetch, shared))
        _OPEN[key] = OpenStudies(context, {study.id: study for study in studies})
    return _OPEN[key]
