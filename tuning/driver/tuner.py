"""The `tune.Tuner` of a run."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from tuning.definition.options import Resources
from tuning.definition.run_spec import RunSpec
from tuning.driver.cluster import unset
from tuning.evaluation.objective import PortableFunction
from tuning.execution.shard_queue import shard_queue, shards_in_turn
from tuning.runs.begin import OwnedRun
from tuning.storage.names import slug
from tuning.study.study import FOLLOWER, PILOT

TUNE_SETTINGS = {
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",  # CSV, JSON and TensorBoard files per shard tell nobody anything
    "TUNE_GLOBAL_CHECKPOINT_S": "300",  # the records are the truth; Ray's own snapshot is a convenience
    "TUNE_DISABLE_STRICT_METRIC_CHECKING": "1",
    "TUNE_DISABLE_SIGINT_HANDLER": "1",  # tuning/driver/signals.py has it
    "TUNE_WARN_THRESHOLD_S": "30",
    "TUNE_PRINT_ALL_TRIAL_ERRORS": "0",  # a worker that died is started again; what it means is in the records
    "RAY_CHDIR_TO_TRIAL_DIR": "0",
}


def build_tuner(owned: OwnedRun, attempt: int, stop: Any = None, without: Collection[Resources] = ()) -> Any:
    """The Tuner over all shards of a run; workers skip what is recorded already.

    without: what no machine has; the shards that need it are left out.
    """
    from ray import tune

    from tuning.execution.packed import packed_trainable

    slots, needs = owned.plan.slots, owned.plan.resources
    shards = [shard for shard, need in enumerate(needs) if need not in without]
    first, held = (len({*shards} & {*owned.plan.shards_of(group)}) for group in (PILOT, FOLLOWER))
    tune_settings(slots)
    name = f"packed_{slug(owned.run).replace('-', '_')}"
    term = replace(owned.term, accepts=())  # the long list of accepted parts stays here
    timing = owned.timing.of_run(slots, len(owned.plan.studies))
    trainable = packed_trainable(owned.directory.uri, term, name, in_memory(owned.plan.spec), timing)
    return tune.Tuner(
        tune.with_resources(trainable, shard_resources(needs)),
        param_space={"shard": tune.grid_search(shards)},
        tune_config=tune.TuneConfig(
            reuse_actors=True, scheduler=shard_queue(slots), search_alg=shards_in_turn(slots, first, held)
        ),
        run_config=tune.RunConfig(
            name=f"{owned.term.folder}-{attempt}",
            storage_path=owned.directory.locate("tune"),
            stop=stop,
            failure_config=tune.FailureConfig(max_failures=-1),
            verbose=0,
        ),
    )


def tune_settings(slots: int) -> None:
    """Set what of Tune is set by environment variables, where the user has not done so."""
    os.environ.update(unset(TUNE_SETTINGS))
    # Tune warns per shard that it finds no result files, which is as wanted; failures come back as exceptions.
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    # Its list of trials that ended their workers says less than the leaderboard's reasons.
    logging.getLogger("ray.tune.tune").setLevel(logging.CRITICAL)
    os.environ.setdefault("TUNE_MAX_PENDING_TRIALS_PG", str(max(2, slots)))


def shard_resources(needs: Sequence[Resources]) -> Any:
    """What `tune.with_resources` takes: one answer for all shards, or a function of the shard."""
    from ray import tune

    if all(need == needs[0] for need in needs):
        return needs[0].to_ray() if needs else {"cpu": 1}
    bundles = [need.to_bundle() for need in needs]
    return lambda config: tune.PlacementGroupFactory([bundles[config["shard"]]])


def in_memory(spec: RunSpec) -> RunSpec | None:
    """The spec with what cannot be written down, a function; None when workers read all of it from the run."""
    objective = spec.definition.objective
    if not callable(objective):
        return None
    portable = spec.definition.model_copy(update={"data": None, "objective": PortableFunction(objective)})
    return replace(spec, definition=portable)
