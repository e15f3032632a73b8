"""Helpers as Ray actors: they train a packed study's trials in the placement group of its worker.

Each has a bundle for itself, but for the first, which shares that of the study's worker: one of the two waits for the
other. A helper that dies is replaced, and the trial that it was training is to blame, as a packed worker's is.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from tuning.basics.seeds import trial_seed
from tuning.basics.timing import Timing, hang_seconds
from tuning.definition.run_spec import RunSpec
from tuning.errors import StudyError
from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.evaluation.study_data import StudyData
from tuning.execution.context import TrialData, WorkerContext
from tuning.execution.crash_log import ProgressMarker, Site, forget_helpers, stack_left
from tuning.execution.limits import MemoryLimit, TimeLimits, within
from tuning.execution.nodes import Nodes, ray_nodes
from tuning.execution.study_run import (
    NoHelpersError,
    UnfinishedStudyError,
    ignore_warnings,
    own_settings,
    unblock_sigterm,
)
from tuning.execution.warm_up import warm_up
from tuning.models.compute import trains_with
from tuning.records.ownership import Term
from tuning.runs.plan_file import read_shard
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory
from tuning.study.helpers import (
    HelperAnswered,
    HelperLost,
    HelperPool,
    HelperReady,
    HelperTrainer,
    TrainingAnswer,
    TrainingRequest,
)
from tuning.study.interfaces import Configuration

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup

FALSE_STARTS = 2  # of a helper, before it can be asked anything; then there is no room for it
REACH_S = 10.0  # for which a helper that has stopped answering is asked whether it lives
WORK = HelperTrainer.train.__code__.co_filename  # the thread that is in this file is the one that a crash happened to
GPUS = "CUDA_VISIBLE_DEVICES"


class StateLostError(UnfinishedStudyError):
    """A state is gone with the machine that held it; the study begins again."""


@dataclass(frozen=True)
class Work:
    """Which study a helper trains for. spec, timing: as of `tuning.execution.packed.work_shard`."""

    uri: str
    term: Term
    shard: int
    position: int
    spec: RunSpec | None
    timing: Timing


class Said(KeptPredictions):
    """What trials said of the rows that their folds left out, on its way to the worker that keeps it."""

    last: tuple[tuple[str, int], OutOfFold] | None = None

    def replace(self, key: tuple[str, int], found: OutOfFold) -> None:
        self.last = (key, found) if self.most else None

    def taken(self) -> tuple[tuple[str, int], OutOfFold] | None:
        """What was said last, once."""
        last, self.last = self.last, None
        return last


def keeper(data: TrialData) -> Callable[[object], None]:
    """What keeps in a worker what its helpers' trials said."""

    def keep(said: object) -> None:
        if isinstance(data, StudyData) and data.kept is not None and isinstance(said, tuple):
            data.kept.replace(*said)

    return keep


class Helper:
    """The actor. gpus: those that are visible to it, where it has no bundle of its own."""

    def __init__(self, work: Work, gpus: str | None = None) -> None:
        unblock_sigterm()
        if gpus is not None:
            os.environ[GPUS] = gpus
        directory, nodes = RunDirectory(work.uri, work.timing), ray_nodes()
        plan = read_shard(directory, work.term, work.shard, work.spec)
        study = list(plan.studies)[work.position]
        self._marker = ProgressMarker(directory, work.term, work.shard, nodes.name, of_helper=True)
        self._open = ExitStack()
        self._compute = study.resources.compute
        with ignore_warnings(), trains_with(self._compute):
            context = WorkerContext.open(directory, plan.run, plan.spec, [study])
            limits = context.spec.definition.limits
            self._open.enter_context(MemoryLimit(limits.memory_gb, nodes.slots))
            timed = limits.trial_seconds is not None or limits.study_seconds is not None
            grace = 0.0 if not timed or warm_up(context, study) else work.timing.cold_start_s
            self._guard = self._open.enter_context(TimeLimits(limits, self._marker.stack, grace))
            self._guard.study(hang_seconds(study.customer.about_rows, of_objective=context.objective is not None))
            self._guard.part()  # it may hang in reading, too
            data = context.data(study.customer)
        said: Said | None = None
        if isinstance(data, StudyData) and data.kept is not None:
            said = Said(data.kept.task, data.kept.mode, data.kept.most)
            data = replace(data, kept=said)
        training = context.training(study, data)
        start = self._guard.each_step(within(training.start, limits.trial_seconds, grace))

        def seeded(config: Configuration, number: int, state: object) -> Iterator[Step]:
            yield from start(config, trial_seed(study.seed, number), state)

        self._trainer = HelperTrainer(seeded, work.timing, (lambda: None) if said is None else said.taken)

    def site(self) -> tuple[str, Site]:
        """Where it is, and what it is called there; when that is known, it can be asked."""
        self._guard.pause()
        return self._marker.name, self._marker.site

    def train(self, request: TrainingRequest, state: bytes | None) -> tuple[TrainingAnswer, bytes | None]:
        """As of `HelperTrainer`."""
        self._guard.part()
        try:
            with trains_with(self._compute), own_settings():
                return self._trainer.train(request, state)
        finally:
            self._guard.pause()


