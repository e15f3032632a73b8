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

EDGES = [
    ("sklearn.ensemble", "HistGradientBoostingRegressor._preprocess_X", "models/families/hist_gradient_boosting.py"),
    ("sklearn.ensemble", "HistGradientBoostingRegressor._bin_data", "models/families/hist_gradient_boosting.py"),
    ("sklearn.ensemble", "HistGradientBoostingRegressor._raw_predict", "models/families/hist_gradient_boosting.py"),
    (
        "sklearn.ensemble",
        "HistGradientBoostingRegressor._predict_iterations",
        "models/families/hist_gradient_boosting.py",
    ),
    ("sklearn.ensemble", "HistGradientBoostingRegressor._is_fitted", "models/families/hist_gradient_boosting.py"),
    ("sklearn.ensemble._hist_gradient_boosting.binning", "_BinMapper", "models/families/hist_gradient_boosting.py"),
    ("sklearn.ensemble._forest", "BaseForest", "models/growing_trees.py, for its types"),
    ("xgboost", "Booster._assign_dmatrix_features", "models/families/xgboost.py has it called once per fit"),
    ("xgboost_ray.main", "_RemoteRayXGBoostActor", "models/xgboost_ray_adapter.py, which replaces these four:"),
    ("xgboost_ray.main", "_start_rabit_tracker", "models/xgboost_ray_adapter.py"),
    ("xgboost_ray.main", "_stop_rabit_tracker", "models/xgboost_ray_adapter.py"),
    ("xgboost_ray.main", "_create_communication_processes", "models/xgboost_ray_adapter.py"),
    ("xgboost_ray.elastic", "_create_actor", "models/xgboost_ray_adapter.py, here and in xgboost_ray.main"),
    ("lightgbm.basic", "_ConfigAliases._get_all_param_aliases", "models/families/lightgbm.py knows parameters by it"),
    ("sklearn.neural_network", "MLPClassifier._validate_input", "models/families/mlp.py checks the same rows once"),
    ("sklearn.neural_network._stochastic_optimizers", "AdamOptimizer", "models/families/mlp.py sets its learning rate"),
    ("sklearn.neural_network._stochastic_optimizers", "SGDOptimizer", "models/families/mlp.py sets its learning rate"),
    ("optuna.storages._in_memory", "_logger", "algorithms/optuna.py silences its announcement of every study"),
    ("optuna.samplers", "TPESampler.sample_relative", "algorithms/optuna.py asks it for one branch after the other"),
    ("hyperopt.base", "Domain", "algorithms/hyperopt.py"),
    ("hyperopt.tpe", "suggest", "algorithms/hyperopt.py"),
    ("hpbandster.optimizers.config_generators.bohb", "BOHB.new_result", "algorithms/bohb.py"),
    ("ray.tune.schedulers.hyperband", "HyperBandScheduler._process_bracket", "schedulers/hyperband.py"),
    (
        "ray.tune.schedulers.hyperband",
        "_Bracket.update_trial_stats",
        "schedulers/hyperband.py, with _n, _n0, _all_trials",
    ),
    ("ray.tune.schedulers.hyperband", "_Bracket.continue_trial", "schedulers/hyperband.py, with _live_trials"),
    ("ray.tune.schedulers.pbt", "PopulationBasedTraining._quantiles", "schedulers/pbt.py reads _trial_state"),
    ("ray.tune.schedulers.pb2", "PB2._get_new_config", "schedulers/pb2.py varies what has no model yet"),
    ("ray.tune.execution.tune_controller", "_ActorClassCache", "driver/hosts/ready_workers.py stands in for it"),
    ("ray.tune.execution.tune_controller", "TuneController._unstage_trial_with_resources", "execution/adapters.py"),
    ("ray.tune.execution.tune_controller", "TuneController._cleanup_cached_actors", "execution/adapters.py"),
    ("ray.tune.execution.class_cache", "_ActorClassCache.get", "driver/hosts/ready_workers.py has a method like it"),
    ("ray.tune.experiment.config_parser", "_make_parser", "execution/adapters.py makes Tune's trials"),
    ("ray.tune.experiment.config_parser", "_create_trial_from_spec", "execution/adapters.py"),
    ("ray.tune.experiment.trial", "_TemporaryTrialState", "driver/halt.py asks trial.temporary_state for its actor"),
    (
        "ray.train.v2.api.data_parallel_trainer",
        "DataParallelTrainer._initialize_and_run_controller",
        "trainers/controller.py",
    ),
    ("ray.train.v2._internal.execution.controller", "TrainController._start_worker_group", "trainers/controller.py"),
    ("ray.train.v2._internal.execution.controller", "TrainController._poll_workers", "trainers/controller.py"),
    ("ray.train.v2._internal.execution.worker_group", "WorkerGroup._create_placement_group", "trainers/controller.py"),
    ("ray.train.v2._internal.execution.worker_group", "WorkerGroup._create_workers", "trainers/controller.py"),
    (
        "ray.train.v2._internal.execution.scaling_policy.fixed",
        "FixedScalingPolicy._maybe_send_resource_request",
        "there too",
    ),
    ("ray.train.v2._internal.execution.training_report", "_TrainingReport", "trainers/controller.py, for its types"),
    ("os", "_exit", "documented: driver/signals.py and cli/ end a process that does not end by itself"),
]

