"""Runs through MLflow's public client: tracking servers, and databases whose tables the bulk writer cannot fill.

A server chooses run ids itself, so our key is the tag `tuning.key`. A run is RUNNING until everything is in it, so one
that an outage cut short is completed, not repeated. What a server made twice nevertheless (it committed long after we
had given up waiting) `settle` finds and deletes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tuning.tracking.mlflow_names import TrackedSearch, experiment_name
from tuning.tracking.models import ModelLogger
from tuning.tracking.stores.database import client
from tuning.tracking.stores.store import ACTIVE, EXPERIMENT_TAGS, DeletedExperimentError, RejectedError, Store
from tuning.tracking.tracked_runs import (
    BEST_TAG,
    KEY_TAG,
    PARENT_TAG,
    RUNNING,
    SEARCH_TAG,
    STUDY,
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
REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST")


class ClientStore(Store):
    """The runs of studies first, then those of trials, each kind in a few threads.

    found: what is in MLflow, by key. lost: keys of runs about which an answer got lost, until they are looked for.
    unsettled: the same, until the end: a server may make a run long after.
    """

    batch = 100

    def __init__(
        self, tracking_uri: str, search: TrackedSearch, artifacts: str | None, note: str | None = None
    ) -> None:
        self.note, self.search = note, search
        self.client = client(tracking_uri)
        self.experiment = self._experiment(experiment_name(search.experiment), artifacts)
        self.found: dict[str, KnownRun] = {}
        self.lost: set[str] = set()
        self.unsettled: set[str] = set()
        self._remember(_tag_equals(SEARCH_TAG, search.id()))
        self._remember(f"attributes.run_id LIKE '{search.prefix}%'")  # the bulk writer's runs have our key as their id

    def write(self, runs: Sequence[TrackedRun], done: Callable[[TrackedRun], None]) -> None:
        failures: list[Exception] = []
        with ThreadPoolExecutor(THREADS) as pool:
            for trials in (False, True):
                some = [run for run in runs if (run.kind == TRIAL) == trials]
                for run, there in zip(some, pool.map(partial(self._attempt, failures), some), strict=True):
                    if there:
                        done(run)
        if failures:
            raise next((each for each in failures if not isinstance(each, RejectedError)), failures[0])

    def mark_best(self, keys: Iterable[str]) -> None:
        for key in keys:
            if key in self.found:
                self.client.set_tag(self.found[key].run_id, BEST_TAG, "true")

    def run_id(self, key: str) -> str:
        return self.found[key].run_id

    def log_artifacts(self, key: str, folder: Path) -> None:
        self.client.log_artifacts(self.run_id(key), str(folder))

    def models(self) -> ModelLogger:
        return ModelLogger(self.client, self.experiment, self.search)

    def settle(self) -> None:
        for key in sorted(self.unsettled):
            self._look_up(key)
            self.unsettled.discard(key)

    def _experiment(self, name: str, artifacts: str | None) -> str:
        """The experiment's id; it is created when it is missing."""
        from mlflow.exceptions import MlflowException

        found = self.client.get_experiment_by_name(name)
        if found is None:
            try:
                return str(self.client.create_experiment(name, artifacts, EXPERIMENT_TAGS))
            except MlflowException:
                # Another search may have created it in the meantime, or it was created and the reply got lost.
                found = self.client.get_experiment_by_name(name)
                if found is None:
                    raise
        if found.lifecycle_stage != ACTIVE:
            raise DeletedExperimentError(name, str(found.experiment_id))
        return str(found.experiment_id)

    def _attempt(self, failures: list[Exception], run: TrackedRun) -> bool:
        """Whether a run is there now; a failure is noted. After an outage nothing more is tried."""
        if any(not isinstance(failure, RejectedError) for failure in failures):
            return False
        try:
            self._put(run)
        except RejectedError as refusal:
            failures.append(refusal)
            return False
        except Exception as outage:  # lost connection, time-out, 5xx, a run that somebody deleted, …
            self.lost.add(run.key)
            self.unsettled.add(run.key)
            failures.append(outage)
            return False
        return True

    def _put(self, run: TrackedRun) -> None:
        """Write a run unless it is there."""
        from mlflow.entities import Metric, Param, RunTag
        from mlflow.exceptions import MlflowException

        if run.key in self.lost:
            self._look_up(run.key)
            self.lost.discard(run.key)
        there = self.found.get(run.key)
        if there is not None and not replaces(run, there):
            return
        # Params cannot be changed, so what is written anew gets a new run; a study's trials move there.
        outdated = there if there is not None and there.status != RUNNING and run.kind in (STUDY, TRIAL) else None
        there = None if outdated else there
        tags = {USER_TAG: user(), **run.tags, KEY_TAG: run.key, SEARCH_TAG: self.search.id()}
        if run.parent is not None:
            if run.parent not in self.found:
                raise RejectedError("its customer's run was refused")
            tags[PARENT_TAG] = self.found[run.parent].run_id
        try:
            if there is None:
                created = self.client.create_run(self.experiment, run.start, tags, run.name)
                there, tags = KnownRun(created.info.run_id, RUNNING), {}
                if outdated is None:
                    self.found[run.key] = there
            self.client.log_batch(
                there.run_id,
                [Metric(key, value, when, step) for key, value, step, when in run.metrics],
                [Param(*each) for each in run.params.items()],
                [RunTag(*each) for each in tags.items()],
            )
            if run.status != RUNNING:
                self.client.set_terminated(there.run_id, run.status, run.end)
                self.found[run.key] = KnownRun(there.run_id, run.status, run.trials, run.end)
            if outdated is not None:
                self._remove(outdated.run_id, there.run_id, run)
        except MlflowException as error:
            if error.error_code not in REFUSALS:
                raise
            if there is not None:
                self.client.set_tag(there.run_id, f"{KEY_TAG}.refused", str(error)[:500])
                self.client.set_terminated(there.run_id, "FAILED", run.end)
            raise RejectedError(str(error)) from error

    def _look_up(self, key: str) -> None:
        """Learn whether a run is there, with its key as a tag or as its id."""
        self.found.pop(key, None)
        if not self._remember(_tag_equals(KEY_TAG, key)):
            self._remember(f"attributes.run_id = '{key}'")

    def _remember(self, condition: str) -> int:
        """Take note of the runs that fulfil a condition; of several with one key, one stays."""
        same: defaultdict[str, list[Run]] = defaultdict(list)
        for run in self._search(condition):
            same[_key(run)].append(run)
        for key, runs in same.items():
            runs.sort(key=lambda run: (run.info.status == RUNNING, -_trials(run), run.info.start_time, run.info.run_id))
            kept = runs[0].info
            for extra in runs[1:]:
                self._remove(extra.info.run_id, kept.run_id)
            self.found[key] = KnownRun(kept.run_id, kept.status, _trials(runs[0]), kept.end_time)
        return len(same)

    def _remove(self, old: str, new: str, study: TrackedRun | None = None) -> None:
        """Delete a run; what hangs below it moves to another one.

        study: That one, where it has replaced the old run: trials that the study has no more are deleted, and none of
            the others is the best one any more.
        """
        for child in list(self._search(_tag_equals(PARENT_TAG, old))):
            if study is not None and is_surplus(study, _key(child)):
                self.client.delete_run(child.info.run_id)
                self.found.pop(_key(child), None)
                continue
            self.client.set_tag(child.info.run_id, PARENT_TAG, new)
            if study is not None and BEST_TAG in child.data.tags:
                self.client.delete_tag(child.info.run_id, BEST_TAG)
        self.client.delete_run(old)

    def _search(self, condition: str) -> Iterator[Run]:
        token = None
        while True:
            page = self.client.search_runs([self.experiment], condition, max_results=PAGE, page_token=token)
            yield from page
            token = page.token
            if not token:
                return


def _key(run: Run) -> str:
    return str(run.data.tags.get(KEY_TAG, run.info.run_id))


def _trials(run: Run) -> float:
    """How far a study's run on the server has come."""
    return float(run.data.metrics.get(TRIALS, 0.0))


def _tag_equals(tag: str, value: str) -> str:
    return f"tags.{tag} = '{value}'"  # values are hexadecimal ids: nothing to escape
