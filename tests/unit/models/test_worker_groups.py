"""Models whose trials several processes train: what a definition says of them, and what they read."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shown_output import note_texts

from tuning.definition.definition import define
from tuning.errors import DefinitionError, PlanError, RunError, TuningError
from tuning.models import families
from tuning.models.base import EncodedRows
from tuning.models.families.xgboost import FAMILY as XGBOOST
from tuning.models.families.xgboost_ray import FAMILY
from tuning.models.group_training import TrainingJob
from tuning.models.shards import read_shards, shards_of
from tuning.models.worker_group import RESTARTS, ActorGroup
from tuning.notes import PlanCode
from tuning.planning.plan import make_plan
from tuning.planning.run_plan import Plan
from tuning.preprocessing.task import REGRESSION, Task
from tuning.worker_groups import xgboost_ray
from tuning.worker_groups.xgboost_actors import TrialPlace

ENTRY = {"estimator": "xgboost_ray", "actors": 3, "cpus_per_actor": 2}


def plan(**fields: Any) -> Plan:
    numbers = np.random.default_rng(0).normal(size=(30, 3))
    frame = pd.DataFrame(numbers, columns=["a", "b", "y"])
    given = {"data": {"one": frame}, "target": "y", "task": "regression", "models": [ENTRY], "trials": 3, "slots": 8}
    return make_plan(define({"mlflow": False, **given, **fields}))


def test_an_entry_says_what_a_trial_takes() -> None:
    found = plan()
    assert found.placement == "spread"
    assert found.worker_group == ActorGroup(actors=3, cpus_per_actor=2)
    assert found.at_once == 1
    assert found.studies[0].space.default()["actors"] == 3
    assert define({**found.spec.definition.to_dict(), "data": "rows.csv"}).models[0].to_dict() == {
        "name": "xgboost_ray",
        **ENTRY,
    }


def test_a_plan_says_what_this_machine_is_too_small_for_and_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("tuning.planning.worker_groups.nvidia_gpus", lambda: 1)
    said = "a trial takes 7 CPUs with its actors, more than the 4 slots: take fewer actors, or more `slots`."
    assert said in note_texts(plan(slots=4))
    said = "a trial takes 1.5 GPUs with its actors, more than this machine has: 1."
    assert said in note_texts(plan(models=[{**ENTRY, "gpus_per_actor": 0.5}]))
    assert not any("GPU" in note for note in note_texts(plan(models=[{**ENTRY, "gpus_per_actor": 0.25}])))


def test_what_one_customer_asks_for_in_vain_holds_up_nobody_elses_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    spaces = {name: {"model": "xgboost", "actors": number, "max_depth": 3} for name, number in (("a", 99), ("b", 1))}
    data = {}
    for name, space in spaces.items():
        pd.DataFrame({"x": range(30), "y": range(30)}).to_csv(tmp_path / f"{name}.csv", index=False)
        constants = {key: {"type": "constant", "value": value} for key, value in space.items()}
        own = {**constants, "eta": {"type": "float", "low": 0.1, "high": 0.3}}
        data[name] = {"path": str(tmp_path / f"{name}.csv"), "search_space": own}
    found = plan(data=data, models=["ridge"])
    assert found.at_once == 4
    (note,) = [note for note in found.notes if note.code is PlanCode.GROUP_TOO_LARGE]
    assert (note.subject, note.values["cpus"], note.values["slots"]) == ("a", 100, 8)


def test_xgboost_with_actors_is_trained_by_them_and_without_by_one_process() -> None:
    found = plan(models=[{**ENTRY, "estimator": "xgboost"}])
    assert found.placement == "spread"
    assert found.worker_group == ActorGroup(actors=3, cpus_per_actor=2)
    assert plan(models=["xgboost"]).worker_group is None
    known = {"model": "xgboost", "max_depth": 5}  # of a portfolio, or somebody's, who knew of no actors
    assert found.studies[0].space.complete(known)["actors"] == 3


def test_its_search_space_is_that_of_xgboost() -> None:
    def parameters(name: str) -> list[str]:
        return [each.name for each in plan(models=[name]).studies[0].space.parameters]

    assert parameters("xgboost_ray") == parameters("xgboost")
    assert plan(models=["xgboost_ray"]).worker_group == ActorGroup()
    assert plan(models=["xgboost"]).worker_group is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"placement": "packed"}, r"each trial of 'xgboost_ray', which needs placement: spread; change `placement`"),
        (
            {"scheduler": "hyperband"},
            r"the scheduler hyperband cannot pause trials; take asha, or models without actors",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(**fields)


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**ENTRY, "actors": 0}, "entry 1: actors: 0 is not a whole number of 1 or more"),
        ({**ENTRY, "cpus_per_actor": True}, "entry 1: cpus_per_actor: True is not a number"),
        ({**ENTRY, "gpus_per_actor": 2}, "entry 1: gpus_per_actor: 2 is not between 0 and 1"),
        ({**ENTRY, "recovery": "hot"}, "entry 1: recovery: 'hot' is not one of warm, cold, elastic"),
        (
            {"estimator": "ridge", "actors": 2},
            "'actors' are for models that several processes train: xgboost, xgboost_ray",
        ),
    ],
)
def test_a_wrong_value_is_named(entry: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        plan(models=[entry])


@pytest.mark.parametrize("fields", [{"actors": 4}, {"manifest": {"one": {"actors": 4}}, "data": None}])
def test_actors_beside_the_keys_that_they_do_not_belong_to_are_told_their_place(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    if manifest := fields.get("manifest"):
        (tmp_path / "manifest.yaml").write_text(json.dumps(manifest))
        fields = {"manifest": str(tmp_path / "manifest.yaml")}
    with pytest.raises(TuningError, match=r"actors: unknown key. It stands in an entry of `models`, such as"):
        plan(**fields)


def test_what_a_trial_takes_is_said_once_and_cannot_vary() -> None:
    space = {"actors": {"type": "int", "low": 1, "high": 4}}
    with pytest.raises(DefinitionError, match=r"'actors' of 'xgboost_ray' cannot vary; write a constant"):
        plan(models=[{"estimator": "xgboost_ray", "search_space": space}])
    with pytest.raises(
        DefinitionError, match=r"give 'actors' next to the estimator or in its search_space, not in both"
    ):
        plan(models=[{**ENTRY, "search_space": space}])


def test_without_ray_one_process_trains_what_xgboost_would() -> None:
    """So a debugger stops in it; what several processes train is compared in tests/ray/test_worker_groups.py."""
    X = np.random.default_rng(0).normal(size=(200, 3))
    rows, unseen, task = EncodedRows(X[:150], X[:150, 0]), EncodedRows(X[150:], X[150:, 0]), Task(REGRESSION, ())
    config = {"n_estimators": 20}
    found = list(FAMILY.grow({**config, "actors": 2}, rows, unseen, task, 3))
    expected = list(XGBOOST.grow(config, rows, unseen, task, 3))
    for (said, _), (wanted, _) in zip(found, expected, strict=True):
        np.testing.assert_array_equal(said.values, wanted.values)


def test_shards_hold_each_row_once_and_are_written_once(tmp_path: Path) -> None:
    X = np.arange(21.0).reshape(7, 3)
    rows, place = EncodedRows(X, X[:, 0] * 2, np.ones(7)), TrialPlace(None, str(tmp_path), "shards/one", 1.0)  # type: ignore[arg-type]  # no Ray here
    names = shards_of(rows, 2, place)
    frames = [pd.read_parquet(tmp_path / name) for name in names]
    assert [list(frame["f0"]) for frame in frames] == [[0, 6, 12, 18], [3, 9, 15]]
    assert list(frames[0].columns) == ["f0", "f1", "f2", "y", "weight"]
    assert read_shards(names, place.uri).to_pandas().equals(pd.concat(frames, ignore_index=True))
    before = [(tmp_path / name).stat().st_mtime_ns for name in names]
    assert shards_of(EncodedRows(X.copy(), X[:, 0] * 2, np.ones(7)), 2, place) == names
    assert [(tmp_path / name).stat().st_mtime_ns for name in names] == before
    assert shards_of(EncodedRows(X, X[:, 0] * 3, np.ones(7)), 2, place) != names  # other labels
    assert len(list(tmp_path.rglob("*.parquet"))) == 4


def test_numbers_beyond_float32_become_its_largest(tmp_path: Path) -> None:
    place = TrialPlace(None, str(tmp_path), "shards/one", 1.0)  # type: ignore[arg-type]  # no Ray here
    table = read_shards(shards_of(EncodedRows(np.array([[1e300], [-1e300]]), np.zeros(2)), 1, place), place.uri)
    assert np.isfinite(table.column("f0").to_numpy()).all()


def test_another_version_is_refused_and_says_which_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        families.xgboost_ray, "installed_version", lambda *names: "9.9" if "xgboost" in names else "0.1.19"
    )
    with pytest.raises(PlanError, match=r"'xgboost_ray' works with xgboost 3\.2\.\*, and 9\.9 is installed: pip"):
        plan()


def test_what_is_replaced_in_xgboost_ray_is_what_the_adapter_was_written_for() -> None:
    import xgboost_ray.elastic as elastic
    import xgboost_ray.main as main

    assert families.xgboost_ray.unsuitable() == ""
    replacements = xgboost_ray.replacements()
    called = {name for function in (main._train, main.train) for name in function.__code__.co_names}
    assert called >= replacements.keys()
    inspect.signature(replacements["_create_actor"]).bind(**inspect.signature(main._create_actor).parameters)
    for name in ("_start_rabit_tracker", "_stop_rabit_tracker", "_create_communication_processes"):
        inspect.signature(replacements[name]).bind(*inspect.signature(getattr(main, name)).parameters)
    assert elastic._create_actor is main._create_actor


def test_xgboost_ray_gives_up_after_three_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the real library an actor is killed once, in tests/ray/test_worker_groups.py."""
    tries: list[int] = []

    def lose(training: xgboost_ray.RayTraining) -> None:
        tries.append(training.number)
        raise RuntimeError("a Ray actor died")

    monkeypatch.setattr(xgboost_ray.RayTraining, "_train", lose)
    work = TrainingJob(shards=(), weighted=False, types=(), params={}, rounds=10, every=10)
    place = TrialPlace(None, "nowhere", "shards", 1.0)  # type: ignore[arg-type]  # no Ray here
    training = xgboost_ray.RayTraining(work, ActorGroup(recovery="cold"), place)
    with pytest.raises(RunError, match="XGBoost-Ray could not train: RuntimeError: a Ray actor died"):
        next(training)
    assert len(tries) == RESTARTS + 1


def test_xgboosts_tracker_takes_what_the_adapter_gives() -> None:
    from xgboost.tracker import RabitTracker

    parameters = inspect.signature(RabitTracker.__init__).parameters
    assert {"n_workers", "host_ip", "sortby"} <= parameters.keys()
    assert all(callable(getattr(RabitTracker, name)) for name in ("start", "wait_for", "worker_args", "free"))
