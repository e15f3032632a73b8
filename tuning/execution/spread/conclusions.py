"""Concluding spread studies: in workers, under the limits that a packed worker has.

The driver runs none of a customer's code itself: a fit that hangs or crashes there would hold or end all studies.
"""

from __future__ import annotations

import logging
import tempfile
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tuning.basics.timing import Timing, hang_seconds
from tuning.definition.options import Resources
from tuning.definition.run_spec import RunSpec
from tuning.execution.context import WorkerContext
from tuning.execution.jobs import PACK
from tuning.execution.limits import MemoryLimit, TimeLimits
from tuning.execution.spread.predictions import read_predictions
from tuning.execution.spread.trainable import opened, place_here
from tuning.execution.study_run import Hooks, conclude_study, ignore_warnings, own_settings, unblock_sigterm
from tuning.models.gang import Gang
from tuning.models.shards import gangs_work_in
from tuning.planning.gangs import largest_gang
from tuning.planning.room import Room, Takes
from tuning.records.ownership import Term
from tuning.records.schema import FINISHED, StudyRecord, TrialRecord
from tuning.study.study import Study

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.util.placement_group import PlacementGroup

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ended:
    """A study whose trials have ended. ended_by, failure: as of `conclude_study`."""

    study: Study
    records: Sequence[TrialRecord]
    ended_by: str = ""
    failure: str | None = None

    @property
    def fits(self) -> bool:
        """Whether a model is to be fitted."""
        return self.failure is None and any(trial.state == FINISHED for trial in self.records)

    def conclude(self, context: WorkerContext, watch: Hooks | None = None) -> StudyRecord:
        """Its record; its model is written."""
        with ignore_warnings(), own_settings():
            record = conclude_study(
                context,
                self.study,
                self.records,
                ended_by=self.ended_by,
                failure=self.failure,
                watch=watch,
                predictions=partial(read_predictions, context.directory, self.study.id),
            )
        context.background.flush()
        return record


