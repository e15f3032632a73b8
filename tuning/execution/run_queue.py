"""What Tune runs next: the pool alone, last fits and trials of spread studies, then batches on the slots left.

A run would wait for its spread studies last. So their trials wait at most for the batches that are under way: a new
batch leaves free the CPUs of trials that are to begin. A trial or a last fit without room on any machine holds nobody
up and fails after a while; the studies of a batch then have that as their reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from tuning.execution.jobs import BatchJob, FitJob, Job, TrialJob
from tuning.execution.spread.open_studies import OpenStudies
from tuning.models.pooled import POOL
from tuning.notes import Note
from tuning.planning.capacity import Bundle, Capacity

SPREAD_JOBS = (TrialJob, FitJob)


@dataclass
class RunQueue:
    """A run as Tune sees it: Tune trials, each a batch or a trial of a spread study.

    Attributes:
        slots: Tune trials at once.
        capacity: what they may take together while trials of spread studies are among them.
        batches: in the order in which they begin.
        studies: the spread ones; None where all are packed.
        at_once: trials and last fits of spread studies at once.
        restarts: how often a worker of such a trial is replaced.
        no_place: told of each batch that no machine has had room for, and why.
        pool: trains the run's pool before all else; None where none is due.
        pool_is_due: whether it still is. A Tuner ends if the pool's job has ended without one.
    """

    slots: int
    capacity: Capacity
    batches: Sequence[BatchJob] = ()
    studies: OpenStudies | None = None
    at_once: int = 1
    restarts: int = 0
    no_place: Callable[[int, Note], None] = lambda *_: None
    pool: BatchJob | None = None
    pool_is_due: Callable[[], bool] = lambda: False
    _without_pool: bool = False
    _given: int = 0
    _flying: dict[str, Job] = field(default_factory=dict)
    _homeless: set[str] = field(default_factory=set)  # of those, trials that the machines have no room for
    _looked: Sequence[Bundle] | None = None  # at these machines, the last time

    @property
    def total(self) -> int:
        """Tune trials that there may be."""
        return len(self.batches) + (0 if self.studies is None else self.studies.total) + (self.pool is not None)

    @property
    def closed(self) -> bool:
        """No Tune trial will be added, and no free worker is kept.

        Where all are batches, one is, until the last batch has ended: if a worker dies, it takes that worker's batch.
        """
        if self._broken or self.pool is not None or self._given < len(self.batches):
            return self._broken
        return not self._flying if self.studies is None else self.studies.closed

    @property
    def _broken(self) -> bool:
        return self._without_pool or (self.studies is not None and bool(self.studies.broken))

    def next(self) -> tuple[str, Job] | None:
        """Return (id, job) of the next Tune trial; None when there is none now."""
        found = self._trial() or self._batch() if self.pool is None else self._pool(self.pool)
        if found is not None:
            name, job = found
            self._flying[name] = job
            if isinstance(job, SPREAD_JOBS) and not self.capacity.fits(job.request):
                self._homeless.add(name)
        return found

    def studies_of(self, job: Job) -> OpenStudies | None:
        """Return the studies one of which has this trial; None of any other job."""
        return self.studies if isinstance(job, TrialJob) else None

    def timed_out(self, waiting: Collection[str]) -> list[str]:
        """Return the Tune trials for which there was no machine for too long: Tune is to stop them, trials have failed.

        waiting: ids of the Tune trials that have no place yet.
        """
        if (self.studies is None and not waiting) or (machines := self.capacity.machines()) is self._looked:
            return []
        self._looked = machines
        trials = {name: job for name, job in self._flying.items() if isinstance(job, SPREAD_JOBS)}
        self._homeless = {name for name, job in trials.items() if not self.capacity.fits(job.request)}
        found = self._batches_left(waiting)
        for name, job in trials.items():
            if self.studies is None or name not in self._homeless or name not in waiting:
                continue
            if self.capacity.timed_out(job.request, job.shown):
                self.studies.no_place(name, self.capacity.no_place(job.request, job.subject, "`trials`"))
                found.append(name)
        return found

    def _batches_left(self, waiting: Collection[str]) -> list[str]:
        """Batches for which there was no machine for too long. They may be a thousand, and take the same."""
        alike: dict[str, list[tuple[str, BatchJob]]] = {}
        for name, job in self._flying.items():
            if isinstance(job, BatchJob) and name in waiting:
                alike.setdefault(repr(job.request), []).append((name, job))
        found = []
        for jobs in alike.values():
            if self.capacity.timed_out(jobs[0][1].request, jobs[0][1].shown):
                for name, job in jobs:
                    self.no_place(job.batch, self.capacity.no_place(job.request, job.subject))
                    found.append(name)
        return found

    def idle_end(self, waiting: Collection[str]) -> bool:
        """Return whether workers that Tune keeps for a next trial are to end instead.

        Machines are lost, and so is a part of the place: the next trial would wait in it for processes that never come.
        waiting: see `timed_out`.
        """
        return not self._homeless.isdisjoint(waiting)

    def _pool(self, job: BatchJob) -> tuple[str, BatchJob] | None:
        return None if self._flying else (POOL, job)

    def _trial(self) -> tuple[str, TrialJob | FitJob] | None:
        trials = sum(isinstance(job, SPREAD_JOBS) for job in self._flying.values())
        if self.studies is None or self._broken or trials >= self.at_once:
            return None
        return self.studies.next()

    def _batch(self) -> tuple[str, BatchJob] | None:
        if self._broken or self._given == len(self.batches) or len(self._flying) >= self.slots:
            return None
        job = self.batches[self._given]
        if not self._has_cpus(job.cpus):
            return None
        self._given += 1
        return f"batch_{job.batch:05d}", job

    def _has_cpus(self, needs: float) -> bool:
        """Return whether a batch has room next to the trials and last fits of spread studies."""
        if not any(isinstance(job, SPREAD_JOBS) for job in self._flying.values()):
            return True
        most = self.capacity.cpus
        taken = (job.cpus for name, job in self._flying.items() if name not in self._homeless)
        return needs + sum(each for each in taken if each <= most) <= most

    def end(self, name: str, *, died: bool = False) -> None:
        """Take in the end of a Tune trial. died: so have all of its workers."""
        job = self._flying.pop(name)
        if job is self.pool:
            self.pool, self._without_pool = None, self.pool_is_due()
        if isinstance(job, SPREAD_JOBS) and self.studies is not None:
            self.studies.end(name, died=died)
