"""Record parts into a tracking store: the one class that every copy uses.

Parts may arrive in any order, twice, and again after a crash: runs are keyed by (run, study, trial), and a
store leaves a complete run as it is.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from tuning.errors import RunError, StorageError
from tuning.records.schema import POOL_STUDY, Record, StudyRecord, TrialRecord
from tuning.records.tables import decode
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.models import ModelLogger, NoModelsError, has_model
from tuning.tracking.settings import CopyStatus, Selection
from tuning.tracking.stores.store import RejectedError, Store
from tuning.tracking.summary import SUMMARY_FILE, write_summary
from tuning.tracking.tracked_runs import RUNNING, STUDY, TRIAL, RecordRuns, TrackedRun, ended


@dataclass(slots=True)
class _OpenStudy:
    """A study whose trials are chosen from when all of them are here."""

    record: StudyRecord | None = None
    trials: dict[int, TrialRecord] = field(default_factory=dict)


class Copier:
    """Copies parts, one batch for each call of `work`. Not thread-safe: it belongs to one thread.

    open_store: makes the store; called at the first need, and again when that failed. models: whether winners are
    logged as models.
    """

    def __init__(
        self,
        directory: RunDirectory,
        search: TrackedSearch,
        selection: Selection,
        open_store: Callable[[], Store],
        models: bool = False,
    ) -> None:
        self.directory, self.search, self.selection = directory, search, selection
        self._open_store = open_store
        self._store: Store | None = None
        self._counts = Counter[str]()  # of what was copied in this session
        self._error: str | None = None
        self._counted: set[str] = set()  # runs of the current batch, which may take several attempts
        self._known: set[str] = set()
        self._done: set[str] = set()
        self._queue: deque[str] = deque()
        self._batch: dict[str, Sequence[Record]] = {}  # part → records: read, not yet written
        self._waiting: defaultdict[str, _OpenStudy] = defaultdict(_OpenStudy)
        # study → (trials, end) of its latest record, the winner there
        self._ended: dict[str, tuple[tuple[int, int], int | None]] = {}
        self._logs_models = models
        self._models: dict[str, StudyRecord] = {}  # studies whose winners are still to be logged as models
        self._logger: ModelLogger | None = None

    @property
    def status(self) -> CopyStatus:
        """How the copy stands."""
        counts = self._counts
        return CopyStatus(
            trials=counts["trials"],
            studies=counts["studies"],
            models=counts["models"],
            rejected=counts["rejected"],
            copied=len(self._done),
            pending=len(self._known) - len(self._done) + len(self._waiting),
            models_pending=len(self._models),
            error=self._error,
            note=None if self._store is None else self._store.note,
        )

    @property
    def idle(self) -> bool:
        """True when `work` has nothing to do; trials that wait for the end of their study may still be pending."""
        return not self._queue and not self._batch

    def add(self, part: str) -> None:
        """Queue a part; one that was queued before is ignored."""
        if part not in self._known:
            self._known.add(part)
            if part != SUMMARY_FILE:
                self._queue.append(part)

    def store(self) -> Store:
        """Return the store, opened at the first need."""
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def work(self) -> None:
        """Copy one batch. Raises what the storage or the store raised; nothing is lost by that."""
        self._read(self.store().batch)
        records = [record for part in self._batch.values() for record in part]
        self._write([record for record in records if isinstance(record, TrialRecord)], self._latest(records))
        self._done |= self._batch.keys()
        self._batch.clear()
        self._counted.clear()

    def finish(self) -> None:
        """At the end: the best trials of recorded studies some of whose trials never came; the summary; look again.

        Trials of studies without a record stay pending: a later run or `sync` completes them.
        """
        self._ship(*self._best([name for name, study in self._waiting.items() if study.record]), parents_of=[])
        if SUMMARY_FILE in self._known - self._done:
            write_summary(self.store(), self.directory, self.search)
            self._done.add(SUMMARY_FILE)
        self.store().settle()

    def load_ahead(self) -> None:
        """Load MLflow's client where models will be logged: two core-seconds for which the end of a run would wait."""
        if self._logs_models and self._logger is None:
            self._logger = self.store().models()
            with contextlib.suppress(NoModelsError):  # the first model says so
                _ = self._logger.logged

    def log_model(self) -> bool:
        """Log one of the pending models, if there is any; a damaged one is left out. Raises what the store raised."""
        if not self._models:
            return False
        study, record = next(iter(self._models.items()))
        try:
            self._logger = self._logger or self.store().models()
            self._logger.log_winner(record, self.directory, self.store().run_id(self.search.id(study)))
            self._counts["models"] += 1
        except NoModelsError as error:
            self._models.clear()
            self._error = str(error)
        except RunError as damaged:
            self._reject(f"the model of customer {record.customer!r} is not in MLflow: {damaged}")
        except Exception:
            self._logger = None  # what is there is looked up again
            raise
        self._models.pop(study, None)
        return True

    def _read(self, most: int) -> None:
        """Read parts until the batch is full; one that is damaged or gone is counted and left out."""
        count = sum(map(len, self._batch.values()))
        while self._queue and count < most:
            part = self._queue[0]
            try:
                self._batch[part] = decode(self.directory.read(part))
                count += len(self._batch[part])
            except StorageError:
                raise
            except Exception as error:
                self._reject(f"{self.directory.display(part)} could not be read: {error}")
                self._done.add(part)
            self._queue.popleft()

    def _reject(self, error: str) -> None:
        self._counts["rejected"] += 1
        self._error = error

    def _write(self, trials: list[TrialRecord], studies: list[StudyRecord]) -> None:
        """Write the records of a batch, or have those wait that are chosen from later."""
        pools = [trial for trial in trials if trial.study == POOL_STUDY]
        trials = [trial for trial in trials if trial.study != POOL_STUDY]
        if self._logs_models:
            self._models |= {record.study: record for record in studies if has_model(record)}
        self._put([RecordRuns(self.search, self.selection.short).of_pool(record) for record in pools])
        if self.selection.limit:
            for trial in trials:
                self._waiting[trial.study].trials[trial.trial] = trial
            for study in studies:
                self._waiting[study.study].record = study
            waiting = self._waiting.items()
            whole = [name for name, each in waiting if each.record and len(each.trials) >= each.record.trials]
            self._ship(*self._best(whole), parents_of=trials)
        else:
            self._ship(trials if self.selection.limit is None else [], studies, parents_of=trials)

    def _best(self, names: Iterable[str]) -> tuple[list[TrialRecord], list[StudyRecord]]:
        """The chosen trials of some recorded studies that wait, and their records."""
        chosen, records = [], []
        for name in names:
            study = self._waiting[name]
            assert study.record is not None
            records.append(study.record)
            chosen += self.selection.best(study.trials.values(), self._winner(name))
        return chosen, records

    def _ship(
        self, trials: Sequence[TrialRecord], studies: Sequence[StudyRecord], parents_of: Iterable[TrialRecord]
    ) -> None:
        """Write runs of trials and of studies, which are complete with them.

        parents_of: trials of studies that get a run in any case.
        """
        runs = RecordRuns(self.search, short=self.selection.short)
        parents = {study.study: runs.of_study(study) for study in studies}
        for trial in parents_of:
            if trial.study not in parents:
                parents[trial.study] = runs.of_open_study(trial)
        if self.selection.limit:
            below: defaultdict[str, set[str]] = defaultdict(set)
            for trial in trials:
                below[trial.study].add(self.search.id(*trial.key))
            for study in studies:
                parents[study.study] = replace(parents[study.study], children=frozenset(below[study.study]))
        self._put([*parents.values(), *map(runs.of_trial, trials)])
        if not runs.short:
            winners = {(study.study, study.trial) for study in studies if study.trial is not None}
            winners |= {trial.key for trial in trials if self._winner(trial.study) == trial.trial}
            if winners:
                self.store().mark_best([self.search.id(*key) for key in winners])
        for study in studies:
            self._waiting.pop(study.study, None)

    def _winner(self, study: str) -> int | None:
        return self._ended.get(study, ((0, 0), None))[1]

    def _latest(self, records: Iterable[Record]) -> list[StudyRecord]:
        """Of each study its latest record, unless a later one was seen before: a resumed study has several.

        The latest is the one with most trials; clocks decide only between those with as many.
        """
        latest: dict[str, StudyRecord] = {}
        for record in records:
            if isinstance(record, StudyRecord):
                age = (record.trials, ended(record))
                if age >= self._ended.get(record.study, ((0, 0), None))[0]:
                    self._ended[record.study] = (age, record.trial)
                    latest[record.study] = record
        return list(latest.values())

    def _put(self, runs: list[TrackedRun]) -> None:
        """Write runs; one that the store refuses is counted and left out, all others are written."""
        if not runs:
            return
        try:
            self.store().write(runs, self._count)
        except RejectedError as error:
            if len(runs) == 1:
                self._reject(f"MLflow refuses the run {runs[0].name!r}: {error}")
                return
            middle = len(runs) // 2
            self._put(runs[:middle])
            self._put(runs[middle:])

    def _count(self, run: TrackedRun) -> None:
        """Take note of a run that is in the store."""
        if run.key not in self._counted and (run.kind == TRIAL or run.status != RUNNING):
            self._counted.add(run.key)
            self._counts["trials"] += run.kind == TRIAL
            self._counts["studies"] += run.kind == STUDY
