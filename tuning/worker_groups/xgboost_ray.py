"""XGBoost-Ray 0.1.19 on XGBoost 3.2: one distributed training at a time in a thread, each step told when made.

XGBoost-Ray was written for the tracker of XGBoost before 2.1, and ends its actors when training succeeds only. Five of
its functions are replaced here: the two that start and stop the tracker, by XGBoost's own tracker; the two that make
actors, queue and event, so that all of them are known and ended; and the one that looks for a placement group, so that
actors stand in the trial's own. All else is as it is. A test fails when what is replaced has changed.
"""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from tuning.basics.wording import lines_of
from tuning.errors import RunError
from tuning.models.boosters import rounds_of
from tuning.models.families.xgboost_ray import unsuitable
from tuning.models.group_training import TrainingJob
from tuning.models.shards import LABEL, WEIGHT
from tuning.models.worker_group import RESTARTS, ActorGroup
from tuning.storage.run_directory import RunDirectory
from tuning.worker_groups.process_group import RayPlace

if TYPE_CHECKING:
    from ray import ObjectRef
    from ray.actor import ActorHandle
    from ray.util.placement_group import PlacementGroup
    from ray.util.queue import Queue
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
    from xgboost import Booster, DMatrix
    from xgboost.callback import TrainingCallback
    from xgboost.tracker import RabitTracker
    from xgboost_ray import RayDMatrix
    from xgboost_ray.util import Event

    Started = tuple[RabitTracker, threading.Thread]

CHECKPOINT_ROUNDS = 5  # XGBoost-Ray goes on from there when it has lost an actor
TRACKER_S = 0.5
LOOK_S = 1.0  # between two looks whether the actors have started

SentStep = tuple[int, bytes]
_NUMBERS = itertools.count()
_TRAININGS: dict[int, RayTraining] = {}  # of this process, by number
_HERE = threading.local()  # .training: the one that a thread is for


