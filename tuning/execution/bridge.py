"""Tune's interfaces over all of a run: its trainable, one `SearchAlgorithm`, one `TrialScheduler`, its callbacks.

Tune copies and pickles what a Tuner is given, and never needs the copy: the records are the truth. So these objects are
their own copies, and nothing of them is pickled. `SearchAlgorithm` and not `Searcher`, because Tune wraps a searcher in
a generator with one sample count and one id scheme for all.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Self

import ray
from ray import tune
from ray.tune.callback import CallbackList
from ray.tune.constants import RAY_TUNE_CALLBACKS_ENV_VAR
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search.search_algorithm import SearchAlgorithm

from tuning.basics.environment import environment_set
from tuning.errors import code_of
from tuning.execution.crash_log import ray_nodes
from tuning.execution.jobs import BatchJob, FitJob, TrialJob, job_in
from tuning.execution.packed import WornOutError, work_batch
from tuning.execution.reports import FailureReport, StepReport, TuneResult, error_text, report_in, report_to_tune
from tuning.execution.run_queue import RunQueue
from tuning.execution.spread.worker import forget_run, last_fit, run_trial
from tuning.execution.worker import WorkerRun, unblock_sigterm
from tuning.runs.progress import WorkerError

if TYPE_CHECKING:
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.experiment import Experiment

ALWAYS = -1  # a worker is replaced: what that costs a study, the next one decides


def run_trainable(run: WorkerRun, name: str) -> Callable[[dict[str, object]], None]:
    """Return the Tune trainable of a run: it works through a batch of packed studies, or trains a spread study's trial.

    Its name carries the run, because Ray keeps trainables by name within a job.
    """

    def trainable(config: dict[str, object]) -> None:
        unblock_sigterm()
        job = job_in(config)
        if isinstance(job, TrialJob):
            run_trial(run, job)
            return
        try:
            if isinstance(job, FitJob):
                last_fit(run, job, report_to_tune)
            elif isinstance(job, BatchJob):
                forget_run()
                work_batch(run, job.batch, report_to_tune, ray_nodes())
        except WornOutError:
            os._exit(0)  # Tune starts another process for what is left
        except Exception as error:  # raised, Tune would start the job again for ever
            report_to_tune(WorkerError(f"{type(error).__name__}: {error}", code_of(error)))

    trainable.__name__ = name
    return trainable


class Uncopied:
    """An object of this process that is its own copy; pickled, it is an empty object."""

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[type[object], tuple[()]]:
        return object, ()


class RunSearch(Uncopied, SearchAlgorithm):
    """Gives out a queue's batches, and the trials that the searchers of its spread studies suggest."""

    metric = None  # else Tune demands it in every result

    def __init__(self, queue: RunQueue) -> None:
        self._queue = queue
        self._made: Callable[..., Trial] = Trial
        self._stopped = False

    @property
    def total_samples(self) -> int:
        return self._queue.total

    def set_search_properties(self, metric: object, mode: object, config: object, **spec: object) -> bool:
        return True

    def add_configurations(self, experiments: Experiment | list[Experiment]) -> None:
        spec = (experiments[0] if isinstance(experiments, list) else experiments).spec
        self._made = partial(
            Trial,
            spec["run"],
            storage=spec["storage"],
            stopping_criterion=spec["stop"],
            checkpoint_config=spec["checkpoint_config"],
            placement_group_factory=spec.get("resources_per_trial"),
        )

    def next_trial(self) -> Trial | None:
        found = None if self._stopped else self._queue.next()
        if found is None:
            return None
        trial_id, job = found
        failures = ALWAYS if isinstance(job, BatchJob) else self._queue.restarts
        return self._made(config=job.to_config(), experiment_tag=trial_id, trial_id=trial_id, max_failures=failures)

    def on_trial_result(self, trial_id: str, result: object) -> None:
        pass  # the scheduler's side takes results in, it hears of them first

    def on_trial_complete(self, trial_id: str, result: object = None, error: bool = False) -> None:
        self._queue.end(trial_id, died=error)

    def is_finished(self) -> bool:
        return self._stopped or self._queue.closed

    def set_finished(self) -> None:
        self._stopped = True  # the run is to end; what is under way goes on from the records later

    def has_checkpoint(self, dirpath: str) -> bool:
        return False

    def save_to_dir(self, dirpath: str, **kwargs: object) -> None:
        pass  # the records are what is kept

    def restore_from_dir(self, dirpath: str) -> None:
        pass


