"""Records for the tests of the MLflow copy, and reading a store back as a user would."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from typing import Any, cast

import pytest

from tuning.basics.timing import USUAL, Timing
from tuning.records.lease import Lease
from tuning.records.ownership import FORMAT, Term, claim_file, this_process
from tuning.records.schema import FINISHED, OK, Record, StepRecord, StudyRecord, TrialRecord
from tuning.records.tables import encode
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.child import LiveCopy
from tuning.tracking.follow import CopyLoop, RunParts
from tuning.tracking.settings import CopyStatus, TrackingSettings, default_artifacts, default_tracking_uri
from tuning.tracking.stores import tables

# A copy leaves the cores to everybody else: on a busy machine, what takes it seconds takes minutes.
MINUTES = 300.0
RUN = "weekly-20261120"
STARTED = 1_795_000_000.25
TAG_COLUMNS = tables.COLUMNS["tags"]


TERM = Term(1, "0001", owner=this_process())


@contextlib.contextmanager
def open_run(directory: RunDirectory, timing: Timing = USUAL) -> Iterator[Lease]:
    """A run that goes on: this process is its owner, and what `write_part` writes are its records."""
    directory.claim(claim_file(TERM.number), json.dumps({**asdict(TERM), "format": FORMAT}).encode())
    directory.write(TERM.plan, b"")
    with Lease(directory, TERM, timing).hold() as lease:
        yield lease


@contextlib.contextmanager
def tracking_in(uri: str) -> Iterator[None]:
    """MLflow's functions work on this store; after that, on what the next one chooses: MLflow sets a variable, too."""
    import mlflow

    mlflow.set_tracking_uri(uri)
    try:
        yield
    finally:
        mlflow.set_tracking_uri(None)


def live_copy(directory: RunDirectory, tracking_uri: str | None, experiment: str = "churn") -> LiveCopy:
    """The copy beside an open run, started."""
    result = LiveCopy(settings_for(directory, tracking_uri, experiment, RUN), TERM, patience=MINUTES)
    result.start()
    return result


class GivenParts(RunParts):
    """Some parts, of any run."""

    def __init__(self, directory: RunDirectory, names: Iterable[str]) -> None:
        super().__init__(directory, TERM, threading.Event())
        self.ended.set()
        self._names = list(names)

    def look(self) -> list[str]:
        self.complete = True
        return self._names


def sync(settings: TrackingSettings, parts: Iterable[str], **more: Any) -> CopyStatus:
    """Copy some parts."""
    return CopyLoop(settings, GivenParts(RunDirectory(settings.directory), parts), **more).run()


def follow(settings: TrackingSettings, ended: threading.Event | None = None, **more: Any) -> CopyStatus:
    """Copy the open run until it has ended."""
    parts = RunParts(RunDirectory(settings.directory), TERM, ended or threading.Event())
    return CopyLoop(settings, parts, **more).run()


def settings_for(
    directory: RunDirectory, uri: str | None, experiment: str, run: str, *, models: bool = False
) -> TrackingSettings:
    """The settings of a copy of all trials."""
    uri = uri or default_tracking_uri(directory)
    artifacts = default_artifacts(directory, uri)
    return TrackingSettings(directory.uri, uri, experiment, run, models=models, artifacts=artifacts)


def without_bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no database has all that the bulk writer needs, so MLflow's client writes."""
    monkeypatch.setitem(cast(dict[str, Any], tables.COLUMNS), "tags", (*TAG_COLUMNS, "from_the_future"))


def trial(study: str = "acme", number: int = 0, **changes: Any) -> TrialRecord:
    """A finished trial with three steps; the score grows with its number."""
    score = 0.7 + number / 1000
    values: dict[str, Any] = {
        "run": RUN,
        "study": study,
        "customer": study,
        "trial": number,
        "attempt": 1,
        "suggested": 2 * number,
        "told": 2 * number + 1,
        "config": {"model": {"max_depth": 3 + number, "eta": 0.1}, "subsample": 0.8},
        "family": "xgboost",
        "algorithm": "optuna",
        "scheduler": "asha",
        "metric": "roc_auc",
        "mode": "max",
        "state": FINISHED,
        "reason": None,
        "steps": [StepRecord(n, score - (3 - n) / 100, n / 10, {"log_loss": 0.5 - n / 100}) for n in (1, 2, 3)],
        "best_step": 3,
        "score": score,
        "fold_scores": (score - 0.01, score + 0.01),
        "metrics": {"log_loss": 0.47},
        "study_seed": 7,
        "seed": 1000 + number,
        "started": STARTED + number,
        "seconds": 0.5,
        "fit_seconds": 0.25,
        "suggest_seconds": 0.001,
        "worker": "host:1",
        "versions": "python=3.11",
    }
    return TrialRecord(**{**values, **changes})


def study(name: str = "acme", trials: int = 5, **changes: Any) -> StudyRecord:
    """The record of a study whose last trial won."""
    values: dict[str, Any] = {
        "run": RUN,
        "study": name,
        "customer": name,
        "algorithm": "optuna",
        "scheduler": "asha",
        "study_seed": 7,
        "status": OK,
        "reason": None,
        "task": "binary",
        "metric": "roc_auc",
        "mode": "max",
        "family": "xgboost",
        "trial": trials - 1,
        "best_step": 3,
        "config": {"model": {"max_depth": 2 + trials, "eta": 0.1}, "subsample": 0.8},
        "cv_score": 0.8,
        "cv_error": 0.01,
        "test_score": 0.79,
        "baseline_cv_score": 0.75,
        "baseline_test_score": 0.74,
        "gain": 0.05,
        "trials": trials,
        "stopped": 1,
        "failed": 0,
        "rows": 400,
        "test_rows": 100,
        "features": 12,
        "started": STARTED,
        "seconds": 9.5,
        "fit_seconds": 3.0,
        "model_path": None,
        "model_sha256": None,
        "worker": "host:1",
        "versions": "python=3.11",
    }
    if changes.get("model_path"):
        values["final_fit"] = "search"
    return StudyRecord(**{**values, **changes})


def write_part(directory: RunDirectory, name: str, *records: Record) -> str:
    """A record part; its name in the run directory."""
    part = f"records/0001/{name}.parquet"
    directory.write(part, encode(records))
    return part


def write_parts(directory: RunDirectory, studies: int, trials: int) -> list[str]:
    """A trial part and a study part for each of some studies."""
    parts = []
    for number in range(studies):
        name = f"c{number:04d}"
        parts.append(write_part(directory, f"trials-{name}", *(trial(name, n) for n in range(trials))))
        parts.append(write_part(directory, f"studies-{name}", study(name, trials)))
    return parts


def until(condition: Callable[[], bool], seconds: float = MINUTES) -> None:
    """Wait for a condition; it not becoming true in time is the failure."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def runs_in(tracking_uri: str, experiment: str = "churn", condition: str = "") -> list[Any]:
    """All active runs of an experiment, through MLflow's public client."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=tracking_uri)
    found = client.get_experiment_by_name(experiment)
    if found is None:
        return []
    runs: list[Any] = []
    token = None
    while True:
        page = client.search_runs([found.experiment_id], condition, max_results=1000, page_token=token)
        runs += page
        token = page.token
        if not token:
            return runs


def by_name(tracking_uri: str, experiment: str = "churn", condition: str = "") -> dict[str, Any]:
    """Active runs by their name; two with one name are an error."""
    runs = runs_in(tracking_uri, experiment, condition)
    result = {run.info.run_name: run for run in runs}
    assert len(result) == len(runs), "two runs have the same name"
    return result
