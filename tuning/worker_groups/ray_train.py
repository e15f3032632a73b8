"""Ray Train's controller within a trial: its workers stand in the trial's placement group, its reports are asked for.

Left alone, Ray Train places workers in a group of its own. Nobody limits how many trials wait for one then, and it
stays when the trial's process is killed before the workers are there. What is extended here belongs to the classes that
make workers and watch over them: where workers stand, and when they go; where training begins; and when it is looked
at. A test fails when Ray has changed what is extended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

import ray
from ray.train import CheckpointConfig
from ray.train.v2._internal.callbacks.placement_group_callback import PlacementGroupCleanerCallback
from ray.train.v2._internal.execution.callback import ReportCallback, WorkerGroupCallback
from ray.train.v2._internal.execution.controller import TrainController
from ray.train.v2._internal.execution.scaling_policy.fixed import FixedScalingPolicy
from ray.train.v2._internal.execution.worker_group import WorkerGroup
from ray.train.v2._internal.execution.worker_group.placement_group_handle import DefaultPlacementGroupHandle
from ray.util.placement_group import get_current_placement_group

from tuning.basics.environment import thread_environment
from tuning.basics.wording import lines_of, one_line
from tuning.errors import RunError
from tuning.user_code import copied_modules

if TYPE_CHECKING:
    from ray.actor import ActorHandle
    from ray.train import Checkpoint, RunConfig, ScalingConfig
    from ray.train.v2._internal.execution.callback import RayTrainCallback
    from ray.train.v2._internal.execution.context import TrainRunContext
    from ray.train.v2._internal.execution.scaling_policy import ScalingPolicy
    from ray.train.v2._internal.execution.worker_group import Worker, WorkerGroupPollStatus
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
    from ray.util.placement_group import PlacementGroup

    ReportOrEnd = tuple[int, Mapping[str, object]] | BaseException | None

NODE = "ray.io/node-id"  # Ray's label of each node
STEP = "step"  # of a checkpoint's metadata: after how many reports it was made
POLL_S = 0.2  # between two looks at the workers, each of which brings one report at most; Ray's default is 2 seconds
STARTS = 3  # of workers that do not come up; then training has failed. Ray's default is without an end
END_S = 10.0  # for workers to end in; then they are killed


def trained(
    trainer: DataParallelTrainer, folder: str, name: str
) -> Generator[tuple[int, Mapping[str, object]], None, None]:
    """Return the reports of a trainer's workers, see `tuning.models.trainers.training.reports`."""
    controller = _started(trainer, folder, name)
    try:
        controller.run.remote()
        while (found := ray.get(controller.next_report.remote())) is not None:
            if isinstance(found, BaseException):
                raise RunError(_reason(found)) from found
            yield found
    finally:
        with contextlib.suppress(Exception):  # it is gone, or does not answer
            ray.get(controller.abort.remote(), timeout=END_S)
        ray.kill(controller)


def _reason(error: BaseException) -> str:
    """Return what Ray Train's error comes down to: the last line of what it says of the first worker that failed."""
    failures: Mapping[int, BaseException] = getattr(error, "worker_failures", None) or {}
    rank, failure = min(failures.items(), key=lambda item: item[0], default=(None, error))
    lines = lines_of(failure)
    last = lines[-1] if len(lines) > 1 else one_line(failure)  # one line is no traceback, and does not say the kind
    return last if rank is None else f"worker {rank}: {last}"


def _started(trainer: DataParallelTrainer, folder: str, name: str) -> ActorHandle:
    """Return a controller for the trainer's workers, which are not there yet."""
    given: RunConfig = trainer.run_config
    kept, failure = given.checkpoint_config, given.failure_config
    if failure is not None and failure.controller_failure_limit < 0:
        failure = replace(failure, controller_failure_limit=STARTS)
    trainer.run_config = replace(
        given,
        name=name,
        storage_path=folder,
        failure_config=failure,
        checkpoint_config=kept if kept is not None and kept.num_to_keep else CheckpointConfig(num_to_keep=1),
        worker_runtime_env=_environment(dict(given.worker_runtime_env or {}), trainer.scaling_config),
    )
    trainer.train_run_context = replace(
        trainer.train_run_context,
        run_config=trainer.run_config,
        train_loop_config=trainer.train_loop_config,
        scaling_config=trainer.scaling_config,
    )
    for module in copied_modules():
        ray.cloudpickle.register_pickle_by_value(module)  # its functions are sent to the workers as they are
    trainer._initialize_and_run_controller = _Started  # what `fit` calls last
    started = trainer.fit()
    assert isinstance(started, _Started)
    return started.controller


