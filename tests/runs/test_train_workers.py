"""Objectives that make trainers of Ray Train: what a plan says of their workers, and what cannot be."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ray.train import ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from shown_output import codes_of

from search_spaces import Float, SearchSpace
from tuning.definition.definition import define
from tuning.errors import DefinitionError, PlanError, StudyError
from tuning.evaluation.objective import resolve_objective, steps_of
from tuning.models.trainers.trainer import TrainWorkers, workers_of
from tuning.models.trainers.training import Home
from tuning.notes import PlanCode
from tuning.planning.plan import make_plan
from tuning.planning.run_plan import Plan
from tuning.worker_groups import ray_train

THREE = ScalingConfig(num_workers=3, resources_per_worker={"CPU": 2}, placement_strategy="SPREAD")


def loop(config: dict[str, Any]) -> None:
    """What workers would run."""


def trainer(config: dict[str, Any], scaling_config: ScalingConfig = THREE) -> DataParallelTrainer:
    return DataParallelTrainer(loop, train_loop_config=config, scaling_config=scaling_config)


def plan(objective: Any = trainer, *, in_process: bool = False, **fields: Any) -> Plan:
    given = {
        "objective": objective,
        "search_space": SearchSpace([Float("eta", 0.01, 1.0)]),
        "metric": "loss",
        "mode": "min",
        "steps": 5,
        "slots": 8,
        "mlflow": False,
    }
    return make_plan(define({**given, **fields}), in_process=in_process)


def test_a_plan_says_how_many_trials_have_room_with_their_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ray.is_initialized", lambda: False)  # of a Ray that runs, it cannot say what fits in
    found = plan()
    assert found.placement == "spread"
    assert found.workers == TrainWorkers(3, {"CPU": 2.0}, "SPREAD")
    assert found.at_once == 1
    assert plan(slots=21).at_once == 3
    assert plan(slots=7).at_once == 1
    assert plan(slots=16, resources={"cpus": 2}).at_once == 2
    assert PlanCode.GROUP_TOO_LARGE in codes_of(plan(slots=6))


def test_a_trainer_itself_is_an_objective_whose_configuration_is_added(tmp_path: Path) -> None:
    made = DataParallelTrainer(loop, train_loop_config={"rows": 9, "eta": 0.5}, scaling_config=THREE)
    assert plan(made).workers == TrainWorkers(3, {"CPU": 2.0}, "SPREAD")
    found: Any = resolve_objective(define({**GIVEN, "objective": made}).objective, made)
    one, two = found({"eta": 0.1}), found({"eta": 0.2})
    assert [each.train_loop_config for each in (one, two)] == [{"rows": 9, "eta": 0.1}, {"rows": 9, "eta": 0.2}]
    assert made.train_loop_config == {"rows": 9, "eta": 0.5}

    (tmp_path / "mine.py").write_text(FILE)
    assert plan(f"{tmp_path}/mine.py:ready").workers == TrainWorkers(2, {"CPU": 1.0})


GIVEN = {"search_space": SearchSpace([Float("eta", 0.01, 1.0)]), "metric": "loss", "mode": "min", "mlflow": False}
FILE = """
from ray.train import ScalingConfig
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

def loop(config):
    pass

ready = DataParallelTrainer(loop, scaling_config=ScalingConfig(num_workers=2))
"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"placement": "packed"}, r"several processes train each trial, which needs placement: spread; change"),
        ({"scheduler": "hyperband"}, r"the scheduler hyperband cannot pause trials; take asha"),
        ({"in_process": True}, r"trainers of Ray Train, and these need Ray; run it without --in-process"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        plan(**fields)


@pytest.mark.parametrize(
    ("scaling", "message"),
    [
        (ScalingConfig(num_workers=(1, 4)), r"num_workers=\(1, 4\).* Give one number of 1 or more"),
        (ScalingConfig(num_workers=0), r"num_workers=0.* Give one number of 1 or more"),
        (ScalingConfig(num_workers=2, label_selector={"zone": "a"}), r"label_selector=….* leave it out, or"),
    ],
)
def test_workers_that_no_placement_group_can_hold_are_refused(scaling: ScalingConfig, message: str) -> None:
    def asks(config: dict[str, Any], scaling_config: ScalingConfig = scaling) -> DataParallelTrainer:
        return trainer(config, scaling_config)

    with pytest.raises(DefinitionError, match=message):
        plan(asks)


TWO = ScalingConfig(num_workers=2)


def surprising(config: dict[str, Any]) -> DataParallelTrainer:
    return trainer(config)


def greedy(config: dict[str, Any], scaling_config: ScalingConfig = TWO) -> Any:
    return trainer(config, ScalingConfig(num_workers=2, use_gpu=True))


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (surprising, r"nobody knows before what its workers take. Let its parameter say so: `def trainer\(config, sca"),
        (greedy, r"with 2 workers of 1 GPU, and its trials have room for 2 workers of 1 CPU. Hand the param"),
    ],
)
def test_a_trainer_that_the_plan_does_not_know_ends_its_study_with_a_reason(
    ray_cluster: None, objective: Callable[..., object], message: str
) -> None:
    """Ray Train, which is asked here, would else start a Ray of its own."""
    workers = workers_of(objective)
    home = workers and Home("nowhere", "0", workers, pytest.fail)
    with pytest.raises(StudyError, match=message):
        list(steps_of(objective, {"eta": 0.1}, "loss", 0, steps=5, home=home))


@pytest.mark.parametrize("owner", [ray_train.TrialController, ray_train.TrialWorkers])
def test_ray_train_calls_what_is_extended_as_the_extension_takes_it(owner: type) -> None:
    """What workers do by it is in tests/ray/test_ray_train.py."""
    base = owner.__mro__[1]
    for name in {*vars(owner)} & {*dir(base)} - {*dir(object)}:
        extended = getattr(base, name)
        if inspect.isfunction(extended):
            inspect.signature(vars(owner)[name]).bind(**inspect.signature(extended).parameters)


def test_fit_ends_with_what_a_trial_replaces(ray_cluster: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """`fit` asks Ray, and would start one."""
    given: dict[str, Any] = {}

    class Started:
        error = None

        def __init__(self, **arguments: object) -> None:
            given.update(arguments)

    made = trainer({"eta": 0.1})
    monkeypatch.setattr(made, "_initialize_and_run_controller", Started)
    assert isinstance(made.fit(), Started)
    inspect.signature(ray_train.TrainController.__init__).bind(made, **given)
    assert {"callbacks", "scaling_policy"} <= given.keys()
