"""A user's own function: what it may return, what it is given, and a space in Ray's notation."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from paths import ROOT
from ray import tune

from tuning import RunResult, TuneRunner
from tuning.errors import PlanError, StudyError
from tuning.evaluation import objective as objectives
from tuning.evaluation.objective import PortableFunction
from tuning.models.trainers.trainer import TrainWorkers
from tuning.models.trainers.training import Home


def search(tmp_path: Path, objective: Any, **fields: Any) -> RunResult:
    fields = {"search_space": {"x": tune.uniform(-1, 1)}, "metric": "loss", "mode": "min", "trials": 4, **fields}
    runner = TuneRunner(objective=objective, algorithm="random", mlflow=False, report=False, **fields)
    return runner.run(str(tmp_path / "run"), progress=False, in_process=True)


@pytest.mark.long
def test_a_number_a_dict_and_a_generator_are_all_objectives(tmp_path: Path) -> None:
    def growing(config: dict[str, Any]) -> Iterator[dict[str, float]]:
        for step in (1, 2, 3):
            yield {"loss": config["x"] ** 2 + 1 / step, "accuracy": step / 3}

    number = search(tmp_path / "number", lambda config: config["x"] ** 2)
    report = search(tmp_path / "dict", lambda config: {"loss": config["x"] ** 2, "extra": 2})
    steps = search(tmp_path / "steps", growing, steps=3, scheduler="fifo")
    assert [r.score for r in number.trial_records] == [r.score for r in report.trial_records]
    assert report.trial_records[0].metrics == {"extra": 2.0}
    assert [len(r.steps) for r in steps.trial_records] == [3] * 4
    assert steps.trial_records[0].metrics == {"accuracy": 1.0}


@pytest.mark.parametrize("scheduler", ["fifo", "asha"])
def test_a_generator_that_yields_more_than_its_steps_is_no_search(tmp_path: Path, scheduler: str) -> None:
    def epochs(config: dict[str, Any]) -> Iterator[float]:
        for epoch in range(1, 10):
            yield config["x"] / epoch

    row = search(tmp_path, epochs, scheduler=scheduler).leaderboard().iloc[0]
    assert row["status"] == "no_model"
    assert "the objective yields step 2, but a full trial has `steps: 1`" in str(row["reason"])
    assert "Set `steps`" in str(row["reason"])


def test_one_report_too_many_costs_its_trial_alone(tmp_path: Path) -> None:
    def epochs(config: dict[str, Any], seed: int) -> Iterator[float]:
        yield config["x"] ** 2
        yield config["x"] ** 2 / 2
        if seed % 2:
            yield 0.0

    result = search(tmp_path, epochs, steps=2, scheduler="fifo", trials=8)
    failed = [record for record in result.trial_records if record.state == "failed"]
    assert 0 < len(failed) < 8
    assert all(
        "the objective yields step 3, but a full trial has `steps: 2`" in str(record.reason) for record in failed
    )
    assert list(result.leaderboard()["status"]) == ["ok"]


@pytest.mark.parametrize(
    ("reported", "steps"),
    [
        ([(1, 3.0), (2, 2.0), (3, 2.0)], [1, 2]),  # the callback of Ray Train, after it has gone on from a checkpoint
        ([(2, 2.0), (3, {})], [2]),  # after it has gone on from the last step, with nothing left to train
        ([(3, 2.0), (4, {})], []),  # from the report too many itself
    ],
)
def test_ray_trains_last_report_may_come_again(
    monkeypatch: pytest.MonkeyPatch, reported: list[tuple[int, Any]], steps: list[int]
) -> None:
    """As its `RayTrainReportCallback(checkpoint_at_end=True)`, the default, has it."""
    _reporting(monkeypatch, reported)
    assert _trained(2) == steps


def _reporting(monkeypatch: pytest.MonkeyPatch, reported: list[tuple[int, Any]]) -> None:
    """Every objective gives back a trainer whose workers report this."""
    monkeypatch.setattr(objectives, "is_trainer", lambda value: True)
    monkeypatch.setattr(objectives, "reports", lambda trainer, home: (each for each in reported))
    monkeypatch.setattr(objectives, "keep_ray_data_here", lambda: None)


def _trained(steps: int) -> list[int]:
    home = Home("nowhere", "0", TrainWorkers(1, {"CPU": 1.0}), pytest.fail)
    trainer = SimpleNamespace(train_loop_per_worker=print)
    found = objectives.steps_of(lambda config: trainer, {}, "loss", 0, steps=steps, home=home)
    return [step.step for step in found]


def test_a_trainer_that_goes_on_and_on_is_no_search(monkeypatch: pytest.MonkeyPatch) -> None:
    _reporting(monkeypatch, [(1, 3.0), (2, 2.0), (3, 2.0)])
    with pytest.raises(StudyError, match="the objective yields step 2, but a full trial has `steps: 1`"):
        _trained(1)


@pytest.mark.parametrize(
    ("metric", "asked"),
    [("loss", True), ("val_RMSE", True), ("testError", True), ("neg_loss", False), ("accuracy", False), (None, False)],
)
def test_a_figure_that_sounds_like_a_loss_needs_a_mode(metric: str | None, asked: bool) -> None:
    fields = {
        "objective": lambda config: 0.0,
        "search_space": {"x": tune.uniform(-1, 1)},
        "mlflow": False,
        "report": False,
    }
    fields |= {} if metric is None else {"metric": metric}
    if not asked:
        assert TuneRunner(**fields).plan().spec.mode == "max"
        return
    with pytest.raises(PlanError, match=f"mode: '{metric}' sounds like .*Set mode: min, or mode: max"):
        TuneRunner(**fields).plan()
    assert TuneRunner(**fields, mode="max").plan().spec.mode == "max"


def test_a_nested_space_of_ray_reaches_the_function_as_it_was_written(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []

    def loss(config: dict[str, Any]) -> float:
        seen.append(config)
        return config["model"]["width"] * config["rate"]

    space = {"model": {"width": tune.randint(1, 9), "depth": 3}, "rate": tune.loguniform(1e-3, 1e-1)}
    search(tmp_path, loss, search_space=space)
    assert all(set(config) == {"model", "rate"} and config["model"]["depth"] == 3 for config in seen)


def test_a_report_without_the_metric_says_what_it_held(tmp_path: Path) -> None:
    result = search(tmp_path, lambda config: {"accuracy": 0.5}, trials=1)
    assert "without the metric 'loss'" in str(result.trial_records[0].reason)


ARRIVE = """
import pickle, sys
for line in sys.stdin:
    function = pickle.loads(pickle.dumps(pickle.loads(bytes.fromhex(line))))
    try:
        print(function({"x": 3}))
    except Exception as error:
        print(error)