# Attributes that objects only have once they are made, fitted or called: `self.NAME` stands in the module's source.
HELD = {
    "sklearn.ensemble._hist_gradient_boosting.gradient_boosting": (
        *("_loss", "_predictors", "_baseline_prediction", "_feature_subsample_rng"),
    ),
    "sklearn.neural_network._multilayer_perceptron": ("_optimizer",),
    "ray.tune.experiment.trial": ("temporary_state",),
    "ray.tune.execution.tune_controller": ("_staged_trials",),
    "ray.train.v2._internal.execution.controller.controller": ("_checkpoint_manager", "_health_check_interval_s"),
    "ray.tune.search.ax.ax_search": ("_points_to_evaluate",),
    "ray.tune.search.bayesopt.bayesopt_search": ("_metric_op",),
    "ray.tune.search.zoopt.zoopt_search": ("_metric_op",),
    "flaml.tune.searcher.blendsearch": ("_evaluated_rewards", "_search_thread_pool", "_ls"),
    "ray.tune.search.nevergrad.nevergrad_search": ("_nevergrad_opt",),
    "ray.tune.search.hebo.hebo_search": ("_initial_points", "_max_concurrent"),
    "ray.tune.schedulers.async_hyperband": ("_num_stopped",),
    "ray.tune.schedulers.hyperband": (
        *("_state", "_hyperbands", "_trial_info", "_n", "_n0", "_all_trials", "_live_trials", "_cumul_r"),
        *("_get_r0", "_s_max_1"),
    ),
    "ray.tune.schedulers.pbt": ("_trial_state", "_burn_in_period", "_perturbation_interval", "_synch"),
}


@pytest.mark.parametrize(("module", "attribute", "why"), EDGES, ids=lambda value: str(value))
def test_a_private_name_is_still_there(module: str, attribute: str, why: str) -> None:
    value = import_module(module)
    for name in attribute.split("."):
        value = getattr(value, name)


def test_rays_schedulers_still_hold_the_attributes_that_ours_read() -> None:
    from ray.tune.schedulers import AsyncHyperBandScheduler, HyperBandScheduler, PopulationBasedTraining
    from ray.tune.schedulers.hyperband import _Bracket
    from ray.tune.schedulers.pbt import _PBTTrialState

    goal = {"metric": "score", "mode": "max"}
    population = PopulationBasedTraining(**goal, custom_explore_fn=dict)
    held = {
        AsyncHyperBandScheduler(**goal): ("_num_stopped",),
        HyperBandScheduler(**goal): ("_state", "_hyperbands", "_trial_info", "_get_r0", "_s_max_1"),
        _Bracket("step", 3, 1, 9, 3, 2): (
            *("_n", "_n0", "_all_trials", "_live_trials", "is_being_processed", "trials_to_unpause", "_cumul_r"),
        ),
        population: ("_trial_state", "_burn_in_period", "_perturbation_interval", "_synch"),
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


@pytest.mark.parametrize("module", HELD)
def test_an_attribute_is_still_held(module: str) -> None:
    source = inspect.getsource(import_module(module))
    assert [name for name in HELD[module] if f"self.{name}" not in source] == []


def _private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


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
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules of ours that a file names in its imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in OURS:
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in OURS)


def _used(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """The private names that a file uses, and whether they can only be those of another library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            if not any(module.partition(".")[0] in OURS for module in modules):
                words = [*modules, *(alias.name for alias in node.names)]
                yield from ((part, True) for word in words for part in word.split(".") if _private(part))
        elif isinstance(node, ast.Attribute) and _private(node.attr):
            yield node.attr, False
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and _private(name.value):
                yield name.value, False


OURS = ("tuning", "search_spaces", "schedulers")


def test_every_private_name_that_the_code_uses_is_listed() -> None:
    """A name is our own where the file, or one that it imports, gives it to a class; else it is another library's."""
    trees = {path: ast.parse(path.read_text()) for top in OURS for path in (ROOT / top).rglob("*.py")}
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in trees}
    names = {path: set(_ours(tree)) for path, tree in trees.items()}
    known = {path: {paths[module] for module in _imported(tree) if module in paths} for path, tree in trees.items()}
    listed = {part for module, attribute, _ in EDGES for part in f"{module}.{attribute}".split(".")}
    listed |= {part for module, names in HELD.items() for part in (*module.split("."), *names)}
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
