"""Runs through MLflow's public client: tracking servers, and databases whose tables the bulk writer cannot fill.

A server chooses run ids itself, so our key is the tag `tuning.key`; a run is looked for before it is made.
A run is RUNNING until everything is in it, so one that an outage cut short is completed, not repeated. What a
server made twice nevertheless (it committed long after we had given up waiting) `settle` finds and deletes.
"""

from __future__ import annotations

import socket
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies

from tuning.storage.names import mask
from tuning.tracking.identity import TrackedSearch, experiment_name
from tuning.tracking.mlflow_limits import batches
from tuning.tracking.models import ModelLogger
from tuning.tracking.stores.database import client
from tuning.tracking.stores.store import ACTIVE, EXPERIMENT_TAGS, DeletedExperimentError, RejectedError, Store
from tuning.tracking.tracked_runs import (
    BEST_TAG,
    KEY_TAG,
    KIND_TAG,
    PARENT_TAG,
    POOLED,
    RUNNING,
    SEARCH_TAG,
    STUDY,
    SUMMARY,
    TRIAL,
    TRIALS,
    USER_TAG,
    KnownRun,
    TrackedRun,
    is_surplus,
    replaces,
    user,
)

if TYPE_CHECKING:
    from mlflow.entities import Run

THREADS = 4  # more wait for each other in a server on SQLite
PAGE = 1000
PATIENCE_S = 2.0
PORTS = {"http": 80, "https": 443}
CONNECT_S = 5.0
REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST")

T = TypeVar("T")


def reach(tracking_uri: str) -> None:
    """Raise `OSError` when nobody listens at a server's address.

    MLflow would say so too, after imports of two core-seconds that the fits can use better.
    """
    parts = urlsplit(tracking_uri)
    if parts.scheme not in PORTS or not parts.hostname or getproxies():
        return
    try:
        socket.create_connection((parts.hostname, parts.port or PORTS[parts.scheme]), CONNECT_S).close()
    except OSError as error:
        raise OSError(f"The tracking server {mask(tracking_uri)} cannot be reached: {error}") from error