"""


@pytest.mark.long
def test_a_function_travels_with_where_its_module_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers import what the script imports; where they cannot, the trial's reason says so."""
    packed = []
    for name in ("their_losses", "moved_losses"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.py").write_text("def loss(config):\n    return config['x']\n")
        monkeypatch.syspath_prepend(tmp_path / name)
        packed.append(pickle.dumps(PortableFunction(importlib.import_module(name).loss)).hex())
        sys.modules.pop(name)
    (tmp_path / "moved_losses").rename(tmp_path / "elsewhere")
    command = [sys.executable, "-c", ARRIVE]
    done = subprocess.run(command, input="\n".join(packed), capture_output=True, text=True, check=True, cwd=ROOT)
    answer, reason = done.stdout.splitlines()
    assert answer == "3"
    assert "cannot be loaded in a worker: ModuleNotFoundError: No module named 'moved_losses'" in reason


def test_what_an_objective_writes_into_its_data_is_not_there_in_the_next_trial(tmp_path: Path) -> None:
    def careless(config: dict[str, Any], data: pd.DataFrame) -> float:
        data["a"] += 1
        data.dropna(inplace=True)
        return float(data["a"].sum())

    frame = pd.DataFrame({"a": [1.0, 2.0, None]})
    found = search(tmp_path, careless, data=frame)
    assert [record.score for record in found.trial_records] == [5.0] * 4