class RunScheduler(Uncopied, FIFOScheduler):
    """Asks the schedulers of a queue's spread studies, and chooses which batch a worker takes.

    Trials that wait for a machine in vain are stopped here, where Tune's loop is at hand.

    Tune starts what waits by itself, and gives a worker that is through with its batch to the first one that waits.
    That is often the one for which it is just starting a process, after a crash: it then ends that process, seconds of
    work, and starts one for another batch. Here such a worker takes the batch that has waited for the shortest time.
    """

    _supports_buffered_results = False

    def __init__(self, queue: RunQueue) -> None:
        super().__init__()
        self._queue = queue
        self._waiting: list[str] = []

    def set_search_properties(self, metric: object, mode: object, **spec: object) -> bool:
        return True

    def on_trial_result(self, tune_controller: object, trial: Trial, result: TuneResult) -> str:
        report = report_in(result)
        studies = self._queue.studies_of(job_in(trial.config))
        stop = isinstance(report, StepReport | FailureReport) and studies and studies.result(trial.trial_id, report)
        return str(TrialScheduler.STOP if stop else TrialScheduler.CONTINUE)

    def on_trial_error(self, tune_controller: object, trial: Trial) -> None:
        if (studies := self._queue.studies_of(job_in(trial.config))) is not None:
            studies.trial(trial.trial_id).death = error_text(trial)

    def on_trial_remove(self, tune_controller: TuneController, trial: Trial) -> None:
        # Else Tune would keep a worker for this trial, and its machine, from whatever trial ends next.
        if trial in tune_controller._staged_trials:
            tune_controller._unstage_trial_with_resources(trial)

    def choose_trial_to_run(self, tune_controller: TuneController) -> Trial | None:
        waiting = {each.trial_id: each for each in tune_controller.get_trials() if each.status == Trial.PENDING}
        # Tune cannot stop what it has not taken up yet: it raises, as such a trial has no folder.
        taken_up = {name for name, each in waiting.items() if each in tune_controller._staged_trials}
        for name in self._queue.timed_out(taken_up):
            tune_controller.stop_trial(waiting.pop(name))
        if self._queue.idle_end(waiting.keys()):
            tune_controller._cleanup_cached_actors(force_all=True)
        if fit := next((each for each in waiting.values() if isinstance(job_in(each.config), FitJob)), None):
            return fit
        pending = {name: each for name, each in waiting.items() if isinstance(job_in(each.config), BatchJob)}
        known = dict.fromkeys(name for name in self._waiting if name in pending)
        self._waiting = [*known, *(name for name in pending if name not in known)]
        return pending[self._waiting[-1]] if self._waiting else None


class SpreadTrials(Uncopied, tune.Callback):
    """Tells a queue's spread studies of checkpoints and restarts.

    Kills the workers of trials that hang; their studies go on without them.
    """

    def __init__(self, queue: RunQueue) -> None:
        self._queue = queue
        self._working: dict[str, tuple[Trial, float, float]] = {}  # since when, and when something was reported

    def on_trial_start(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
        if isinstance(job_in(trial.config), TrialJob):
            now = time.monotonic()
            self._working[trial.trial_id] = trial, now, now

    def on_trial_result(self, iteration: int, trials: object, trial: Trial, result: object, **info: object) -> None:
        if trial.trial_id in self._working:
            self._working[trial.trial_id] = *self._working[trial.trial_id][:2], time.monotonic()

    def on_checkpoint(
        self, iteration: int, trials: object, trial: Trial, checkpoint: tune.Checkpoint, **info: object
    ) -> None:
        if (studies := self._queue.studies_of(job_in(trial.config))) is not None:
            studies.saved(trial.trial_id, str(checkpoint.path))

    def on_trial_recover(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
        self._working.pop(trial.trial_id, None)
        if (studies := self._queue.studies_of(job_in(trial.config))) is not None:
            studies.trial(trial.trial_id).attempt += 1

    def on_trial_error(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
        self._working.pop(trial.trial_id, None)

    on_trial_complete = on_trial_error

    def on_step_end(self, iteration: int, trials: object, **info: object) -> None:
        now = time.monotonic()
        for trial_id, (trial, since, heard) in list(self._working.items()):
            studies = self._queue.studies_of(job_in(trial.config))
            if studies is not None and studies.overdue(trial_id, now - since, now - heard):
                del self._working[trial_id]
                trial.max_failures = 0  # else Tune starts it again
                ray.kill(trial.temporary_state.ray_actor)


_current: list[tune.Callback] = []


class HandedOver(CallbackList):
    """Those of `handed_over`, as one; Tune makes it."""

    def __init__(self) -> None:
        super().__init__(list(_current))


@contextlib.contextmanager
def handed_over(callbacks: Sequence[tune.Callback]) -> Iterator[None]:
    """Give these callbacks to the Tuner that is fitted within, in addition to those of the user.

    A callback in a `RunConfig` is counted by `Tuner.fit` for Ray's usage statistics, and to tell where it comes from,
    that imports MLflow and other libraries: most of a second. What the variable `RAY_TUNE_CALLBACKS` names is used
    alike, and not counted.
    """
    before = os.environ.get(RAY_TUNE_CALLBACKS_ENV_VAR)
    own = f"{HandedOver.__module__}.{HandedOver.__qualname__}"
    _current[:] = callbacks
    try:
        with environment_set({RAY_TUNE_CALLBACKS_ENV_VAR: f"{before},{own}" if before else own}):
            yield
    finally:
        _current.clear()
