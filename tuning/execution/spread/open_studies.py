"""The spread studies of a run that have trials now, as the adapters to Tune see them.

If a study's searcher, scheduler or rule raises, that study ends with the reason and the others go on. A study is made
when its turn comes and dropped when it has ended, so memory holds those in flight only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from tuning.basics.wording import one_line
from tuning.errors import StorageError
from tuning.execution.part_writer import PartWriter
from tuning.execution.reports import FailureReport, Listener, StepReport
from tuning.execution.spread.conclusions import Conclusions
from tuning.execution.spread.spread_study import SpreadStudy, SpreadTrial
from tuning.notes import Note
from tuning.records.ownership import Term
from tuning.records.parts import DRIVER, Budget
from tuning.records.schema import TrialRecord
from tuning.storage.run_directory import RunDirectory

logger = logging.getLogger(__name__)

AT_ONCE = 8  # studies in flight


@dataclass(eq=False)
class OpenStudies:
    """Decides which trial comes next, and takes in what trials report.

    Nothing here raises towards Tune, where any exception would end the whole experiment.

    Attributes:
        studies: in the order in which they start; each is taken, and so made, when there is room for it.
        total: trials that all of them may have.
        on_end: gets each study once it has ended.
        at_once: how many studies may have trials at the same time.
        conclusions: what is to be concluded by workers.
        recorded: as of `PartWriter`.
    """

    directory: RunDirectory
    term: Term
    studies: Iterable[SpreadStudy]
    total: int
    report: Listener
    on_end: Callable[[SpreadStudy], None]
    conclusions: Conclusions
    at_once: int = AT_ONCE
    interval: float = 0.0
    recorded: Callable[[Sequence[TrialRecord]], None] = lambda _: None
    #: Why the records could not be written; the search stops then, since nothing more would be kept.
    broken: Exception | None = None
    _flying: list[SpreadStudy] = field(default_factory=list)
    _trials: dict[str, tuple[SpreadStudy, int]] = field(default_factory=dict)
    _served: list[str] = field(default_factory=list)
    # Beside Tune's loop: object storage takes a tenth of a second for each.
    _removing: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "tuning-checkpoints"))
    _last: float = field(default_factory=time.monotonic)
    _issued: int = 0

    def __post_init__(self) -> None:
        self._budgets: dict[str, Budget] = {}
        self._writer = PartWriter(
            self.directory,
            self.term,
            DRIVER,
            self.report,
            interval=float("inf"),
            budgets=self._budgets,
            recorded=self.recorded,
        )
        self._coming: Iterator[SpreadStudy] | None = iter(self.studies)
        self.studies = ()  # else whoever holds this holds all of them

    @property
    def closed(self) -> bool:
        """No study will have another trial, or is to be concluded."""
        return bool(self.broken) or self.done

    @property
    def done(self) -> bool:
        """All studies have ended and are recorded."""
        return not self.broken and self._coming is None and not self._flying and not self.conclusions.busy

    def open(self) -> None:
        """Take studies as long as there is room; those of which nothing but their record is left have it written."""
        while self._coming is not None and len(self._flying) < self.at_once and not self.broken:
            study = next(self._coming, None)
            if study is None:
                self._coming = None
                return
            self._budgets[study.study.id] = study.study.budget
            self._flying.append(study)
            self._look(study)

    def next(self) -> tuple[str, SpreadStudy, SpreadTrial] | None:
        """(trial id, study, trial) to run next: of the studies in flight the one with the fewest running trials."""
        while not self.broken:
            try:
                self.open()
            except Exception as error:
                self._break(error)
                break
            flying = list(self._flying)
            for study in sorted(flying, key=lambda study: len(study.live) - len(study.waiting)):
                if self.broken or study.closed:
                    continue
                try:
                    trial = study.next()
                except Exception as error:
                    self._failed(study, error)
                    continue
                if trial is not None:
                    self._issued += 1
                    trial_id = f"{self._issued:06d}_{trial.number:05d}"
                    self._trials[trial_id] = (study, trial.number)
                    return trial_id, study, trial
                self._look(study)  # it may have found out that there is nothing left to suggest
            if flying == self._flying:
                break
        return None

    def result(self, trial_id: str, report: StepReport | FailureReport) -> bool:
        """What a trial reports; True when it is to stop."""
        study, number = self._trials[trial_id]
        if study.failure is not None or self.broken:
            return True
        try:
            stop = study.result(number, report)
        except Exception as error:
            self._failed(study, error)
            return True
        self._flush_when_due()
        return stop

    def overdue(self, trial_id: str, worked: float, idle: float) -> bool:
        """Whether a trial hangs, so that its worker is to be killed; see `SpreadStudy.overdue`."""
        study, number = self._trials[trial_id]
        return study.overdue(number, worked, idle)

    def saved(self, trial_id: str, path: str) -> None:
        """A trial has a checkpoint at a path of the storage; the one before it has served."""
        study, number = self._trials[trial_id]
        inside = f"{self.directory.root}/"
        if not path.startswith(inside):
            return  # a storage of Tune's own choosing: not ours to keep or to delete
        name = path.removeprefix(inside)
        if number in study.live:
            self._forget(study.live[number].checkpoint)
            study.saved(number, name)
        else:
            self._forget(name)

    def _forget(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            self._served.append(checkpoint)

    def lost(self, trial_id: str) -> None:
        """A trial's worker was lost, Tune starts it again."""
        study, number = self._trials[trial_id]
        if number in study.live:
            study.live[number].attempt += 1

    def died(self, trial_id: str, error: str) -> None:
        """A trial's worker has died for the last time; what Tune says of it."""
        study, number = self._trials[trial_id]
        if number in study.live:
            study.live[number].death = error

    def fail(self, trial_id: str, why: Note) -> None:
        """A trial has failed without a worker; its end is to come."""
        study, number = self._trials[trial_id]
        if number in study.live:
            study.live[number].fail(why)

    def end(self, trial_id: str, lost: Note | None = None) -> None:
        """A trial has ended."""
        study, number = self._trials.pop(trial_id)
        if number in study.live:
            self._forget(study.live[number].checkpoint)
        try:
            record = study.end(number, lost)
        except Exception as error:
            self._failed(study, error)
            return
        if record is not None:
            self._writer.trials.append(record)
        self._flush_when_due()
        self._look(study)

    def _failed(self, study: SpreadStudy, error: Exception) -> None:
        logger.warning("study %s ends: %s", study.study.id, error)
        study.give_up(error)
        self._look(study)

    def _look(self, study: SpreadStudy) -> None:
        """Record a study and drop it, once it has ended."""
        if not study.done or study not in self._flying:
            return
        self.flush()
        if self.broken:
            return  # without its trials' records, a study's own would be wrong
        try:
            self.on_end(study)
        except Exception as error:
            self._break(error)
            return
        self._flying.remove(study)
        self._budgets.pop(study.study.id, None)

    def _flush_when_due(self) -> None:
        if time.monotonic() - self._last >= self.interval:
            self.flush()

    def close(self) -> None:
        """Write what has happened, and wait for what is being deleted."""
        self.flush()
        self._removing.shutdown()

    def flush(self) -> None:
        """Write the records of trials that have ended."""
        try:
            self._writer.flush()
            # Nobody needs these any more: there is a later one, or the trial's record.
            while self._served:
                self._removing.submit(self.directory.remove_folder, self._served.pop())
        except Exception as error:
            self._break(error)
        self._last = time.monotonic()

    def _break(self, error: Exception) -> None:
        self.broken = error
        trace = None if isinstance(error, StorageError) else error
        logger.error("the records of spread studies could not be written: %s", one_line(error), exc_info=trace)