@dataclass
class Conclusions:
    """The studies that are being concluded.

    Attributes:
        uri, term, spec, timing: of the run, as of `run_trial`.
        limit: how many are concluded at a time.
        attempts: how many workers a study may end.
        gangs: whether there are models that several processes train.
        room: of the machines.
        written: told a study's record.
        crashed: told a study that has ended its workers.
    """

    uri: str
    term: Term
    spec: RunSpec | None
    timing: Timing
    limit: int
    attempts: int
    gangs: bool
    room: Room
    written: Callable[[Study, StudyRecord], None]
    crashed: Callable[[Ended], None]
    _waiting: deque[Ended] = field(default_factory=deque)
    _running: dict[ObjectRef[StudyRecord], Ended] = field(default_factory=dict)
    _takes: dict[ObjectRef[StudyRecord], Takes] = field(default_factory=dict)
    _groups: dict[ObjectRef[StudyRecord], PlacementGroup] = field(default_factory=dict)  # of those with a gang
    _placeless: set[ObjectRef[StudyRecord]] = field(default_factory=set)  # of these, when somebody looked last

    @property
    def busy(self) -> bool:
        """Whether a study is not concluded yet."""
        return bool(self._waiting or self._running)

    @property
    def cpus(self) -> list[float]:
        """What each study takes that is being concluded by several processes, and for which machines have room."""
        found = [self._takes[reference] for reference in self._groups]
        return [sum(bundle.get("CPU", 0.0) for bundle in takes[0]) for takes in found if self.room.has(takes)]

    @property
    def waits(self) -> bool:
        """Whether a study that several processes are to conclude has no place for them yet."""
        self._placeless = {
            reference for reference in self._placeless & self._groups.keys() if not self._begun(reference)
        }
        return bool(self._placeless)

    def add(self, ended: Ended) -> None:
        """Conclude a study, as soon as there is room."""
        self._waiting.append(ended)
        self._start()

    def collect(self, seconds: float = 0.0) -> None:
        """Hand on the records that are there. seconds: to wait for one."""
        if not self._running:
            return
        import ray
        from ray.exceptions import OutOfMemoryError, RayError, RayTaskError, WorkerCrashedError

        ready, _ = ray.wait(list(self._running), timeout=seconds)
        for reference in ready:
            ended = self._running.pop(reference)
            self._leave(reference)
            try:
                record: StudyRecord = ray.get(reference)
            except RayTaskError as error:
                raise error.cause from None
            except (WorkerCrashedError, OutOfMemoryError):
                self.crashed(ended)
            except RayError as error:  # a machine is gone: the next Tuner takes the study up again
                logger.warning("study %s is concluded later: %s", ended.study.id, error)
            else:
                self.written(ended.study, record)
        self._give_up()
        self._start()

    def _give_up(self) -> None:
        """End what waits for a machine for too long; the study's record has that as its reason."""
        import ray

        for reference, ended in list(self._running.items()):
            takes = self._takes[reference]
            if self.room.has(takes) or self._begun(reference):
                continue
            if why := self.room.given_up(takes, f"the last fit of {ended.study.id!r}"):
                ray.cancel(reference, force=True)
                del self._running[reference]
                self._leave(reference)
                self._waiting.append(replace(ended, failure=f"its last fit: {why}"))

    def _begun(self, reference: ObjectRef[StudyRecord]) -> bool:
        """Whether a study's process has its place; some of its actors' may be lost. Else only Ray's task is there."""
        import ray

        if (group := self._groups.get(reference)) is None:
            return False  # one process works on one machine, and there is none
        return bool(ray.util.placement_group_table(group)["bundles_to_node_id"].get(0))

    def close(self) -> None:
        """Leave what is not concluded yet; a resumed run does it."""
        if not self.busy:
            return
        import ray

        for reference in self._running:
            ray.cancel(reference, force=True)
            self._leave(reference)
        self._running.clear()
        self._waiting.clear()

    def _start(self) -> None:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        task = ray.remote(_conclude)
        while self._waiting and len(self._running) < self.limit:
            ended = self._waiting.popleft()
            needs = ended.study.resources if ended.fits else Resources()
            # No CPUs, else it would wait for all trials that Tune has queued; and no memory.
            options = {
                "num_cpus": 0,
                "num_gpus": needs.gpus,
                "resources": dict(needs.custom),
                "max_retries": self.attempts - 1,
            }
            gang = largest_gang([ended.study.space]) if self.gangs and ended.fits else None
            told = (self.uri, self.term, self.spec, self.timing, ended, gang)
            if gang is None:
                reference = task.options(**options).remote(*told)
                bundles = [{"GPU": needs.gpus, **needs.custom}]
            else:
                bundles = [needs.to_bundle(), *gang.bundles]
                group = ray.util.placement_group(bundles, PACK)
                placed = PlacementGroupSchedulingStrategy(group, 0)
                reference = task.options(**options, scheduling_strategy=placed).remote(*told)
                self._groups[reference] = group
                self._placeless.add(reference)
            self._running[reference], self._takes[reference] = ended, (bundles, PACK)

    def _leave(self, reference: ObjectRef[StudyRecord]) -> None:
        import ray

        del self._takes[reference]
        if (group := self._groups.pop(reference, None)) is not None:
            ray.util.remove_placement_group(group)


class _Timed(Hooks):
    """Sets a worker's limit of time."""

    def __init__(self, guard: TimeLimits) -> None:
        self._guard = guard

    def loading(self) -> None:
        self._guard.part()

    def concluding(self) -> None:
        self._guard.final_fit()

    def saving(self) -> None:
        self._guard.pause()


def _conclude(
    uri: str, term: Term, spec: RunSpec | None, timing: Timing, ended: Ended, gang: Gang | None
) -> StudyRecord:
    unblock_sigterm()
    context, _ = opened(uri, term, spec, timing)
    definition = context.spec.definition
    limits, rows = definition.limits, ended.study.customer.about_rows
    memory = nullcontext() if limits.memory_gb is None else MemoryLimit(limits.memory_gb, slots=1)
    place = gangs_work_in(place_here(context.directory, ended.study, gang))
    with memory, place, tempfile.TemporaryFile() as stack, TimeLimits(limits, stack, timing.cold_start_s) as guard:
        guard.study(hang_seconds(rows, of_objective=definition.objective is not None))
        guard.took(ended.records)
        return ended.conclude(context, _Timed(guard))