@dataclass(eq=False)
class RayTraining:
    """One training in a thread of its own, from when it is made; an iterator of (rounds, model) after each step.

    worker_group, place: which actors, and where: the first of them in the second bundle of the placement group. share:
    of what each actor has. beginnings: when training has begun, again after each lost actor (`time.monotonic`), and
    after how many rounds. Raises `RunError` where actors are lost more than `RESTARTS` times or do not start, or
    XGBoost refuses.
    """

    work: TrainingJob
    worker_group: ActorGroup
    place: RayPlace
    share: float = 1.0
    beginnings: list[tuple[float, int]] = field(default_factory=list)
    actors: list[ActorHandle] = field(default_factory=list)  # handles of actors, all that have been started
    _starting: dict[ObjectRef[int], float] = field(default_factory=dict)  # actors' first answers, since when
    _steps: queue.Queue[SentStep | BaseException | None] = field(default_factory=queue.Queue)
    _closed: threading.Event = field(default_factory=threading.Event)
    _last: SentStep = (0, b"")

    def __post_init__(self) -> None:
        self.number = next(_NUMBERS)
        _TRAININGS[self.number] = self
        _install()
        threading.Thread(target=self._work, name=f"xgboost-ray-{self.number}", daemon=True).start()

    def __iter__(self) -> RayTraining:
        return self

    def __next__(self) -> SentStep:
        while True:
            try:
                found = self._steps.get(timeout=LOOK_S)
                break
            except queue.Empty:
                self._check_started()
        if isinstance(found, BaseException):
            raise found
        if found is None:
            raise StopIteration
        return found

    def close(self) -> None:
        """End everything that it has started, whatever it is doing."""
        self._closed.set()
        _TRAININGS.pop(self.number, None)
        self._kill()

    def check_open(self) -> None:
        """Raise where it has been closed: XGBoost-Ray would start lost actors again."""
        if self._closed.is_set():
            raise _ClosedError

    def started(self, actor: ActorHandle) -> None:
        """Note that an actor is on its way."""
        self.actors.append(actor)
        self._starting[actor.pid.remote()] = time.monotonic()

    def _check_started(self) -> None:
        """Raise `RunError` where an actor has been on its way for too long."""
        import ray

        starting = dict(self._starting)  # of which the thread may make more
        for answer in ray.wait(list(starting), num_returns=len(starting), timeout=0)[0] if starting else ():
            del self._starting[answer], starting[answer]
        if any(time.monotonic() - since > self.place.patience_s for since in starting.values()):
            raise self.place.no_start(len(starting), self.worker_group)

    def begin(self, rounds: int) -> None:
        """Note that the actors train, after so many rounds."""
        self.beginnings.append((time.monotonic(), rounds))

    def take(self, rounds: int, model: bytes) -> None:
        """Pass a step on; one that was done before an actor was lost is not told again."""
        if rounds > self._last[0] and not self._closed.is_set():
            self._last = rounds, model
            self._steps.put(self._last)

    def _kill(self) -> None:
        import ray

        for actor in self.actors:
            ray.kill(actor)

    def _work(self) -> None:
        _HERE.training = self
        self._last = rounds_of(self.work.model), self.work.model or b""
        tries = RESTARTS if self.worker_group.recovery == "cold" else 0
        try:
            for left in range(tries, -1, -1):
                try:
                    self._train()
                    break
                except RuntimeError:
                    if not left:
                        raise
                    self._kill()
            self._steps.put(None)
        except _ClosedError:
            pass
        except BaseException as error:
            if self._last[0] == self.work.rounds:  # XGBoost-Ray fails where an actor is lost, or back, at the very end
                self._steps.put(None)
                return
            self._steps.put(RunError(f"XGBoost-Ray could not train: {_cause(error)}"))
        finally:
            self._kill()

    def _train(self) -> None:
        import xgboost_ray

        self.check_open()
        work, (done, model) = self.work, self._last
        threads = max(1, int(self.worker_group.cpus_per_actor * self.share))
        within = self.worker_group.recovery != "cold"  # XGBoost-Ray itself brings lost actors back
        elastic = self.worker_group.recovery == "elastic" and self.worker_group.actors > 1
        xgboost_ray.train(
            {**work.params, "nthread": threads},
            _rows(work, RunDirectory(self.place.uri)),
            work.rounds - done,
            xgb_model=bytearray(model) if model else None,
            verbose_eval=False,
            callbacks=[_reporting(self.number, work.every, work.rounds)],
            ray_params=xgboost_ray.RayParams(
                num_actors=self.worker_group.actors,
                cpus_per_actor=threads,  # as many as it would allow; what it reserves is said below
                gpus_per_actor=0,
                elastic_training=elastic,
                max_failed_actors=self.worker_group.actors - 1 if elastic else 0,
                max_actor_restarts=RESTARTS if within else 0,
                checkpoint_frequency=CHECKPOINT_ROUNDS,
                verbose=False,
            ),
        )


class Folds:
    """A training for each model of a trial, side by side; see `tuning.models.group_training.Training`."""

    def __init__(self, works: Sequence[TrainingJob], worker_group: ActorGroup, place: RayPlace) -> None:
        self.trainings: list[RayTraining] = []
        try:
            for work in works:
                self.trainings.append(RayTraining(work, worker_group, place, share=1 / len(works)))
        except BaseException:
            self.close()
            raise

    def __iter__(self) -> Folds:
        return self

    def __next__(self) -> tuple[bytes, ...]:
        return tuple([next(training)[1] for training in self.trainings])

    def close(self) -> None:
        for training in self.trainings:
            training.close()


def _rows(work: TrainingJob, directory: RunDirectory) -> RayDMatrix:
    """Return the training rows, which each actor reads from its own shard."""
    from xgboost_ray import RayDMatrix, RayFileType, RayShardingMode

    class Rows(RayDMatrix):
        def update_matrix_properties(self, matrix: DMatrix) -> None:
            matrix.feature_names = None  # as `xgboost` trains
            matrix.feature_types = self.feature_types  # XGBoost-Ray does not look at them

    return Rows(
        [directory.path(name) for name in work.shards],
        label=LABEL,
        weight=WEIGHT if work.weighted else None,
        feature_types=list(work.types),
        filetype=RayFileType.PARQUET,
        distributed=True,
        enable_categorical=True,
        sharding=RayShardingMode.BATCH,
    )


class _ClosedError(BaseException):
    """A training is over; no `Exception`, which XGBoost-Ray takes for a lost actor."""


def _cause(error: BaseException) -> str:
    """Return the innermost reason that says something, on one line."""
    while error.__cause__ is not None:
        error = error.__cause__
    return f"{type(error).__name__}: {''.join(lines_of(error)[-1:])}"


