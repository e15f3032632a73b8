"""Tune's interfaces over many studies: one `SearchAlgorithm`, one `TrialScheduler`, one `Callback`.

Tune pickles all three when a Tuner is made (and never needs the copy: the records are the truth), so they hold a key
and look the studies up. `SearchAlgorithm` and not `Searcher`, because Tune wraps a searcher in a generator with one
sample count and one id scheme for all.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tuning.execution.callback_keys import Key, lookup
from tuning.execution.lost_nodes import error_text
from tuning.execution.spread.reports import REPORT
from tuning.execution.spread.spread_study import DEATHS
from tuning.execution.spread.studies import Studies
from tuning.execution.spread.trainable import trial_config

if TYPE_CHECKING:
    from ray import tune
    from ray.tune.experiment import Experiment, Trial
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search.search_algorithm import SearchAlgorithm


def search_over(studies: Key[Studies]) -> SearchAlgorithm:
    """A `SearchAlgorithm` that asks each study's own searcher."""
    from ray.tune.experiment.config_parser import _create_trial_from_spec, _make_parser
    from ray.tune.search.search_algorithm import SearchAlgorithm

    class StudiesSearch(SearchAlgorithm):
        metric = None  # else Tune demands it in every result

        def __init__(self) -> None:
            self._spec: dict[str, object] = {}
            self._stopped = False

        @property
        def total_samples(self) -> int:
            return lookup(studies).total

        def set_search_properties(self, metric: object, mode: object, config: object, **spec: object) -> bool:
            return True

        def add_configurations(self, experiments: Experiment | list[Experiment]) -> None:
            self._spec = dict(experiments[0].spec if isinstance(experiments, list) else experiments.spec)

        def next_trial(self) -> Trial | None:
            found = None if self._stopped else lookup(studies).next()
            if found is None:
                return None
            trial_id, study, trial = found
            config = trial_config(study, trial)
            return _create_trial_from_spec(
                {**self._spec, "config": config},
                _make_parser(),
                evaluated_params={},
                experiment_tag=trial_id,
                trial_id=trial_id,
            )

        def on_trial_result(self, trial_id: str, result: object) -> None:
            pass  # the scheduler's side takes results in, it hears of them first

        def on_trial_complete(self, trial_id: str, result: object = None, error: bool = False) -> None:
            lookup(studies).end(trial_id, f"its worker died: {DEATHS}" if error else None)

        def is_finished(self) -> bool:
            return self._stopped or lookup(studies).closed

        def set_finished(self) -> None:
            self._stopped = True  # the run is to end; trials under way go on from the journal later

        def has_checkpoint(self, dirpath: str) -> bool:
            return False

        def save_to_dir(self, dirpath: str, **kwargs: object) -> None:
            pass  # the journal is what is kept

        def restore_from_dir(self, dirpath: str) -> None:
            pass

    return StudiesSearch()


def scheduler_over(studies: Key[Studies]) -> TrialScheduler:
    """A `TrialScheduler` that asks each study's own scheduler; Tune starts pending trials by itself."""
    from ray.tune.schedulers import FIFOScheduler, TrialScheduler

    class StudiesScheduler(FIFOScheduler):
        _supports_buffered_results = False

        def set_search_properties(self, metric: object, mode: object, **spec: object) -> bool:
            return True

        def on_trial_result(self, tune_controller: object, trial: Trial, result: Mapping[str, Any]) -> str:
            if REPORT not in result:
                return str(TrialScheduler.CONTINUE)
            stop = lookup(studies).result(trial.trial_id, json.loads(result[REPORT]))
            return str(TrialScheduler.STOP if stop else TrialScheduler.CONTINUE)

        def on_trial_error(self, tune_controller: object, trial: Trial) -> None:
            lookup(studies).died(trial.trial_id, error_text(trial))

        def choose_trial_to_run(self, tune_controller: object) -> Trial | None:
            return None

    return StudiesScheduler()


def checkpoints_callback(studies: Key[Studies], stopped: Callable[[], bool]) -> tune.Callback:
    """A `Callback` that tells studies of checkpoints, of trials that start again, of each turn and of the end of Tune's
    loop. stopped: whether the run is to stop.
    """
    from ray import tune

    class Checkpoints(tune.Callback):
        def on_checkpoint(
            self, iteration: int, trials: object, trial: Trial, checkpoint: tune.Checkpoint, **info: object
        ) -> None:
            lookup(studies).saved(trial.trial_id, str(checkpoint.path))

        def on_trial_recover(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
            lookup(studies).lost(trial.trial_id)

        def on_step_end(self, iteration: int, trials: object, **info: object) -> None:
            lookup(studies).turn()

        def on_experiment_end(self, trials: object, **info: object) -> None:
            lookup(studies).finish(stopped)

    return Checkpoints()


def time_limits_callback(studies: Key[Studies]) -> tune.Callback:
    """A `Callback` that kills the workers of trials that hang; their studies go on without them."""
    import ray
    from ray import tune

    class TimeLimits(tune.Callback):
        def __init__(self) -> None:
            self._working: dict[str, tuple[Trial, float, float]] = {}  # since when, and when something was reported

        def on_trial_start(self, iteration: int, trials: object, trial: Trial, **info: object) -> None:
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
                if lookup(studies).overdue(trial_id, now - since, now - heard):
                    del self._working[trial_id]
                    trial.max_failures = 0  # else Tune starts it again
                    ray.kill(trial.temporary_state.ray_actor)

    return TimeLimits()
