"""Every private or undocumented name of a dependency that we use is still there: an upgrade fails here first.

The private names are collected from the code, so that none is used without a line here.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from paths import ROOT
from sources import PACKAGES, parsed, source_files

MOST = 41  # names in all: each is work when its library is upgraded
TRAIN = "ray.train.v2._internal.execution"
# Why a name is used. Shares are of the core-seconds of whole trials, of 3 folds with all their steps.
HGB = "without it a trial takes 1.4 (200 rows) to 2.5 times (20,000) as long: rows are binned and predicted anew"
XGB_RAY = "written for XGBoost before 2.1, and leaves actors behind when training fails; no option for either"
PLACES = "no public way to put workers into a trial's placement group"
BRACKETS = "no public way to see how a bracket stands, which reasons, families in turns and training ahead need"
POINTS = "no public way to tell a searcher of a point with its value, which resuming needs"
STAGED = "no public way to stop a trial that waits for a machine; Tune would keep the machine for it"
CLUSTER = "`ray.init` waits for half a minute where a token is refused, and does not say that it is"

# (module, name in it, who uses it, why there is no other way or what a trial takes without it)
EDGES = [
    ("sklearn.ensemble", "HistGradientBoostingRegressor._bin_data", "models/families/hist_gradient_boosting.py", HGB),
    (
        *("sklearn.ensemble", "HistGradientBoostingRegressor._predict_iterations"),
        *("models/families/hist_gradient_boosting.py", HGB),
    ),
    (
        *("xgboost", "Booster._assign_dmatrix_features", "models/families/xgboost.py has it called once per fit"),
        "without it a trial takes 1.09 to 1.2 times as long (200 rows of 8 columns to 1,000 of 40)",
    ),
    (
        "xgboost_ray.main",
        "_RemoteRayXGBoostActor",
        "worker_groups/xgboost_ray.py, which replaces these four:",
        XGB_RAY,
    ),
    ("ray._raylet", "GcsClient", "definition/cpus.py", CLUSTER),
    ("xgboost_ray.main", "_start_rabit_tracker", "worker_groups/xgboost_ray.py", XGB_RAY),
    ("xgboost_ray.main", "_stop_rabit_tracker", "worker_groups/xgboost_ray.py", XGB_RAY),
    ("xgboost_ray.main", "_create_communication_processes", "worker_groups/xgboost_ray.py", XGB_RAY),
    ("xgboost_ray.elastic", "_create_actor", "worker_groups/xgboost_ray.py, here and in xgboost_ray.main", XGB_RAY),
    (
        *("lightgbm.basic", "_ConfigAliases._get_all_param_aliases", "models/families/lightgbm.py"),
        "no public list of its parameters, and an unknown one it ignores",
    ),
    (
        *("sklearn.neural_network", "MLPClassifier._validate_input", "models/families/mlp.py"),
        "without it a trial takes 1.05 to 2.8 times as long: rows are checked and encoded anew in each epoch",
    ),
    (
        *("hyperopt.base", "Domain", "algorithms/hyperopt.py"),
        "`hyperopt.tpe.suggest` takes one, and `hyperopt.fmin` is a loop of its own",
    ),
    ("ray.tune.schedulers.hyperband", "HyperBandScheduler._process_bracket", "schedulers/hyperband.py", BRACKETS),
    ("ray.tune.schedulers.hyperband", "_Bracket", "schedulers/hyperband.py", BRACKETS),
    (
        *("ray.tune.schedulers.pb2", "PB2._get_new_config", "schedulers/pb2.py"),
        "`custom_explore_fn` is not told whose configuration is varied, and PB2 trains copies at first",
    ),
    (
        *("ray.tune.search.bayesopt", "BayesOptSearch._register_result", "algorithms/wrapped.py"),
        "the library raises where a point is told twice",
    ),
    (
        *("ray.tune.execution.tune_controller", "TuneController._unstage_trial_with_resources"),
        *("execution/bridge.py", STAGED),
    ),
    (
        *("ray.tune.execution.tune_controller", "TuneController._cleanup_cached_actors", "execution/bridge.py"),
        "no public way to end a worker that is kept for reuse while trials wait for its CPUs",
    ),
    (
        *("ray.tune.execution.tune_controller", "_ActorClassCache", "driver/hosts/ready_workers.py stands in for it"),
        "else Ray starts another process per slot: estimated, 2 × 4.5 of the 28 core-seconds of a run of 24 customers",
    ),
    (
        *("ray._private.worker", "_global_node", "driver/cluster.py"),
        "`ray.shutdown` waits a second for each process, as SIGTERM is blocked in them; no option for it",
    ),
    (
        *("ray.train.v2.api.data_parallel_trainer", "DataParallelTrainer._initialize_and_run_controller"),
        *("worker_groups/ray_train.py", "`fit` waits for the end; a trial is asked for one report after the other"),
    ),
    (f"{TRAIN}.controller", "TrainController._poll_workers", "worker_groups/ray_train.py", "callbacks cannot wait"),
    (f"{TRAIN}.worker_group", "WorkerGroup._create_placement_group", "worker_groups/ray_train.py", PLACES),
    (f"{TRAIN}.worker_group", "WorkerGroup._create_workers", "worker_groups/ray_train.py", PLACES),
    (
        *(f"{TRAIN}.scaling_policy.fixed", "FixedScalingPolicy._maybe_send_resource_request"),
        *("worker_groups/ray_train.py", "an autoscaler would be asked twice for what Tune has asked for"),
    ),
]

# Attributes that objects only have once they are made, fitted or called: `self.NAME` stands in the module's source.
# (module, names, who uses them, why)
HELD = [
    (
        *("sklearn.ensemble._hist_gradient_boosting.gradient_boosting", ("_bin_mapper",)),
        *("models/families/hist_gradient_boosting.py", HGB),
    ),
    (
        *("sklearn.neural_network._multilayer_perceptron", ("_optimizer",), "models/families/mlp.py"),
        "no public way to change the learning rate of a network that goes on, as PBT does",
    ),
    (
        *("ray.tune.experiment.trial", ("temporary_state",), "driver/hosts/tune_workers.py, execution/bridge.py"),
        "no public way to the actor of a trial that hangs",
    ),
    ("ray.tune.execution.tune_controller", ("_staged_trials",), "execution/bridge.py", STAGED),
    (
        *(f"{TRAIN}.controller.controller", ("_checkpoint_manager",), "worker_groups/ray_train.py"),
        "no public way to the checkpoint that workers go on from",
    ),
    ("ray.tune.search.ax.ax_search", ("_points_to_evaluate",), "algorithms/wrapped.py", POINTS),
    (
        *("flaml.tune.searcher.blendsearch", ("_evaluated_rewards", "_search_thread_pool")),
        *("algorithms/wrapped.py", POINTS),
    ),
    ("ray.tune.search.nevergrad.nevergrad_search", ("_nevergrad_opt",), "algorithms/wrapped.py", POINTS),
    ("ray.tune.search.hebo.hebo_search", ("_initial_points",), "algorithms/wrapped.py", POINTS),
    (
        *("ray.tune.search.hebo.hebo_search", ("_max_concurrent",), "algorithms/wrapped.py"),
        "one number for how many are suggested at once and how many may run",
    ),
    (
        *("ray.tune.schedulers.hyperband", ("_state", "_trial_info", "_n", "_cumul_r")),
        *("schedulers/hyperband.py", BRACKETS),
    ),
    (
        *("ray.tune.schedulers.pbt", ("_trial_state",), "schedulers/pbt.py"),
        "no public way to see when a trial's last round was",
    ),
]

# Names that begin with an underscore and are documented.
DOCUMENTED = {"_exit", "_value_"}  # of os, of enum


def test_there_are_few_of_them() -> None:
    assert len(EDGES) + sum(len(names) for _, names, _, _ in HELD) <= MOST


@pytest.mark.parametrize(("module", "attribute"), [row[:2] for row in EDGES], ids=str)
def test_a_private_name_is_still_there(module: str, attribute: str) -> None:
    value = import_module(module)
    for name in attribute.split("."):
        value = getattr(value, name)


def test_rays_schedulers_still_hold_the_attributes_that_ours_read() -> None:
    from ray.tune.schedulers import HyperBandScheduler, PopulationBasedTraining
    from ray.tune.schedulers.hyperband import _Bracket
    from ray.tune.schedulers.pbt import _PBTTrialState

    goal = {"metric": "score", "mode": "max"}
    held = {
        HyperBandScheduler(**goal): ("_state", "_trial_info"),
        _Bracket("step", 3, 1, 9, 3, 2): ("_n", "_cumul_r", "is_being_processed", "trials_to_unpause"),
        PopulationBasedTraining(**goal, custom_explore_fn=dict): ("_trial_state",),
    }
    for owner, names in held.items():
        assert [name for name in names if not hasattr(owner, name)] == []

    class Trial:
        experiment_tag = ""

    assert {"last_perturbation_time", "last_result"} <= set(vars(_PBTTrialState(Trial())))


def test_ray_still_knows_the_settings_that_we_make_for_our_own_cluster() -> None:
    """An unknown one it would ignore."""
    import ray

    from tuning.driver.cluster import OWN_RAY

    binary = (Path(ray.__file__).parent / "core" / "src" / "ray" / "gcs" / "gcs_server").read_bytes()
    assert all(name.encode() in binary for name in OWN_RAY)


@pytest.mark.parametrize(("module", "names"), [row[:2] for row in HELD], ids=str)
def test_an_attribute_is_still_held(module: str, names: tuple[str, ...]) -> None:
    source = inspect.getsource(import_module(module))
    assert [name for name in names if f"self.{name}" not in source] == []


def _private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _named(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _ours(tree: ast.Module) -> Iterator[str]:
    """The private names that a file's classes give to their own attributes and methods."""
    for owner in (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if isinstance(node, ast.FunctionDef):
                yield node.name
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                targets = [node.target] if isinstance(node, ast.AnnAssign) else node.targets
                yield from (target.id for target in targets if isinstance(target, ast.Name))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _named(node.value) == "self":
            yield node.attr


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules of ours that a file names in its imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES:
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in PACKAGES)


