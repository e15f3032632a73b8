"""Helpers as Ray actors: they train a packed study's trials in the placement group of its worker.

Each has a bundle of its own, except for the first: it shares the bundle of the study's worker, as one of the two always
waits for the other. A helper that dies is replaced. The trial that it was training is to blame, as with packed workers.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from tuning.basics.seeds import trial_seed
from tuning.errors import StudyError
from tuning.evaluation.out_of_fold import KeptPredictions, OutOfFold
from tuning.evaluation.study_data import StudyData
from tuning.execution.crash_log import Nodes, ProgressMarker, Site, forget_helpers, ray_nodes, stack_left
from tuning.execution.study_run import NoHelpersError, UnfinishedStudyError, spare_loading
from tuning.execution.worker import TrialData, WorkerContext, WorkerRun, open_worker, unblock_sigterm
from tuning.models.compute import trains_with
from tuning.notes import EndCode
from tuning.records.schema import Config
from tuning.runs.plan_file import read_batch
from tuning.steps import Step
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
from tuning.user_code import ignore_warnings, own_settings
from tuning.worker_groups.process_group import REACH_S, CallAnswered, CallEnd, CallRaised, ProcessGroup, ProcessLost

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup

FALSE_STARTS = 2  # of a helper, before it can be asked anything; then there is no room for it
WORK = HelperTrainer.train.__code__.co_filename  # the thread that is in this file is the one that a crash happened to
GPUS = "CUDA_VISIBLE_DEVICES"


class StateLostError(UnfinishedStudyError):
    """A state is gone with the machine that held it; the study begins again."""


@dataclass(frozen=True)
class HelperJob:
    """The study that a helper trains for: the one at a position of a run's batch."""

    run: WorkerRun
    batch: int
    position: int


class OutOfFoldOutbox(KeptPredictions):
    """Out-of-fold predictions of a helper's trials, on their way to the worker that keeps them."""

    last: tuple[Config, int, OutOfFold] | None = None

    def keep(self, config: Config, seed: int, found: OutOfFold) -> None:
        self.last = (config, seed, found) if self.most else None

    def taken(self) -> tuple[Config, int, OutOfFold] | None:
        """Return the trial and its predictions that came last, once."""
        last, self.last = self.last, None
        return last


def keep_predictions(data: TrialData, found: object) -> None:
    """Keep in a worker what an outbox of its helpers has given."""
    if isinstance(data, StudyData) and data.kept is not None and isinstance(found, tuple):
        data.kept.keep(*found)


class HelperActor:
    """The actor. gpus: those that are visible to it, where it has no bundle of its own."""

    def __init__(self, job: HelperJob, gpus: str | None = None) -> None:
        unblock_sigterm()
        if gpus is not None:
            os.environ[GPUS] = gpus
        directory, timing, nodes = job.run.directory, job.run.timing, ray_nodes()
        plan = read_batch(directory, job.run.term, job.batch, job.run.spec)
        study = list(plan.studies)[job.position]
        self._marker = ProgressMarker(directory, job.run.term, job.batch, nodes.name, of_helper=True)
        self._open = ExitStack()
        self._compute = study.resources.compute
        with ignore_warnings(), trains_with(self._compute):
            context = WorkerContext.open(directory, plan.run, plan.spec, [study])
            opened = open_worker(context, timing.cold_start_s, marker=self._marker, slots=nodes.slots)
            worker = self._open.enter_context(opened)
            spare_loading(worker, study)
            worker.study(job.position, study)
            worker.loading()
            data = context.data(study.customer)
        self._guard = worker.guard
        outbox: OutOfFoldOutbox | None = None
        if isinstance(data, StudyData) and data.kept is not None:
            outbox = OutOfFoldOutbox(data.kept.task, data.kept.mode, data.kept.most)
            data = replace(data, kept=outbox)
        training = context.training(study, data)
        start = self._guard.each_step(self._guard.limited(training.start))

        def seeded(config: Configuration, number: int, state: object) -> Iterator[Step]:
            yield from start(config, trial_seed(study.seed, number), state)

        self._trainer = HelperTrainer(seeded, timing, (lambda: None) if outbox is None else outbox.taken)

    def site(self) -> tuple[str, Site]:
        """Return where it is, and what it is called there; when that is known, it can be asked."""
        self._guard.pause()
        return self._marker.name, self._marker.site

    def train(self, request: TrainingRequest, state: bytes | None) -> tuple[TrainingAnswer, bytes | None]:
        """See `HelperTrainer`."""
        self._guard.part()
        try:
            with trains_with(self._compute), own_settings():
                return self._trainer.train(request, state)
        finally:
            self._guard.pause()


