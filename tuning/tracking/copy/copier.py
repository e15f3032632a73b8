"""Record parts into a tracking store: the one class that every copy uses.

Parts may arrive in any order, twice, and again after a crash: runs are keyed by (run, study, trial), and a
store leaves a complete run as it is.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tuning.errors import RunError
from tuning.records.schema import POOL_STUDY, Record, StudyRecord, TrialRecord
from tuning.records.tables import decode
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.identity import TrackedSearch
from tuning.tracking.models import ModelLogger, NoModelsError, has_model
from tuning.tracking.selection import Selection, UnfinishedStudies
from tuning.tracking.stores.store import RejectedError, Store
from tuning.tracking.summary.summary import SUMMARY_FILE, warm_up_plots, write_summary
from tuning.tracking.tracked_runs import (
    RUNNING,
    STUDY,
    TRIAL,
    RecordRuns,
    TrackedRun,
    ended,
)

READ_ATTEMPTS = 3


@dataclass(slots=True)
class CopyProgress:
    """What has been copied so far in this session: runs that are complete, models, and what was refused."""

    trials: int = 0
    studies: int = 0
    models: int = 0
    rejected: int = 0
    error: str | None = None
    counted: set[str] = field(default_factory=set)  # of the current batch, which may take several attempts

    def done(self, run: TrackedRun) -> None:
        """Take note of a run that is in the store."""
        if run.key not in self.counted and (run.kind == TRIAL or run.status != RUNNING):
            self.counted.add(run.key)
            self.trials += run.kind == TRIAL
            self.studies += run.kind == STUDY


class Copier:
    """Copies parts, one batch for each call of `work`. Not thread-safe: it belongs to one thread.

    open_store: makes the store; called at the first need, and again when that failed. most_models: with more winners
    than that none is logged as a model; None is any number.
    """

    def __init__(
        self,
        directory: RunDirectory,
        search: TrackedSearch,
        selection: Selection,
        open_store: Callable[[], Store],
        most_models: int | None = 0,
    ) -> None:
        self.search = search
        self.directory = directory
        self.selection = selection
        self.progress = CopyProgress()
        self.done: set[str] = set()  # parts whose records are all copied
        self._open_store = open_store
        self._store: Store | None = None
        self._known: set[str] = set()
        self._queue: deque[str] = deque()
        self._batch: dict[str, Sequence[Record]] = {}  # part → records: read, not yet written
        self._unreadable: Counter[str] = Counter()  # part → failed attempts
        self._unfinished = UnfinishedStudies()
        # study → (trials, end) of its latest record, the winner there
        self._ended: dict[str, tuple[tuple[int, int], int | None]] = {}
        self._most_models = most_models
        self._models: dict[str, StudyRecord] = {}  # studies whose winners are still to be logged as models
        self._logger: ModelLogger | None = None
        self._summary = False

    def add(self, part: str) -> None:
        """Queue a part; one that was queued before is ignored."""
        if part in self._known:
            return
        self._known.add(part)
        if part == SUMMARY_FILE:
            self._summary = True
        else:
            self._queue.append(part)

    @property
    def pending(self) -> int:
        """How many parts have records that are not copied yet."""
        return len(self._known) - len(self.done)

    @property
    def models_pending(self) -> int:
        """How many winners are to be logged as models."""
        return len(self._models)

    @property
    def model_due(self) -> bool:
        """True when a winner can be logged before it is known how many there will be."""
        return self._most_models is None and bool(self._models)

    @property
    def idle(self) -> bool:
        """True when `work` has nothing to do; parts that wait for the end of a study may still be pending."""
        return not self._queue and not self._batch

    @property
    def stuck(self) -> bool:
        """True when all that is left are parts that could not be read, several times over."""
        unreadable = [part for part in self._queue if self._unreadable[part] >= READ_ATTEMPTS]
        return not self._batch and bool(unreadable) and len(unreadable) == len(self._queue)

    def store(self) -> Store:
        """The store, opened at the first need."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    @property
    def note(self) -> str | None:
        """What is to be said of how runs are written, once the store is open."""
        return None if self._store is None else self._store.note

    def work(self) -> None:
        """Copy one batch. Raises what the storage or the store raised; nothing is lost by that."""
        store = self.store()
        unreadable = self._read(store.batch)
        if self._batch:
            records = [record for part in self._batch.values() for record in part]
            studies = [record for record in records if isinstance(record, StudyRecord)]
            trials = [record for record in records if isinstance(record, TrialRecord)]
            pools = [record for record in trials if record.study == POOL_STUDY]
            trials = [record for record in trials if record.study != POOL_STUDY]
            studies = self._latest(studies)
            self._plan_models(studies)
            complete: list[str] = []
            chosen = trials if self.selection.limit is None else []
            if self.selection.limit:
                for part, of_part in self._batch.items():
                    self._unfinished.add(part, [each for each in of_part if each.study != POOL_STUDY])
                complete = self._unfinished.complete()
                chosen, studies = self._best(complete)
            self._put(store, [RecordRuns(self.search, self.selection.short).of_pool(record) for record in pools])
            self._ship(store, chosen, studies, parents_of=trials)
            if any(study.test_score is not None for study in studies):
                warm_up_plots()
            parts = {*self._batch, *self._unfinished.forget(complete)}
            self._batch.clear()
            self.progress.counted.clear()
            self.done.update(part for part in parts if not self._unfinished.holds(part))
        if unreadable is not None:
            raise unreadable

    def finish(self) -> None:
        """At the end: the best trials of recorded studies some of whose trials never came; the summary; look again.

        Trials of studies without a record stay pending: a later run or `sync` completes them.
        """
        recorded = list(self._unfinished.records)
        if recorded:
            self._ship(self.store(), *self._best(recorded), parents_of=[])
            parts = self._unfinished.forget(recorded)
            self.done.update(part for part in parts if not self._unfinished.holds(part))
        if self._summary:
            write_summary(self.store(), self.directory, self.search)
            self._summary = False
            self.done.add(SUMMARY_FILE)
        self.store().settle()

    def load_ahead(self) -> None:
        """Load MLflow's client where models will be logged: two core-seconds for which the end of a run would wait."""
        if self._most_models is None and self._logger is None:
            self._logger = self.store().models()
            with contextlib.suppress(NoModelsError):  # the first model says so
                _ = self._logger.logged

    def log_model(self) -> None:
        """Log one of the pending models; raises what the store raised, and leaves out a model that is damaged."""
        study, record = next(iter(self._models.items()))
        try:
            self._logger = self._logger or self.store().models()
            self._logger.log_winner(record, self.directory, self.store().run_id(self.search.id(study)))
            self.progress.models += 1
        except NoModelsError as error:
            self._models.clear()
            self.progress.error = str(error)
            return
        except RunError as damaged:
            self.progress.rejected += 1
            self.progress.error = f"the model of customer {record.customer!r} is not in MLflow: {damaged}"
        except Exception:
            self._logger = None  # what is there is looked up again
            raise
        del self._models[study]

    def _read(self, most: int) -> Exception | None:
        """Read parts until the batch is full; the error of one that could not be read (it stays queued)."""
        count = sum(len(records) for records in self._batch.values())
        failure: Exception | None = None
        for _ in range(len(self._queue)):
            if count >= most:
                break
            part = self._queue.popleft()
            try:
                records = decode(self.directory.read(part))
            except Exception as error:  # damaged, or its storage is away: the others go on
                self._queue.append(part)
                self._unreadable[part] += 1
                failure = OSError(f"{self.directory.display(part)} could not be read: {error}")
                continue
            self._batch[part] = records
            count += len(records)
        return failure

    def _best(self, studies: Iterable[str]) -> tuple[list[TrialRecord], list[StudyRecord]]:
        """The chosen trials of some studies that wait, and their records: a run that is complete has all of them."""
        chosen, records = [], []
        for study in studies:
            record = self._unfinished.records[study]
            if _age(record) < self._ended[study][0]:
                continue  # a later one was here before
            records.append(record)
            chosen += self.selection.best(self._unfinished.trials[study].values(), self._winner(study))
        return chosen, records

    def _ship(
        self,
        store: Store,
        trials: Iterable[TrialRecord],
        studies: Iterable[StudyRecord],
        parents_of: Iterable[TrialRecord],
    ) -> None:
        runs = RecordRuns(self.search, short=self.selection.short)
        parents = {study.study: runs.of_study(study) for study in studies}
        for trial in parents_of:
            if trial.study not in parents:
                parents[trial.study] = runs.of_open_study(trial)
        children = {trial.key: runs.of_trial(trial, best=self._winner(trial.study) == trial.trial) for trial in trials}
        if self.selection.limit:
            below: defaultdict[str, set[str]] = defaultdict(set)
            for trial in trials:
                below[trial.study].add(self.search.id(*trial.key))
            for study in studies:
                parents[study.study] = replace(parents[study.study], children=frozenset(below[study.study]))
        self._put(store, [*parents.values(), *children.values()])
        if runs.short:
            return
        # The winner's run may have been written before anybody knew that it would win.
        store.mark_best([self.search.id(study.study, study.trial) for study in studies if study.trial is not None])

    def _winner(self, study: str) -> int | None:
        return self._ended.get(study, ((0, 0), None))[1]

    def _latest(self, studies: Iterable[StudyRecord]) -> list[StudyRecord]:
        """Of each study its latest record, unless a later one was seen before: a resumed study has several.

        The latest is the one with most trials; clocks decide only between those with as many.
        """
        latest: dict[str, StudyRecord] = {}
        for record in studies:
            age = _age(record)
            if age >= self._ended.get(record.study, ((0, 0), None))[0]:
                self._ended[record.study] = (age, record.trial)
                latest[record.study] = record
        return list(latest.values())

    def _plan_models(self, studies: Iterable[StudyRecord]) -> None:
        for record in studies:
            if has_model(record) and self._most_models != 0:
                self._models[record.study] = record
        if self._most_models is not None and len(self._models) + self.progress.models > self._most_models:
            self._models.clear()
            self._most_models = 0

    def _put(self, store: Store, runs: list[TrackedRun]) -> None:
        """Write runs; one that the store refuses is counted and left out, all others are written."""
        if not runs:
            return
        try:
            store.write(runs, self.progress.done)
        except RejectedError as error:
            if len(runs) == 1:
                self.progress.rejected += 1
                self.progress.error = f"MLflow refuses the run {runs[0].name!r}: {error}"
                return
            middle = len(runs) // 2
            self._put(store, runs[:middle])
            self._put(store, runs[middle:])


def _age(record: StudyRecord) -> tuple[int, int]:
    """Of several records of one study the one with the highest is the latest."""
    return (record.trials, ended(record))