def _used(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """The private names that a file uses, and whether they can only be those of another library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            if not any(module.partition(".")[0] in PACKAGES for module in modules):
                words = [*modules, *(alias.name for alias in node.names)]
                yield from ((part, True) for word in words for part in word.split(".") if _private(part))
        elif isinstance(node, ast.Attribute) and _private(node.attr):
            yield node.attr, False
        elif isinstance(node, ast.Call) and _named(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and _private(name.value):
                yield name.value, False


def test_every_private_name_that_the_code_uses_is_listed() -> None:
    """A name is our own where the file, or one that it imports, gives it to a class; else it is another library's."""
    trees = {path: parsed(path) for path in source_files()}
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in trees}
    names = {path: set(_ours(tree)) for path, tree in trees.items()}
    known = {path: {paths[module] for module in _imported(tree) if module in paths} for path, tree in trees.items()}
    listed = {part for module, attribute, *_ in EDGES for part in f"{module}.{attribute}".split(".")} | DOCUMENTED
    listed |= {part for module, names, *_ in HELD for part in (*module.split("."), *names)}
    missing = {
        f"{name} in {path.relative_to(ROOT)}"
        for path, tree in trees.items()
        for ours in [set().union(*(names[reached] for reached in _reached(path, known)))]
        for name, foreign in _used(tree)
        if name not in listed and (foreign or name not in ours)
    }
    assert missing == set(), "add each to EDGES or HELD"


def _reached(path: Path, known: dict[Path, set[Path]]) -> set[Path]:
    """A file and all that it imports, and so on."""
    found, left = set(), [path]
    while left:
        now = left.pop()
        if now not in found:
            found.add(now)
            left += known[now]
    return found