class ClientStore(Store):
    """The runs of studies first, then those of trials, each kind side by side in a few threads."""

    batch = 100
    niceness = 5  # a run costs 20 times what it costs in bulk: with this, all of them 2 % of two busy cores

    def __init__(
        self, tracking_uri: str, search: TrackedSearch, artifacts: str | None, note: str | None = None
    ) -> None:
        self.note = note
        self.client = client(tracking_uri)
        self.experiment = self._experiment(experiment_name(search.experiment), artifacts)
        self.search = search
        self.found: dict[str, KnownRun] = {}  # key → run, of everything seen in this session
        self.complete: set[str] = set()  # studies whose trials on the server are all in `found`
        self.unsure: set[str] = set()  # studies about which an answer got lost
        self.unsettled: set[str] = set()  # studies about which one was lost at any time
        self._remember(f"{_tag_equals(SEARCH_TAG, search.id())} and {_tag_equals(KIND_TAG, STUDY)}")

    def write(self, runs: Sequence[TrackedRun], done: Callable[[TrackedRun], None]) -> None:
        studies: defaultdict[str, list[TrackedRun]] = defaultdict(list)
        for run in runs:
            studies[run.parent or run.key].append(run)
        failures: list[tuple[str, Exception]] = []
        ids: dict[str, str] = {}  # study → MLflow's id of its run, once that is there
        with ThreadPoolExecutor(THREADS) as pool:
            opened = pool.map(
                lambda study: self._attempt(study, failures, partial(self._open, study, studies[study])), studies
            )
            ids.update((study, run_id) for study, run_id in zip(studies, opened, strict=True) if run_id)
            for run in runs:
                if run.key in ids:
                    done(run)
            trials = [run for run in runs if run.parent in ids]
            put = pool.map(
                lambda run: self._attempt(run.parent, failures, partial(self._put, run, ids[run.parent])), trials
            )
            for run, run_id in zip(trials, put, strict=True):
                if run_id:
                    done(run)
        outages = [(study, failure) for study, failure in failures if not isinstance(failure, RejectedError)]
        for study, _ in outages:  # of which nothing is believed before it was looked for
            for key in [study, *(run.key for run in studies[study])]:
                self.found.pop(key, None)
        if failures:
            raise (outages or failures)[0][1]

    def mark_best(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self.found:
                _retried(partial(self.client.set_tag, self.found[key].run_id, BEST_TAG, "true"))

    def run_id(self, key: str) -> str:
        return self.found[key].run_id

    def log_artifacts(self, key: str, folder: Path) -> None:
        self.client.log_artifacts(self.run_id(key), str(folder))

    def models(self) -> ModelLogger:
        return ModelLogger(self.client, self.experiment, self.search)

    def settle(self) -> None:
        for study in sorted(self.unsettled):
            self._look_up(study)
            if study in self.found:
                self._remember(_tag_equals(PARENT_TAG, self.found[study].run_id))
            self.unsettled.discard(study)

    def _experiment(self, name: str, artifacts: str | None) -> str:
        """The experiment's id; it is created when it is missing."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self.client.create_experiment(name, artifacts, EXPERIMENT_TAGS))
            except MlflowException as error:
                # Another search may have created it in the meantime, or it was created and the reply got lost.
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise error
        if found.lifecycle_stage != ACTIVE:
            raise DeletedExperimentError(name, str(found.experiment_id))
        return str(found.experiment_id)

    def _attempt(self, study: str, failures: list[tuple[str, Exception]], write: Callable[[], str]) -> str | None:
        """What `write` gives; None when it failed, which is noted, or when an outage keeps it from trying."""
        if any(not isinstance(failure, RejectedError) for _, failure in failures):
            return None
        try:
            return write()
        except RejectedError as refusal:
            failures.append((study, refusal))
        except Exception as outage:  # lost connection, time-out, 5xx, a run that somebody deleted, …
            self.unsure.add(study)
            self.unsettled.add(study)
            self.complete.discard(study)
            failures.append((study, outage))
        return None

    def _open(self, study: str, runs: Sequence[TrackedRun]) -> str:
        """Write a study's own run if it is among the runs, and know its trials on the server if any are; its id."""
        if study in self.unsure or runs[0].kind in (SUMMARY, POOLED):
            self._look_up(study)
            self.unsure.discard(study)
        new = study not in self.found
        own = [run for run in runs if run.key == study]
        for run in own:
            self._put(run, None)
        if study not in self.found:
            raise RejectedError("its customer's run was refused")
        if study not in self.complete and len(runs) > len(own):
            if not new:
                self._remember(_tag_equals(PARENT_TAG, self.found[study].run_id))
            self.complete.add(study)
        return self.found[study].run_id

    def _put(self, run: TrackedRun, parent: str | None) -> str:
        """Write a run unless it is there; its id."""
        from mlflow.exceptions import MlflowException

        there = self.found.get(run.key)
        if there is not None and not replaces(run, there):
            return there.run_id
        # Params cannot be changed, so what is written anew gets a new run; a study's trials move there.
        again = run.kind in (STUDY, TRIAL) and there is not None and there.status != RUNNING
        outdated = there if again else None
        if outdated is not None:
            there = None
        tags = {USER_TAG: user(), **run.tags, KEY_TAG: run.key, SEARCH_TAG: self.search.id()}
        if parent is not None:
            tags[PARENT_TAG] = parent
        try:
            if there is None:
                created = self.client.create_run(self.experiment, run.start, tags, run.name)
                there = KnownRun(created.info.run_id, RUNNING)
                if outdated is None:
                    self.found[run.key] = there
                tags = {}
            for batch in batches(run.params, run.metrics, tags):
                _retried(partial(self.client.log_batch, there.run_id, **batch, synchronous=True))
            if run.status != RUNNING:
                _retried(partial(self.client.set_terminated, there.run_id, run.status, run.end))
                self.found[run.key] = KnownRun(there.run_id, run.status, run.trials, run.end)
            if outdated is not None:
                condition = f"{_tag_equals(PARENT_TAG, outdated.run_id)} and {_tag_equals(BEST_TAG, 'true')}"
                for former in self.client.search_runs([self.experiment], condition):
                    self.client.delete_tag(former.info.run_id, BEST_TAG)
                self._remove(outdated.run_id, there.run_id)
                if run.children is not None or outdated.trials > run.trials:
                    self._remove_surplus(run, there.run_id)
            return there.run_id
        except MlflowException as error:
            if error.error_code not in REFUSALS:
                raise
            if there is not None:
                self.client.set_tag(there.run_id, f"{KEY_TAG}.refused", str(error)[:500])
                self.client.set_terminated(there.run_id, "FAILED", run.end)
            raise RejectedError(str(error)) from error

    def _look_up(self, study: str) -> None:
        """Learn whether a study's own run is there; the bulk writer's runs have our key as their id."""
        self.found.pop(study, None)
        if not self._remember(_tag_equals(KEY_TAG, study)):
            self._remember(f"attributes.run_id = '{study}'")

    def _remember(self, condition: str) -> int:
        """Take note of the runs that fulfil a condition; of several with one key, one stays."""
        same: defaultdict[str, list[Run]] = defaultdict(list)
        token = None
        while True:
            page = _retried(
                partial(self.client.search_runs, [self.experiment], condition, max_results=PAGE, page_token=token)
            )
            for run in page:
                same[run.data.tags.get(KEY_TAG, run.info.run_id)].append(run)
            token = page.token
            if not token:
                break
        for key, runs in same.items():
            runs.sort(key=lambda run: (run.info.status == RUNNING, -_trials(run), run.info.start_time, run.info.run_id))
            kept = runs[0].info
            for extra in runs[1:]:
                self._remove(extra.info.run_id, kept.run_id)
            self.found[key] = KnownRun(kept.run_id, kept.status, _trials(runs[0]), kept.end_time)
        return len(same)

    def _remove(self, extra: str, kept: str) -> None:
        """Delete a run that is there twice; what hangs below it moves to the one that stays."""
        for child in self.client.search_runs([self.experiment], _tag_equals(PARENT_TAG, extra), max_results=50_000):
            self.client.set_tag(child.info.run_id, PARENT_TAG, kept)
        self.client.delete_run(extra)

    def _remove_surplus(self, study: TrackedRun, run_id: str) -> None:
        """Delete the trials of a study that it has no more, or that are none of its best ones any more."""
        for child in self.client.search_runs([self.experiment], _tag_equals(PARENT_TAG, run_id), max_results=50_000):
            key = child.data.tags.get(KEY_TAG, child.info.run_id)
            if is_surplus(study, key, child.info.end_time):
                self.client.delete_run(child.info.run_id)
                self.found.pop(key, None)


def _trials(run: Run) -> float:
    """How far a study's run on the server has come."""
    return float(run.data.metrics.get(TRIALS, 0.0))


def _retried(call: Callable[[], T]) -> T:
    """A call that may be repeated, repeated once when it failed at once; long waits are the caller's business."""
    from mlflow.exceptions import MlflowException

    started = time.monotonic()
    try:
        return call()
    except Exception as error:
        refused = isinstance(error, MlflowException) and error.error_code in REFUSALS
        if refused or time.monotonic() - started > PATIENCE_S:
            raise
        return call()


def _tag_equals(tag: str, value: str) -> str:
    return f"tags.{tag} = '{value}'"  # values are hexadecimal ids: nothing to escape
