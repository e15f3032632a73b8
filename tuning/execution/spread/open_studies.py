"""The spread studies of a run that have trials or last fits now, as the queue and the bridge to Tune see them.

If a study's searcher, scheduler or rule raises, that study ends with the reason and the others go on. A study is made
when its turn comes and dropped when it has ended, so memory holds those in flight only.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import count

from tuning.basics.wording import one_line
from tuning.errors import StorageError
from tuning.execution.jobs import EndedStudy, FitJob, TrialJob
from tuning.execution.reports import FailureReport, Listener, PartWriter, StepReport
from tuning.execution.spread.spread_study import SpreadStudy, SpreadTrial
from tuning.notes import Note
from tuning.planning.capacity import Capacity
from tuning.records.ownership import Term
from tuning.records.parts import DRIVER, Budget
from tuning.records.schema import TrialRecord
from tuning.storage.run_directory import RunDirectory

logger = logging.getLogger(__name__)

AT_ONCE = 8  # studies in flight
FINAL_FITS = "the final fits"


@dataclass(eq=False)
class OpenStudies:
    """Decides which trial or last fit comes next, and takes in what becomes of them.

    Nothing here raises towards Tune, where any exception would end the whole experiment.

    Attributes:
        studies: in the order in which they start; each is taken, and so made, when there is room for it. One that has
            ended already is concluded.
        total: trials that all of them may have.
        report: told of every part that is written.
        capacity: of the machines.
        last_fit: the job that concludes a study; None where it has written the study's record.
        job_of: what the worker of a trial is to do.
        interval: seconds between two parts of records.
        recorded: see `PartWriter`.
    """

    directory: RunDirectory
    term: Term
    studies: Iterable[SpreadStudy | EndedStudy]
    total: int
    report: Listener
    capacity: Capacity
    last_fit: Callable[[EndedStudy], FitJob | None]
    job_of: Callable[[SpreadStudy, SpreadTrial], TrialJob]
    interval: float = 0.0
    recorded: Callable[[Sequence[TrialRecord]], None] = lambda _: None
    #: Why the records could not be written; the search stops then, since nothing more would be kept.
    broken: Exception | None = None
    _flying: list[SpreadStudy] = field(default_factory=list)
    _trials: dict[str, tuple[SpreadStudy, SpreadTrial]] = field(default_factory=dict)
    _waiting: deque[FitJob] = field(default_factory=deque)
    _fits: dict[str, tuple[FitJob, int]] = field(default_factory=dict)  # with how many machines there were
    _served: list[str] = field(default_factory=list)
    # Outside of Tune's loop: object storage takes a tenth of a second for each.
    _removing: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(4, "tuning-checkpoints"))
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))  # of names

    def __post_init__(self) -> None:
        self._budgets: dict[str, Budget] = {}
        self._writer = PartWriter(
            self.directory,
            self.term,
            DRIVER,
            self.report,
            interval=self.interval,
            budgets=self._budgets,
            recorded=self.recorded,
        )
        self._coming: Iterator[SpreadStudy | EndedStudy] | None = iter(self.studies)
        self.studies = ()  # else whoever holds this holds all of them

    @property
    def closed(self) -> bool:
        """No study will have another trial, or is to be concluded."""
        return bool(self.broken) or self.done

    @property
    def done(self) -> bool:
        """All studies have ended and are recorded."""
        return not (self.broken or self._coming or self._flying or self._waiting or self._fits)

    def open(self) -> None:
        """Take studies as long as there is room; those of which nothing but their record is left have it written."""
        while self._coming is not None and len(self._flying) < AT_ONCE and not self.broken:
            study = next(self._coming, None)
            if study is None:
                self._coming = None
            elif isinstance(study, EndedStudy):
                self.conclude(study)
            else:
                self._budgets[study.study.id] = study.study.budget
                self._flying.append(study)
                self._look(study)

    def next(self) -> tuple[str, TrialJob | FitJob] | None:
        """Return (id, job) to run next; None when there is none now."""
        return self._next_fit() or self._next_trial() or self._next_fit()  # a study's end may be found out on the way

    def _next_fit(self) -> tuple[str, FitJob] | None:
        if self.broken or not self._waiting:
            return None
        job = self._waiting.popleft()
        name = f"fit_{next(self._numbers):06d}"
        self._fits[name] = job, len(self.capacity.machines())
        return name, job

    def _next_trial(self) -> tuple[str, TrialJob] | None:
        """Ask the studies in flight, the one with the fewest running trials first."""
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
                    name = f"trial_{next(self._numbers):06d}"
                    self._trials[name] = study, trial
                    return name, self.job_of(study, trial)
                self._look(study)  # it may have found out that there is nothing left to suggest
            if flying == self._flying:
                break
        return None

    def trial(self, name: str) -> SpreadTrial:
        """Return the trial that a Tune trial trains. name: id of the latter."""
        return self._trials[name][1]

    def result(self, name: str, report: StepReport | FailureReport) -> bool:
        """Take in what a trial reports; True when it is to stop."""
        study, trial = self._trials[name]
        if study.failure is not None or self.broken:
            return True
        try:
            stop = study.result(trial.number, report)
        except Exception as error:
            self._failed(study, error)
            return True
        if self._writer.due:
            self.flush()
        return stop

    def overdue(self, name: str, worked: float, idle: float) -> bool:
        """Return whether a trial hangs, so that its worker is to be killed; see `SpreadStudy.overdue`."""
        study, trial = self._trials[name]
        return study.overdue(trial.number, worked, idle)

    def saved(self, name: str, path: str) -> None:
        """Keep the checkpoint of a trial, at a path of the storage; the one before it has served."""
        study, trial = self._trials[name]
        inside = f"{self.directory.root}/"
        if not path.startswith(inside):
            return  # a storage of Tune's own choosing: not ours to keep or to delete
        checkpoint = path.removeprefix(inside)
        if trial.number in study.live:
            self._forget(trial.checkpoint)
            trial.checkpoint = checkpoint
        else:
            self._forget(checkpoint)

    def _forget(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            self._served.append(checkpoint)

    def no_place(self, name: str, why: Note) -> None:
        """Give up a last fit, or a trial, which still ends: no machine comes that has room for it."""
        if name in self._trials:
            self.trial(name).fail(why)
        else:
            job, _ = self._fits.pop(name)
            self.conclude(replace(job.ended, failure=why))

    def end(self, name: str, *, died: bool = False) -> None:
        """Take in the end of a trial or of a last fit. died: so have its workers ended."""
        if name in self._trials:
            self._end_trial(*self._trials.pop(name), died=died)
        elif name in self._fits:
            job, machines = self._fits.pop(name)
            if died and len(self.capacity.machines()) >= machines:  # else the next Tuner takes the study up again
                self.conclude(replace(job.ended, crashed=FINAL_FITS))

    def _end_trial(self, study: SpreadStudy, trial: SpreadTrial, *, died: bool) -> None:
        if trial.number in study.live:
            self._forget(trial.checkpoint)
        try:
            record = study.end(trial.number, died=died)
        except Exception as error:
            self._failed(study, error)
            return
        if record is not None:
            self._writer.trials.append(record)
        if self._writer.due:
            self.flush()
        self._look(study)

    def _failed(self, study: SpreadStudy, error: Exception) -> None:
        logger.warning("study %s ends: %s", study.study.id, error)
        study.give_up(error)
        self._look(study)

    def _look(self, study: SpreadStudy) -> None:
        """Conclude a study and drop it, once it has ended."""
        if not study.done or study not in self._flying:
            return
        self.flush()
        if self.broken:
            return  # without its trials' records, a study's own would be wrong
        self.conclude(study.ended())
        self._flying.remove(study)
        self._budgets.pop(study.study.id, None)

    def conclude(self, ended: EndedStudy) -> None:
        """Have a study concluded: at once where nothing of the customer's is to run, else as a job."""
        try:
            job = self.last_fit(ended)
        except Exception as error:
            self._break(error)
            return
        if job is not None:
            self._waiting.append(job)

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

    def _break(self, error: Exception) -> None:
        self.broken = error
        trace = None if isinstance(error, StorageError) else error
        logger.error("the records of spread studies could not be written: %s", one_line(error), exc_info=trace)
