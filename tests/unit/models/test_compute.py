"""A trial trains with as many threads as it has CPUs, and on the GPU that it has a share of."""

from __future__ import annotations

import json
import os
import warnings
from typing import Any

import numpy as np
import pytest
from model_cases import data_of
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_info

from tuning.basics.environment import thread_environment
from tuning.definition.options import Resources
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import train
from tuning.models.base import EncodedRows
from tuning.models.compute import Compute, limited_threads, trains_with
from tuning.models.own import OwnFamily
from tuning.models.registry import families
from tuning.preprocessing.task import REGRESSION

# Families with a parallel part, and a short training for each.
PARALLEL = {
    "xgboost": {"n_estimators": 10},
    "lightgbm": {"n_estimators": 10},
    "catboost": {"iterations": 10},
    "random_forest": {"n_estimators": 10},
    "extra_trees": {"n_estimators": 10},
    "hist_gradient_boosting": {"max_iter": 10},
    "knn": {},
    "ridge": {"alpha": 1.0},
    "mlp": {"max_iter": 10},
}


def fitted(name: str, **more: object) -> tuple[Any, EncodedRows]:
    data, family = data_of(REGRESSION), families()[name]
    rows, unseen = data.folds(family)[0]
    rows, unseen = (
        EncodedRows(each.X, each.y, each.weight, each.categorical) for each in (rows, unseen)
    )  # nothing kept
    return family.fit({**PARALLEL[name], **more}, rows, data.task, 0), unseen


@pytest.mark.parametrize(
    ("cpus", "gpus", "compute"),
    [(1, 0, Compute()), (0.25, 0.25, Compute(1, True)), (8, 0, Compute(8)), (2.5, 2, Compute(2, True))],
)
def test_whole_cpus_are_threads(cpus: float, gpus: float, compute: Compute) -> None:
    assert Resources(cpus=cpus, gpus=gpus).compute == compute


@pytest.mark.parametrize("cpus", [1, 3])
def test_boosters_are_told_their_threads(cpus: int) -> None:
    with trains_with(Compute(cpus)):
        xgboost, lightgbm, catboost = (fitted(name)[0] for name in ("xgboost", "lightgbm", "catboost"))
    assert int(json.loads(xgboost.save_config())["learner"]["generic_param"]["nthread"]) == cpus
    assert lightgbm.params["num_threads"] == cpus
    assert catboost.get_param("thread_count") == cpus


@pytest.mark.parametrize("cpus", [1, 3])
@pytest.mark.parametrize("name", ["random_forest", "extra_trees"])
def test_forests_train_in_so_many_jobs(name: str, cpus: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.utils.parallel import Parallel

    jobs: list[int] = []
    call = Parallel.__call__
    monkeypatch.setattr(Parallel, "__call__", lambda self, work: (jobs.append(self.n_jobs), call(self, work))[1])
    with trains_with(Compute(cpus)):
        forest, _ = fitted(name)
    assert jobs == [cpus]
    assert forest.n_jobs == 1  # the saved model says the same on every machine


def test_openmp_and_blas_have_as_many_threads_as_there_are_cpus() -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info()}

    outside, variables = threads(), dict(os.environ)
    with limited_threads():
        assert threads() == {1}
    with trains_with(Compute(3)):
        assert threads() == {3}
        assert thread_environment(3).items() <= os.environ.items()  # for what is loaded, or started, from now on
        with limited_threads():
            assert threads() == {3}
    with limited_threads():
        assert threads() == {1}
    assert threads() == outside
    assert dict(os.environ) == variables


@pytest.mark.parametrize(("given", "built"), [(None, None), (1, 1), (2, 2), (8, 3), (-1, 3)])
def test_an_own_estimator_has_no_more_jobs_than_cpus(given: int | None, built: int | None) -> None:
    family = OwnFamily("forest", RandomForestRegressor(n_jobs=given))
    with trains_with(Compute(3)):
        assert family.build({}).get_params()["n_jobs"] == built
    assert family.build({}).get_params()["n_jobs"] == (None if given is None else 1)


def test_an_own_booster_that_would_take_all_cores_takes_its_share() -> None:
    lightgbm, catboost = pytest.importorskip("lightgbm"), pytest.importorskip("catboost")
    with trains_with(Compute(3)):
        alone = OwnFamily("boosted", lightgbm.LGBMRegressor()).build({}).get_params()
        within = OwnFamily("boosted", make_pipeline(StandardScaler(), lightgbm.LGBMRegressor())).build({}).get_params()
        other = OwnFamily("boosted", catboost.CatBoostRegressor(iterations=5)).build({}).get_params()
        asked = OwnFamily("boosted", catboost.CatBoostRegressor(thread_count=2)).build({}).get_params()
    assert (alone["n_jobs"], within["lgbmregressor__n_jobs"]) == (3, 3)
    assert (other["thread_count"], asked["thread_count"]) == (3, 2)


@pytest.mark.parametrize("name", PARALLEL)
def test_threads_change_nothing_that_is_seen(name: str) -> None:
    """The same number of threads gives the same to the last bit; another one may round otherwise."""
    family, task, found = families()[name], data_of(REGRESSION).task, []
    for cpus in (1, 2, 2):
        with trains_with(Compute(cpus)):
            model, unseen = fitted(name)
            found.append(family.predict(model, unseen, task).values)
    alone, two, again = found
    assert np.array_equal(two, again)
    assert np.allclose(alone, two, rtol=1e-6)


def test_a_trial_that_grows_follows_too() -> None:
    data, scores = data_of(REGRESSION), []
    metric = Metric("r2", data.task)
    for cpus in (1, 2):
        with trains_with(Compute(cpus)):
            steps = train({"model": "hist_gradient_boosting"}, data, metric, 0)
            scores.append(next(steps).score)
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)


def test_xgboost_trains_on_the_gpu_of_its_trial() -> None:
    def device() -> str:
        """Where XGBoost trains; without a GPU it says that it finds none."""
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model, _ = fitted("xgboost", verbosity=1)
        if any("No visible GPU" in str(each.message) for each in said):
            return "cuda"
        return str(json.loads(model.save_config())["learner"]["generic_param"]["device"]).partition(":")[0]

    assert device() == "cpu"
    with trains_with(Compute(gpu=True)):
        assert device() == "cuda"