def _reporting(number: int, every: int, total: int) -> TrainingCallback:
    """Return the callback that runs in the actors: the first of them sends the model after each step."""
    from xgboost import collective
    from xgboost.callback import TrainingCallback
    from xgboost_ray.session import put_queue

    class Reporting(TrainingCallback):
        def before_training(self, model: Booster) -> Booster:
            if collective.get_rank() == 0:
                put_queue(partial(deliver, number, model.num_boosted_rounds()))
            return model

        def after_iteration(self, model: Booster, epoch: int, evals_log: object) -> bool:
            done = model.num_boosted_rounds()
            if (done % every == 0 or done == total) and collective.get_rank() == 0:
                put_queue(partial(deliver, number, done, bytes(model.save_raw("ubj"))))
            return False

    return Reporting()


def deliver(number: int, rounds: int, model: bytes = b"") -> None:
    """Take what the first actor has sent, called by XGBoost-Ray in the trial's process: where it begins, or a step."""
    if (training := _TRAININGS.get(number)) is None:
        return
    if model:
        training.take(rounds, model)
    else:
        training.begin(rounds)


def _install() -> None:
    """Replace XGBoost-Ray's functions in this process, once."""
    if reason := unsuitable():
        raise RunError(reason)
    import xgboost_ray.elastic as elastic
    import xgboost_ray.main as main

    for name, replacement in replacements().items():
        setattr(main, name, replacement)
    elastic._create_actor = _actor


def replacements() -> dict[str, Callable[..., object]]:
    """By the name of each function of `xgboost_ray.main` what stands in its place."""
    return {
        "_start_rabit_tracker": _start,
        "_stop_rabit_tracker": _stop,
        "_create_actor": _actor,
        "_create_communication_processes": _communication,
        "get_current_placement_group": _group,
    }


def _start(workers: int) -> tuple[Started, dict[str, str | int]]:
    """Start XGBoost's own tracker, waited for in a daemon thread: else it tells nobody where it listens."""
    from ray.util import get_node_ip_address
    from xgboost.tracker import RabitTracker

    tracker = RabitTracker(n_workers=workers, host_ip=get_node_ip_address(), sortby="task")
    tracker.start()
    thread = threading.Thread(target=_wait_for, args=(tracker,), daemon=True)
    thread.start()
    return (tracker, thread), {"n_workers": workers, **tracker.worker_args()}


def _wait_for(tracker: RabitTracker) -> None:
    with contextlib.suppress(Exception):  # its workers are gone, which XGBoost-Ray sees for itself
        tracker.wait_for()


def _stop(started: Started) -> None:
    tracker, thread = started
    thread.join(timeout=TRACKER_S)  # one that is through ends by itself, with dead workers it never does
    if not thread.is_alive():
        tracker.free()


def _group() -> PlacementGroup:
    return _HERE.training.place.group


def _placed(bundle: int) -> PlacementGroupSchedulingStrategy:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    return PlacementGroupSchedulingStrategy(_group(), bundle, placement_group_capture_child_tasks=False)


def _actor(rank: int, queue: Queue | None = None, **options: object) -> ActorHandle:
    """Start an actor in its own bundle, which the actors of other folds share: so it asks for no CPU of it."""
    import xgboost_ray.main as main

    training: RayTraining = _HERE.training
    training.check_open()
    actor = main._RemoteRayXGBoostActor.options(
        num_cpus=0,
        num_gpus=training.worker_group.gpus_per_actor * training.share,
        scheduling_strategy=_placed(rank + 1),
    ).remote(
        rank=rank,
        num_actors=options["num_actors"],
        queue=queue,
        checkpoint_frequency=options["checkpoint_frequency"],
        distributed_callbacks=options["distributed_callbacks"],
    )
    training.started(actor)
    return actor


def _communication(*_: bool) -> tuple[Queue, Event]:
    """Start queue and event, in the bundle of the trial's own process."""
    from ray.util.queue import Queue
    from xgboost_ray.util import Event

    training: RayTraining = _HERE.training
    training.check_open()
    options = {"num_cpus": 0, "scheduling_strategy": _placed(0)}
    pair = Queue(actor_options=options), Event(actor_options=options)
    training.actors += [each.actor for each in pair]
    return pair
