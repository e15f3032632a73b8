"""Concluding spread studies: in workers, under the limits that a packed worker has.

The driver runs none of a customer's code itself: a fit that hangs or crashes there would hold or end all studies.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tuning.definition.options import Resources
from tuning.execution.context import WorkerRun
from tuning.execution.spread.predictions import read_predictions
from tuning.execution.spread.trial_worker import opened, place_here
from tuning.execution.study_run import conclude_study, unblock_sigterm
from tuning.execution.worker import Worker, open_worker
from tuning.models.gang import Gang
from tuning.models.shards import gangs_work_in
from tuning.notes import EndCode, Note
from tuning.planning.gangs import largest_gang
from tuning.planning.room import Room, Takes
from tuning.records.schema import FINISHED, StudyRecord, TrialRecord
from tuning.study.study import Study
from tuning.user_code import ignore_warnings, own_settings
from tuning.worker_groups.process_group import (
    PACK,
    CallAnswered,
    CallRaised,
    Calls,
    ProcessLost,
    placed,
    release,
    reserve,
)

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.util.placement_group import PlacementGroup

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class EndedStudy:
    """A study whose trials have ended. ended_by, failure: as of `conclude_study`."""

    study: Study
    records: Sequence[TrialRecord]
    ended_by: Note | None = None
    failure: Note | None = None

    @property
    def fits(self) -> bool:
        """Whether a model is to be fitted."""
        known = self.study.fixed is not None
        return self.failure is None and (known or any(trial.state == FINISHED for trial in self.records))

    def conclude(self, worker: Worker) -> StudyRecord:
        """Its record; its model is written."""
        context = worker.context
        worker.study(0, self.study, self.records)
        with ignore_warnings(), own_settings():
            record = conclude_study(
                worker,
                self.study,
                self.records,
                ended_by=self.ended_by,
                failure=self.failure,
                predictions=partial(read_predictions, context.directory, self.study.id),
            )
        context.background.flush()
        return record


@dataclass(frozen=True)
class _Conclusion:
    """A study that is being concluded.

    takes: what that takes. group: the room of several processes; None where one concludes it.
    """

    ended: EndedStudy
    task: ObjectRef[object]
    takes: Takes
    group: PlacementGroup | None

    @property
    def placed(self) -> bool:
        """Whether its process has its place, though its actors' may be lost; not known of one without a group."""
        return self.group is not None and placed(self.group)

    def leave(self) -> None:
        """Give its room back."""
        if self.group is not None:
            release(self.group)

    def cancel(self) -> None:
        """End its process, whatever it is doing."""
        import ray

        ray.cancel(self.task, force=True)


@dataclass
class Conclusions:
    """The studies that are being concluded.

    Attributes:
        run: whose studies they are.
        limit: how many are concluded at a time.
        attempts: how many workers a study may end.
        gangs: whether there are models that several processes train.
        room: of the machines.
        written: told a study's record.
        crashed: told a study that has ended its workers.
    """

    run: WorkerRun
    limit: int
    attempts: int
    gangs: bool
    room: Room
    written: Callable[[Study, StudyRecord], None]
    crashed: Callable[[EndedStudy], None]
    _waiting: deque[EndedStudy] = field(default_factory=deque)
    _running: dict[str, _Conclusion] = field(default_factory=dict)  # by study
    _calls: Calls[str] = field(default_factory=Calls)
    _placeless: set[str] = field(default_factory=set)  # of those with a group, when somebody looked last

    @property
    def busy(self) -> bool:
        """Whether a study is not concluded yet."""
        return bool(self._waiting or self._running)

    @property
    def cpus(self) -> list[float]:
        """What each study takes that is being concluded by several processes, and for which machines have room."""
        found = [each.takes for each in self._running.values() if each.group is not None]
        return [sum(bundle.get("CPU", 0.0) for bundle in takes[0]) for takes in found if self.room.has(takes)]

    @property
    def waits(self) -> bool:
        """Whether a study that several processes are to conclude has no place for them yet."""
        self._placeless = {study for study in self._placeless & self._running.keys() if not self._running[study].placed}
        return bool(self._placeless)

    def add(self, ended: EndedStudy) -> None:
        """Conclude a study, as soon as there is room."""
        self._waiting.append(ended)
        self._start()

    def collect(self, seconds: float = 0.0) -> None:
        """Hand on the records that are there. seconds: to wait for one."""
        for end in self._calls.wait(seconds):
            ended = self._leave(end.key)
            match end:
                case CallAnswered(_, record):
                    assert isinstance(record, StudyRecord)
                    self.written(ended.study, record)
                case CallRaised(_, error):
                    raise error from None
                case ProcessLost(_, error):
                    self._lost(ended, error)
        self._give_up()
        self._start()

    def _lost(self, ended: EndedStudy, error: BaseException) -> None:
        from ray.exceptions import OutOfMemoryError, WorkerCrashedError

        if isinstance(error, WorkerCrashedError | OutOfMemoryError):
            self.crashed(ended)
        else:  # a machine is gone: the next Tuner takes the study up again
            logger.warning("study %s is concluded later: %s", ended.study.id, error)

    def _give_up(self) -> None:
        """End what waits for a machine for too long; the study's record has that as its reason."""
        for study, each in list(self._running.items()):
            if self.room.has(each.takes) or each.placed:
                continue
            if why := self.room.given_up(each.takes, f"the last fit of {study!r}"):
                each.cancel()
                self._waiting.append(replace(self._leave(study), failure=EndCode.NO_PLACE("its last fit", why=why)))

    def close(self) -> None:
        """Leave what is not concluded yet; a resumed run does it."""
        for study, each in list(self._running.items()):
            each.cancel()
            self._leave(study)
        self._waiting.clear()

    def _start(self) -> None:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        while self._waiting and len(self._running) < self.limit:
            ended = self._waiting.popleft()
            needs = ended.study.resources if ended.fits else Resources()
            gang = largest_gang([ended.study.space]) if self.gangs and ended.fits else None
            bundles = [{"GPU": needs.gpus, **needs.custom}] if gang is None else [needs.to_bundle(), *gang.bundles]
            group = None if gang is None else reserve(bundles)
            # No CPUs, else it would wait for all trials that Tune has queued; and no memory. A task and no actor: Ray
            # gives it a process that has its libraries from the one before.
            task = ray.remote(_conclude).options(
                num_cpus=0,
                num_gpus=needs.gpus,
                resources=dict(needs.custom),
                max_retries=self.attempts - 1,
                scheduling_strategy="DEFAULT" if group is None else PlacementGroupSchedulingStrategy(group, 0),
            )
            reference = task.remote(self.run, ended, gang)
            study = ended.study.id
            self._calls.add(study, reference)
            self._running[study] = _Conclusion(ended, reference, (bundles, PACK), group)
            if group is not None:
                self._placeless.add(study)

    def _leave(self, study: str) -> EndedStudy:
        self._calls.drop(study)
        found = self._running.pop(study)
        found.leave()
        return found.ended


def _conclude(run: WorkerRun, ended: EndedStudy, gang: Gang | None) -> StudyRecord:
    unblock_sigterm()
    context, _ = opened(run)
    place = gangs_work_in(place_here(context.directory, ended.study, gang))
    with place, open_worker(context, grace=run.timing.cold_start_s) as worker:
        return ended.conclude(worker)