@dataclass
class RayLink:
    """The helpers of one study, as the worker of the study has them; a context manager.

    group: the placement group of this worker, with a bundle for each of the helpers. blame: is told the number of a
    trial that has ended a helper, and the stack at its end; it raises when that is enough. waiting: a context in which
    this worker waits for its helpers.
    """

    work: Work
    group: PlacementGroup
    nodes: Nodes
    blame: Callable[[int, str], None]
    waiting: Callable[[], AbstractContextManager[None]]
    _actors: dict[int, ActorHandle] = field(default_factory=dict)
    _sites: dict[int, tuple[str, Site]] = field(default_factory=dict)
    _starting: dict[ObjectRef, int] = field(default_factory=dict)
    _asked: dict[ObjectRef, tuple[int, int, ObjectRef]] = field(default_factory=dict)
    _false_starts: Counter[int] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        return int(self.group.bundle_count)

    def __enter__(self) -> RayLink:
        for helper in range(self.size):
            self._start(helper)
        return self

    def __exit__(self, *exc: object) -> None:
        import ray

        for actor in self._actors.values():
            with suppress(Exception):
                ray.kill(actor)
        with suppress(Exception):  # what would stay are a few bytes
            if coming := list(self._starting):  # which may have noted something, and have not said where
                ray.wait(coming, num_returns=len(coming), timeout=REACH_S)
            forget_helpers(RunDirectory(self.work.uri), self.work.term, self.work.shard)

    def _start(self, helper: int) -> None:
        import ray
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        own = {} if helper == 0 else {name: n for name, n in self.group.bundle_specs[helper].items() if n}
        cpus, gpus = own.pop("CPU", 0), own.pop("GPU", 0)
        memory = own.pop("memory", None)
        options: dict[str, object] = {"num_cpus": cpus, "num_gpus": gpus, "resources": own, "max_restarts": 0}
        options |= {} if memory is None else {"memory": memory}
        place = PlacementGroupSchedulingStrategy(self.group, placement_group_bundle_index=helper)
        kind = ray.remote(Helper).options(scheduling_strategy=place, **options)
        actor = self._actors[helper] = kind.remote(self.work, os.environ.get(GPUS) if helper == 0 else None)
        self._starting[actor.site.remote()] = helper

    def send(self, helper: int, request: TrainingRequest, state: object) -> None:
        answer, saved = self._actors[helper].train.options(num_returns=2).remote(request, state)
        self._asked[answer] = helper, request.number, saved

    def wait(self) -> Sequence[HelperReady | HelperAnswered | HelperLost]:
        import ray

        refs = [*self._asked, *self._starting]
        with self.waiting():
            ray.wait(refs, num_returns=1)
        found, _ = ray.wait(refs, num_returns=len(refs), timeout=0)
        return [self._started(ref) if ref in self._starting else self._answered(ref) for ref in found]

    def _started(self, ref: ObjectRef) -> HelperReady | HelperLost:
        import ray

        helper = self._starting.pop(ref)
        try:
            self._sites[helper] = ray.get(ref)
            return HelperReady(helper)
        except ray.exceptions.RayError:
            self._false_starts[helper] += 1
            return self._replaced(helper) if self._false_starts[helper] < FALSE_STARTS else self._left_out(helper)

    def _answered(self, ref: ObjectRef) -> HelperAnswered | HelperLost:
        import ray

        helper, number, saved = self._asked.pop(ref)
        try:
            answer: TrainingAnswer = ray.get(ref)
        except ray.exceptions.RayTaskError as error:
            raise StudyError(f"what trial {number} reports cannot be sent: {error.cause}") from error
        except (ray.exceptions.ObjectLostError, ray.exceptions.OwnerDiedError) as error:
            raise StateLostError from error
        except ray.exceptions.RayError:
            return self._lost(helper, number)
        return HelperAnswered(helper, answer, saved if answer.saved else None)

    def _lost(self, helper: int, number: int) -> HelperLost:
        _, site = self._sites[helper]
        gone, dead = self.nodes.lost(site.node), self._dead(helper)
        stack = self._look_back(helper)
        if dead and not gone:
            self.blame(number, stack)
        if gone and helper:
            return self._left_out(helper)  # nobody knows whether there is ever another machine
        return self._replaced(helper)

    def _dead(self, helper: int) -> bool:
        """Whether it has died. Else it cannot be reached for a while, and no trial is to blame for that."""
        import ray

        try:
            ray.get(self._actors[helper].site.remote(), timeout=REACH_S)
        except (ray.exceptions.ActorUnavailableError, ray.exceptions.GetTimeoutError):
            return False
        except ray.exceptions.RayError:
            return True
        return False

    def _left_out(self, helper: int) -> HelperLost:
        del self._actors[helper]
        if not self._actors:
            raise NoHelpersError
        return HelperLost(helper, for_good=True)

    def _replaced(self, helper: int) -> HelperLost:
        import ray

        with suppress(Exception):
            ray.kill(self._actors[helper])  # of which nothing is heard, though it may live
        self._start(helper)
        return HelperLost(helper)

    def _look_back(self, helper: int) -> str:
        """The stack that a helper has left at its end; then nothing is left of it."""
        name, site = self._sites.pop(helper)
        return stack_left(RunDirectory(self.work.uri), name, site, WORK, self.nodes.fetch)


@contextmanager
def helpers_of(
    work: Work,
    nodes: Nodes,
    data: TrialData,
    blame: Callable[[int, str], None],
    waiting: Callable[[], AbstractContextManager[None]],
) -> Iterator[HelperPool | None]:
    """The helpers of a study whose worker has a placement group with room for several; None without."""
    import ray
    from ray.util.placement_group import get_current_placement_group

    group = get_current_placement_group() if ray.is_initialized() else None
    if group is None or group.bundle_count < 2:
        yield None
        return
    with RayLink(work, group, nodes, blame, waiting) as link:
        yield HelperPool(link, keeper(data))