@dataclass
class RayLink:
    """The helpers of one study, as the worker of the study has them; a context manager.

    Attributes:
        job: what they train for.
        group: the placement group of this worker, with a bundle for each of the helpers.
        nodes: the cluster.
        blame: is told the number of a trial that has ended a helper, and the stack at its end; it raises when that is
            enough.
        waiting: a context in which this worker waits for its helpers.
    """

    job: HelperJob
    group: PlacementGroup
    nodes: Nodes
    blame: Callable[[int, str], None]
    waiting: Callable[[], AbstractContextManager[None]]
    _sites: dict[int, tuple[str, Site]] = field(default_factory=dict)
    _asked: dict[int, tuple[int, object]] = field(default_factory=dict)  # the trial, and the state that is to come
    _false_starts: Counter[int] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self._processes = ProcessGroup(self.group, HelperActor, "site")
        self._left = set(range(self.size))

    @property
    def size(self) -> int:
        return int(self.group.bundle_count)

    def __enter__(self) -> RayLink:
        for helper in range(self.size):
            self._start(helper)
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(Exception):  # what would stay are a few bytes
            self._processes.close(REACH_S)  # who starts may have noted something, and has not said where
            forget_helpers(self.job.run.directory, self.job.run.term, self.job.batch)

    def _start(self, helper: int) -> None:
        self._processes.start(helper, self.job, os.environ.get(GPUS) if helper == 0 else None)

    def send(self, helper: int, request: TrainingRequest, state: object) -> None:
        (saved,) = self._processes.ask(helper, "train", request, state, returns=2)
        self._asked[helper] = request.number, saved

    def wait(self) -> Sequence[HelperReady | HelperAnswered | HelperLost]:
        with self.waiting():
            found = self._processes.wait()
        return [self._answered(end) if end.key in self._asked else self._started(end) for end in found]

    def _started(self, end: CallEnd) -> HelperReady | HelperLost:
        helper = end.key
        if isinstance(end, CallAnswered):
            assert isinstance(end.answer, tuple)  # of `HelperActor.site`
            self._sites[helper] = end.answer
            return HelperReady(helper)
        self._false_starts[helper] += 1
        return self._replaced(helper) if self._false_starts[helper] < FALSE_STARTS else self._left_out(helper)

    def _answered(self, end: CallEnd) -> HelperAnswered | HelperLost:
        from ray.exceptions import ObjectLostError, OwnerDiedError

        helper = end.key
        number, saved = self._asked.pop(helper)
        if isinstance(end, CallRaised):
            raise StudyError(EndCode.REPORT_NOT_SENT(trial=number, error=str(end.error))) from end.error
        if isinstance(end, ProcessLost):
            if isinstance(end.error, ObjectLostError | OwnerDiedError):
                raise StateLostError from end.error
            return self._lost(helper, number)
        assert isinstance(end.answer, TrainingAnswer)
        return HelperAnswered(helper, end.answer, saved if end.answer.saved else None)

    def _lost(self, helper: int, number: int) -> HelperLost:
        name, site = self._sites.pop(helper)
        gone, dead = self.nodes.lost(site.node), self._processes.dead(helper)
        stack = stack_left(self.job.run.directory, name, site, WORK, self.nodes)
        if dead and not gone:
            self.blame(number, stack)
        if gone and helper:
            return self._left_out(helper)  # nobody knows whether there is ever another machine
        return self._replaced(helper)

    def _left_out(self, helper: int) -> HelperLost:
        self._processes.end(helper)
        self._left.discard(helper)
        if not self._left:
            raise NoHelpersError
        return HelperLost(helper, for_good=True)

    def _replaced(self, helper: int) -> HelperLost:
        self._start(helper)  # the one before may live, though nothing is heard of it
        return HelperLost(helper)


@contextmanager
def helpers_of(
    job: HelperJob,
    nodes: Nodes,
    data: TrialData,
    blame: Callable[[int, str], None],
    waiting: Callable[[], AbstractContextManager[None]],
) -> Iterator[HelperPool | None]:
    """Return the helpers of a study if the placement group of its worker has room for several, else None."""
    import ray
    from ray.util.placement_group import get_current_placement_group

    group = get_current_placement_group() if ray.is_initialized() else None
    if group is None or group.bundle_count < 2:
        yield None
        return
    with RayLink(job, group, nodes, blame, waiting) as link:
        yield HelperPool(link, partial(keep_predictions, data))
