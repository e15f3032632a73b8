"""The `tune.Tuner` of a run, and the Ray that it runs on."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuning.definition.options import Resources
from tuning.definition.run_spec import RunSpec
from tuning.driver.signals import kept
from tuning.errors import RunError
from tuning.evaluation.objective import PortableFunction
from tuning.execution.shard_queue import shard_queue, shards_in_turn
from tuning.planning.plan import Plan
from tuning.runs.begin import OwnedRun
from tuning.storage.names import slug
from tuning.study.study import FOLLOWER, PILOT
from tuning.wording import one_line

# One thread per slot: fits of a few milliseconds lose by more, and slots would fight for the cores. Libraries read
# these when they are loaded, so they must be in the environment before a worker starts.
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
PRELOADED = "RAY_preload_python_modules"  # by each worker, as soon as Ray starts it
OWN_RAY = {
    # A place for a worker that died is looked for again after so many milliseconds at most; Ray's default is a second.
    "RAY_gcs_create_placement_group_retry_max_interval_ms": "200",
    # Before Ray puts the driver's current folder first in a worker's import path: a folder there that is called numpy
    # or tuning is not taken for the package. And while this process makes the Tuner.
    PRELOADED: "tuning.execution.packed,ray.tune",
    # The raylet asks for its own object store before that is there, and asks again after so many milliseconds; Ray's
    # default is a second, in which nothing else starts.
    "RAY_raylet_client_connect_timeout_milliseconds": "20",
    "RAY_raylet_client_num_connect_attempts": "500",
}
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
        tune.with_resources(trainable, shard_resources([each.to_ray() for each in needs])),
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
    os.environ.update(_unset(TUNE_SETTINGS))
    # Tune warns per shard that it finds no result files, which is as wanted; failures come back as exceptions.
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    # Its list of trials that ended their workers says less than the leaderboard's reasons.
    logging.getLogger("ray.tune.tune").setLevel(logging.CRITICAL)
    os.environ.setdefault("TUNE_MAX_PENDING_TRIALS_PG", str(max(2, slots)))


def shard_resources(needs: Sequence[Mapping[str, float]]) -> Any:
    """What `tune.with_resources` takes: one answer for all shards, or a function of the shard."""
    from ray import tune

    if all(need == needs[0] for need in needs):
        return dict(needs[0]) if needs else {"cpu": 1}
    # Bundles of a placement group spell out what the keys of the dictionary form abbreviate.
    long = {"cpu": "CPU", "gpu": "GPU", "memory": "memory"}
    bundles = [{long[name]: amount for name, amount in need.items()} for need in needs]
    return lambda config: tune.PlacementGroupFactory([bundles[config["shard"]]])


def in_memory(spec: RunSpec) -> RunSpec | None:
    """The spec with what cannot be written down, a function; None when workers read all of it from the run."""
    objective = spec.definition.objective
    if not callable(objective):
        return None
    portable = spec.definition.model_copy(update={"data": None, "objective": PortableFunction(objective)})
    return replace(spec, definition=portable)


def start_ray(plan: Plan) -> bool:
    """Use the Ray that is there (already connected, or RAY_ADDRESS), else start one on this machine: True then.

    It has a core for each of the plan's slots.
    """
    import ray

    if ray.is_initialized():
        return False
    with kept(), _quieted("ray"):
        try:
            if os.environ.get("RAY_ADDRESS"):
                ray.init(log_to_driver=False, runtime_env={"env_vars": ONE_THREAD})
                return False
            settings = dict(OWN_RAY)
            if plan.spec.definition.objective is None:
                settings[PRELOADED] += ",sklearn.model_selection"  # what all models need, and takes longest
            with _environment({**_unset(ONE_THREAD), **_unset(settings), **_import_path()}), _tune_loaded_beside():
                ray.init(
                    address="local",  # else a cluster that somebody else runs on this machine would be joined
                    num_cpus=plan.slots,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    configure_logging=False,
                )
            return True
        except BaseException as error:
            with contextlib.suppress(Exception):
                ray.shutdown()  # of what has been started
            if not isinstance(error, Exception):
                raise
            where = "cannot be reached at RAY_ADDRESS" if os.environ.get("RAY_ADDRESS") else "did not start here"
            raise RunError(
                f"Ray {where}: {one_line(error)}. A machine that is busy or short of memory needs fewer `slots`; what "
                "Ray itself wrote is in /tmp/ray/session_latest/logs."
            ) from error


def start_workers(slots: int) -> None:
    """Let Ray start processes that the next run finds there, with everything loaded; waits for nothing.

    Those of a run end with it.
    """
    import ray

    with contextlib.suppress(Exception):  # Ray has ended; the next run says so
        task = ray.remote(num_cpus=1, max_retries=0)(_nothing)
        for _ in range(slots):
            task.remote()


def _nothing() -> None:
    """What is loaded for it counts."""


def restart_ray(plan: Plan) -> None:
    """Leave a Ray of our own whose machine is gone, and start another one."""
    import ray

    with contextlib.suppress(Exception):
        ray.shutdown()
    start_ray(plan)


@contextlib.contextmanager
def _tune_loaded_beside() -> Iterator[None]:
    """Load Tune meanwhile; `ray.init` mostly waits for other processes, and must be in the main thread for signals."""
    loading = threading.Thread(target=_load_tune, name="load-tune", daemon=True)
    loading.start()
    try:
        yield
    finally:
        loading.join()


def _load_tune() -> None:
    with contextlib.suppress(Exception):  # whoever needs it says why
        import ray.tune  # noqa: F401  # for the time that it takes


@contextlib.contextmanager
def _quieted(name: str) -> Iterator[None]:
    """Only errors of a logger meanwhile; Ray's words on its tokens would stand in the middle of the progress line."""
    loud = logging.getLogger(name)
    before = loud.level
    loud.setLevel(logging.ERROR)
    try:
        yield
    finally:
        loud.setLevel(before)


def _import_path() -> dict[str, str]:
    """The setting by which workers import this very package, also where it runs from its sources."""
    import tuning

    home = str(Path(tuning.__file__).resolve().parents[1])
    if Path(home).name in ("site-packages", "dist-packages"):
        return {}
    before = [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
    return {"PYTHONPATH": os.pathsep.join(dict.fromkeys([home, *before]))}


def _unset(values: Mapping[str, str]) -> dict[str, str]:
    """Those environment variables that the user has not set."""
    return {name: value for name, value in values.items() if name not in os.environ}


@contextlib.contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Environment variables for the time of a call."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
