"""Every private or undocumented name of a dependency that we use is still there: an upgrade fails here first."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

EDGES = [
    ("sklearn.ensemble", "HistGradientBoostingRegressor._preprocess_X", "models/hist_gradient_boosting.py"),
    ("sklearn.ensemble", "HistGradientBoostingRegressor._bin_data", "models/hist_gradient_boosting.py"),
    ("sklearn.ensemble", "HistGradientBoostingRegressor._raw_predict", "models/hist_gradient_boosting.py"),
    ("sklearn.ensemble", "HistGradientBoostingRegressor._predict_iterations", "models/hist_gradient_boosting.py"),
    ("sklearn.ensemble", "HistGradientBoostingRegressor._is_fitted", "models/hist_gradient_boosting.py"),
    ("lightgbm.basic", "_ConfigAliases._get_all_param_aliases", "models/lightgbm.py knows parameters by it"),
    ("sklearn.neural_network", "MLPClassifier._validate_input", "models/mlp.py checks the same rows once"),
    ("sklearn.neural_network._stochastic_optimizers", "AdamOptimizer", "models/mlp.py sets its learning rate"),
    ("sklearn.neural_network._stochastic_optimizers", "SGDOptimizer", "models/mlp.py sets its learning rate"),
    ("mlflow.store.tracking.dbmodels.models", "SqlExperiment.__table__", "tracking/tables.py describes these tables"),
    ("mlflow.store.tracking.dbmodels.models", "SqlExperimentTag.__table__", "tracking/tables.py"),
    ("mlflow.store.tracking.dbmodels.models", "SqlRun.__table__", "tracking/tables.py"),
    ("mlflow.store.tracking.dbmodels.models", "SqlParam.__table__", "tracking/tables.py"),
    ("mlflow.store.tracking.dbmodels.models", "SqlMetric.__table__", "tracking/tables.py"),
    ("mlflow.store.tracking.dbmodels.models", "SqlLatestMetric.__table__", "tracking/tables.py"),
    ("mlflow.store.tracking.dbmodels.models", "SqlTag.__table__", "tracking/tables.py"),
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
]


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
        HyperBandScheduler(**goal): ("_state", "_hyperbands", "_trial_info"),
        _Bracket("step", 3, 1, 9, 3, 2): (
            *("_n", "_n0", "_all_trials", "_live_trials", "is_being_processed", "trials_to_unpause"),
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

    from tuning.driver.tuner import OWN_RAY

    binary = (Path(ray.__file__).parent / "core" / "src" / "ray" / "gcs" / "gcs_server").read_bytes()
    assert all(name.encode() in binary for name in OWN_RAY)
