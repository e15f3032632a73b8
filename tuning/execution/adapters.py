"""Tune's interfaces over all of a run: one `SearchAlgorithm`, one `TrialScheduler`, and callbacks.

Tune pickles all of them when a Tuner is made (and never needs the copy: the records are the truth), so they hold a key
and look the run's queue up. `SearchAlgorithm` and not `Searcher`, because Tune wraps a searcher in a generator with one
sample count and one id scheme for all.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from tuning.execution.callback_keys import CallbackKey, lookup
from tuning.execution.jobs import ShardJob, job_in
from tuning.execution.lost_nodes import error_text
from tuning.execution.reports import FailureReport, StepReport
from tuning.execution.run_queue import RunQueue
from tuning.execution.spread.open_studies import OpenStudies
from tuning.execution.tune_reports import TuneResult, report_in

if TYPE_CHECKING:
    from ray import tune
    from ray.tune.execution.tune_controller import TuneController
    from ray.tune.experiment import Experiment, Trial
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search.search_algorithm import SearchAlgorithm

ALWAYS = -1  # a worker is replaced: what that costs a study, the next one decides


def search_over(queue: CallbackKey[RunQueue]) -> SearchAlgorithm:
    """A `SearchAlgorithm` that gives out shards, and asks each spread study's own searcher."""
    from ray.tune.experiment import Trial
    from ray.tune.search.search_algorithm import SearchAlgorithm

    class RunSearch(SearchAlgorithm):
        metric = None  # else Tune demands it in every result

        def __init__(self) -> None:
            self._made: Callable[..., Trial] = Trial
            self._stopped = False

        @property
        def total_samples(self) -> int:
            return lookup(queue).total

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
            found = None if self._stopped else lookup(queue).next()
            if found is None:
                return None
            trial_id, job = found
            failures = ALWAYS if isinstance(job, ShardJob) else lookup(queue).restarts
            return self._made(config=job.to_config(), experiment_tag=trial_id, trial_id=trial_id, max_failures=failures)

        def on_trial_result(self, trial_id: str, result: object) -> None:
            pass  # the scheduler's side takes results in, it hears of them first

        def on_trial_complete(self, trial_id: str, result: object = None, error: bool = False) -> None:
            lookup(queue).end(trial_id, died=error)

        def is_finished(self) -> bool:
            return self._stopped or lookup(queue).closed

        def set_finished(self) -> None:
            self._stopped = True  # the run is to end; what is under way goes on from the records later

        def has_checkpoint(self, dirpath: str) -> bool:
            return False

        def save_to_dir(self, dirpath: str, **kwargs: object) -> None:
            pass  # the records are what is kept

        def restore_from_dir(self, dirpath: str) -> None:
            pass

    return RunSearch()


def scheduler_over(queue: CallbackKey[RunQueue]) -> TrialScheduler:
    """A `TrialScheduler` that asks each spread study's own scheduler.

    Trials that wait for a machine in vain are stopped here, where Tune's loop is at hand.

    Tune starts what waits by itself, and gives a worker that is through with its shard to the first one that waits.
    That is often the one for which it is just starting a process, after a crash: it then ends that process, seconds of
    work, and starts one for another shard. Here such a worker takes the shard that has waited for the shortest time.
    """
    from ray.tune.experiment import Trial
    from ray.tune.schedulers import FIFOScheduler, TrialScheduler

    class RunScheduler(FIFOScheduler):
        _supports_buffered_results = False

        def __init__(self) -> None:
            super().__init__()
            self._waiting: list[str] = []

        def set_search_properties(self, metric: object, mode: object, **spec: object) -> bool:
            return True

        def on_trial_result(self, tune_controller: object, trial: Trial, result: TuneResult) -> str:
            report = report_in(result)
            stop = isinstance(report, StepReport | FailureReport) and lookup(queue).report(trial.trial_id, report)
            return str(TrialScheduler.STOP if stop else TrialScheduler.CONTINUE)

        def on_trial_error(self, tune_controller: object, trial: Trial) -> None:
            if (studies := _studies_of(queue, trial)) is not None:
                studies.died(trial.trial_id, error_text(trial))

        def on_trial_remove(self, tune_controller: TuneController, trial: Trial) -> None:
            # Else Tune would keep a worker for this trial, and its machine, from whatever trial ends next.
            if trial in tune_controller._staged_trials:
                tune_controller._unstage_trial_with_resources(trial)

        def choose_trial_to_run(self, tune_controller: TuneController) -> Trial | None:
            waiting = {each.trial_id: each for each in tune_controller.get_trials() if each.status == Trial.PENDING}
            # Tune cannot stop what it has not taken up yet: it raises, as such a trial has no folder.
            taken_up = {name for name, each in waiting.items() if each in tune_controller._staged_trials}
            for name in lookup(queue).given_up(taken_up):
                tune_controller.stop_trial(waiting.pop(name))
            if lookup(queue).idle_end(waiting.keys()):
                tune_controller._cleanup_cached_actors(force_all=True)
            pending = {name: each for name, each in waiting.items() if _of_shard(each)}
            known = dict.fromkeys(name for name in self._waiting if name in pending)
            self._waiting = [*known, *(name for name in pending if name not in known)]
            return pending[self._waiting[-1]] if self._waiting else None

    return RunScheduler()