def _environment(given: dict[str, object], scaling: ScalingConfig) -> dict[str, object]:
    """Return what is given, and as many threads as a worker has CPUs, where these are several."""
    cpus = int(scaling.total_resources.get("CPU", 0) / scaling.max_workers)
    threads = thread_environment(cpus) if cpus > 1 else {}
    own = given.get("env_vars")
    variables = {**threads, **(own if isinstance(own, Mapping) else {})}
    return {**given, **({"env_vars": variables} if variables else {})}


class _Started:
    """In place of a training's result: the controller, to be asked for one report after the other."""

    error = None

    def __init__(self, **arguments: object) -> None:
        # On this node, as Ray Train has it: it ends with the trial's process.
        kind = ray.remote(num_cpus=0, label_selector={NODE: ray.get_runtime_context().get_node_id()})(TrialController)
        self.controller = kind.remote(**arguments)


class _TrialGroup(DefaultPlacementGroupHandle):
    """The trial's placement group, which is there before its workers and stays for the next ones."""

    def shutdown(self) -> None:
        pass


class TrialWorkers(WorkerGroup):
    """Workers in the trial's placement group, behind the bundle of the trial itself."""

    def _create_placement_group(self, scaling_config: object, worker_group_context: object) -> _TrialGroup:
        group = get_current_placement_group()
        assert group is not None  # the controller is a child of the trial's process
        return _TrialGroup(group)

    def _create_workers(
        self,
        num_workers: int,
        placement_group: PlacementGroup,
        resources_per_worker: dict[str, float],
        placement_group_bundle_indices: list[int] | None = None,
        **more: int | None,
    ) -> list[Worker]:
        indices = placement_group_bundle_indices or list(range(1, num_workers + 1))
        return list(super()._create_workers(num_workers, placement_group, resources_per_worker, indices, **more))


class _NoRequests(FixedScalingPolicy):
    """Tune has asked the cluster for the trial's placement group; Ray Train's own requests would come on top."""

    def after_controller_start(self, train_run_context: TrainRunContext) -> None:
        pass

    def _maybe_send_resource_request(self) -> None:
        pass


class WorkersReport(Protocol):
    """What the first worker has reported."""

    metrics: Mapping[str, object]
    checkpoint: Checkpoint | None


@dataclass
class _Reports(ReportCallback, WorkerGroupCallback):
    """Tells the controller that it belongs to where training begins, and each report."""

    controller: TrialController

    def before_worker_group_start(self, worker_group_context: object) -> None:
        self.controller.begin()

    def after_report(self, training_report: WorkersReport, metrics: object) -> None:
        self.controller.take(training_report)


class TrialController(TrainController):
    """A controller that gives its reports to whoever asks, and looks for the next one when it is asked for."""

    worker_group_cls = TrialWorkers

    def __init__(
        self, callbacks: Sequence[RayTrainCallback], scaling_policy: ScalingPolicy, **arguments: object
    ) -> None:
        os.environ.setdefault("RAY_WARN_BLOCKING_GET_INSIDE_ASYNC", "0")  # Ray Train means it
        os.environ["RAY_TRAIN_HEALTH_CHECK_INTERVAL_S"] = str(POLL_S)
        self.reports: asyncio.Queue[ReportOrEnd] = asyncio.Queue()
        self.wanted = asyncio.Event()
        self.reported = 0  # reports, up to the last one
        # Ray Train's cleaner would remove the trial's placement group, and so end a process that others may use.
        own = [each for each in callbacks if not isinstance(each, PlacementGroupCleanerCallback)]
        policy = _NoRequests(scaling_policy.scaling_config)
        super().__init__(callbacks=[*own, _Reports(self)], scaling_policy=policy, **arguments)

    async def run(self) -> None:
        """Train to the end."""
        try:
            await super().run()
        finally:
            self.reports.put_nowait(self.get_training_failed_error())

    async def next_report(self) -> ReportOrEnd:
        """Return the next report; what training has failed with, or None, at the end."""
        self.wanted.set()
        return await self.reports.get()

    def take(self, report: WorkersReport) -> None:
        """Take a report of all workers; those of the first one count."""
        self.reported += 1
        if report.checkpoint is not None:
            report.checkpoint.update_metadata({STEP: self.reported})
        self.wanted.clear()
        self.reports.put_nowait((self.reported, report.metrics))

    def begin(self) -> None:
        """Workers are started, and go on from the last checkpoint; its report may be lost with its reader."""
        latest = self._checkpoint_manager.latest_checkpoint_result
        self.reported = 0
        if latest is not None and latest.checkpoint is not None:
            self.reported = latest.checkpoint.get_metadata().get(STEP, 0)
            self.reports.put_nowait((self.reported, latest.metrics))

    async def _poll_workers(self) -> WorkerGroupPollStatus:
        await self.wanted.wait()
        return await super()._poll_workers()