def spread_callbacks(queue: CallbackKey[RunQueue], stopped: Callable[[], bool] = lambda: False) -> list[tune.Callback]:
    """The callbacks for spread studies, where a run has any. stopped: whether the run is to stop."""
    if lookup(queue).studies is None:
        return []
    return [checkpoints_callback(queue, stopped), time_limits_callback(queue)]


def _of_shard(trial: Trial) -> bool:
    return isinstance(job_in(trial.config), ShardJob)


def _studies_of(queue: CallbackKey[RunQueue], trial: Trial) -> OpenStudies | None:
    """The studies one of which a Tune trial belongs to; None of a shard."""
    return None if _of_shard(trial) else lookup(queue).studies


def checkpoints_callback(queue: CallbackKey[RunQueue], stopped: Callable[[], bool]) -> tune.Callback:
    """A `Callback` that tells spread studies of checkpoints, of trials that start again, of each turn and of the end of
    Tune's loop. stopped: whether the run is to stop.
    """
    from ray import tune

    class Checkpoints(tune.Callback):
        def on_checkpoint(
            self, iteration: int, trials: object, trial: Trial, checkpoint: tune.Checkpoint, **info: object
        ) -> None:
            if (studies := _studies_of(queue, trial)) is not None:
                studies.saved(trial.trial_id, str(checkpoint.path))

        def on_trial_recover(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            if (studies := _studies_of(queue, trial)) is not None:
                studies.lost(trial.trial_id)

        def on_step_end(self, iteration: int, trials: object, **info: object) -> None:
            lookup(queue).turn()

        def on_experiment_end(self, trials: object, **info: object) -> None:
            if (studies := lookup(queue).studies) is not None:
                studies.finish(stopped)

    return Checkpoints()


def time_limits_callback(queue: CallbackKey[RunQueue]) -> tune.Callback:
    """A `Callback` that kills the workers of spread trials that hang; their studies go on without them."""
    import ray
    from ray import tune

    class SpreadTimeLimits(tune.Callback):
        def __init__(self) -> None:
            self._working: dict[str, tuple[Trial, float, float]] = {}  # since when, and when something was reported

        def on_trial_start(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            if not _of_shard(trial):  # it looks after itself
                now = time.monotonic()
                self._working[trial.trial_id] = trial, now, now

        def on_trial_result(self, iteration: int, trials: object, trial: Trial, result: object, **info: object) -> None:
            if trial.trial_id in self._working:
                self._working[trial.trial_id] = *self._working[trial.trial_id][:2], time.monotonic()

        def on_trial_recover(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            self._working.pop(trial.trial_id, None)

        on_trial_error = on_trial_complete = on_trial_recover

        def on_step_end(self, iteration: int, trials: object, **info: object) -> None:
            now = time.monotonic()
            for trial_id, (trial, since, heard) in list(self._working.items()):
                studies = _studies_of(queue, trial)
                if studies is not None and studies.overdue(trial_id, now - since, now - heard):
                    del self._working[trial_id]
                    trial.max_failures = 0  # else Tune starts it again
                    ray.kill(trial.temporary_state.ray_actor)

    return SpreadTimeLimits()
