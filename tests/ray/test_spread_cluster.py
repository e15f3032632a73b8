"""Spread studies on a real local cluster: checkpoints, a driver that dies, data at hand, and isolation."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from chaos import Crash, crashing
from spread_workers import SPACE

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.execution.spread.state import STATE, begun_trials
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory

STEPS = 9


def give_back() -> None:
    """What Ray does when a driver's process ends: its workers and their reservations go."""
    import ray
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup

    for name, group in ray.util.placement_group_table().items():
        if group["state"] != "REMOVED":
            ray.util.remove_placement_group(PlacementGroup(PlacementGroupID(bytes.fromhex(name))))


def objective_with_log(log: str) -> Any:
    """Every step leaves a line; the state is the step."""

    def objective(config: dict[str, Any], state: Any) -> Iterator[Step]:
        for step in range((state or 0) + 1, STEPS + 1):
            with open(f"{log}-{config['x']:.6f}", "a") as lines:
                lines.write(f"{step}\n")
            yield Step(step, (config["x"] - 1) ** 2 + 1 / step, get_state=lambda step=step: step)

    return objective


def runner_of(objective: Any, **more: Any) -> TuneRunner:
    fields = {
        "search_space": SPACE,
        "metric": "loss",
        "mode": "min",
        "steps": STEPS,
        "trials": 3,
        "algorithm": "random",
    }
    placed = {"algorithm": "random", "scheduler": "fifo", "placement": "spread", "mlflow": False, "slots": 2}
    return TuneRunner(**{**fields, **placed, "objective": objective, **more})


@pytest.mark.parametrize("where", ["local", pytest.param("s3", marks=pytest.mark.slow)])
def test_trials_of_a_driver_that_died_go_on_from_their_checkpoints(
    ray_cluster: None, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    folder = str(tmp_path / "run")
    run = folder if where == "local" else request.getfixturevalue("bucket").uri("runs/weekly", credentials=True)
    runner = runner_of(objective_with_log(str(tmp_path / "steps")))
    runner.timing = Timing(checkpoint_s=0.0, parts_s=0.0)
    with crashing(monkeypatch, 1, "before", only="records/"), pytest.raises(Crash):
        runner.run(run, progress=False)
    give_back()
    (flying,) = begun_trials(RunDirectory(run)).values()
    steps = {trial.number: len(trial.reports) for trial in flying.values()}
    x = {trial.number: trial.config["x"] for trial in flying.values()}
    before = {number: len(_lines(tmp_path, x[number])) for number in flying}
    result = runner.run(run, resume=True, progress=False)
    assert [[step.step for step in record.steps] for record in result.trial_records] == [list(range(1, STEPS + 1))] * 3
    assert {record.trial: record.config["x"] for record in result.trial_records}.items() >= x.items()
    for number, step in steps.items():
        assert _lines(tmp_path, x[number])[before[number] :] == list(range(step + 1, STEPS + 1))
    # What served is gone: a run does not fill its storage with the states of ended trials.
    assert [name for name in result.directory.list("tune") if name.endswith(STATE)] == []


def test_a_finished_study_goes_on_with_more_trials_and_runs_those_again_whose_records_are_lost(
    ray_cluster: None, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"algorithm": "optuna", "slots": 1}
    objective, run = objective_with_log(str(tmp_path / "steps")), str(tmp_path / "run")
    begun = runner_of(objective, trials=12, **more)
    begun.timing = Timing(parts_s=0.0)  # parts of a trial each
    first = begun.run(run, progress=False)
    for name in [name for name in first.directory.list("records") if "/trials-" in name][:2]:
        Path(first.directory.locate(name)).unlink()
    kept = {record.trial: record.started for record in RunResult(run).trial_records}
    result = runner_of(objective, trials=14, **more).run(run, resume=True, progress=False)
    found = {record.trial: record for record in result.trial_records}
    assert sorted(found) == list(range(14))
    assert {trial: found[trial].started for trial in kept} == kept
    assert [(record.trials, record.status) for record in result.study_records] == [(14, "ok")]
    assert {len(_lines(tmp_path, found[trial].config["x"])) for trial in kept} == {STEPS}  # they did not run again


def _lines(folder: Path, x: float) -> list[int]:
    return [int(line) for line in (folder / f"steps-{x:.6f}").read_text().split()]


def test_a_frame_in_memory_is_written_once_and_customers_are_loaded_once_per_worker(
    ray_cluster: None, tmp_path: Path
) -> None:
    frame = pd.DataFrame({"shop": ["a"] * 5000 + ["b"] * 5000, "level": range(10000)})
    log = str(tmp_path / "loaded")

    def objective(config: dict[str, Any], data: Any) -> float:
        place = data["level"].to_numpy().__array_interface__["data"][0]  # trials share what a worker has loaded
        with open(log, "a") as lines:
            lines.write(f"{os.getpid()} {data['shop'].iloc[0]} {place}\n")
        return float(data["level"].mean() + config["x"])

    result = runner_of(objective, data=frame, by="shop", trials=8).run(str(tmp_path / "run"), progress=False)
    assert len(result.trial_records) == 16
    loads = set(Path(log).read_text().splitlines())
    assert len(loads) == len({line.rpartition(" ")[0] for line in loads})  # once per process and customer
    assert len({line.split()[0] for line in loads}) < 16  # and processes are used again
    stored = sum(path.stat().st_size for path in (tmp_path / "run" / "data").rglob("*") if path.is_file())
    assert stored > 10_000  # the rows are here, once,
    for path in (tmp_path / "run" / "tune").rglob("*"):
        assert not path.is_file() or path.stat().st_size < 1_000_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["by", "mapping"])
def test_workers_have_a_frames_rows_from_the_file_that_the_run_has_written(
    ray_cluster: None, tmp_path: Path, kind: str
) -> None:
    result = runner_of(mean_of_levels(), **FRAMES[kind], trials=4, slots=1).run(str(tmp_path / "run"), progress=False)
    assert {record.state for record in result.trial_records} == {"finished"}
    assert [record.status for record in result.study_records] == ["ok", "ok"]


@pytest.mark.slow
def test_a_resume_does_not_need_the_frame(ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = str(tmp_path / "run")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["a", "b", "y"]).assign(shop=["a", "b"] * 30)
    more = {"data": frame, "by": "shop", "target": "y", "search_space": "ridge", "metric": "r2", "mode": "max"}
    runner = runner_of(None, **more, steps=1, slots=1)
    runner.timing = Timing(parts_s=0.0)
    with crashing(monkeypatch, 2, only="trials"), pytest.raises(Crash):
        runner.run(run, progress=False)
    give_back()
    before = {record.key: record.started for record in RunResult(run).trial_records}
    assert before
    result = TuneRunner.resume(run, progress=False)
    assert [record.status for record in result.study_records] == ["ok", "ok"]
    assert before.items() <= {record.key: record.started for record in result.trial_records}.items()


FRAME = pd.DataFrame({"shop": ["a"] * 50 + ["b"] * 50, "level": range(100)})
FRAMES = {
    "by": {"data": FRAME, "by": "shop"},
    "mapping": {"data": {"a": FRAME[:50], "b": FRAME[50:]}},
}


def mean_of_levels() -> Any:
    def objective(config: dict[str, Any], data: Any) -> float:
        assert len(data) == 50
        return float(data["level"].mean() + config["x"])

    return objective


@pytest.mark.slow
def test_the_tuner_of_a_spread_definition_records_like_a_run(ray_cluster: None, tmp_path: Path) -> None:
    def objective(config: dict[str, Any]) -> float:
        return (config["x"] - 1) ** 2

    tuner = runner_of(objective, trials=3, steps=1, slots=1).tuner(str(tmp_path / "run"))
    assert len(tuner.fit()) == 3  # a Tune trial is a trial
    result = RunResult(str(tmp_path / "run"))
    assert len(result.trial_records) == 3
    assert [record.status for record in result.study_records] == ["ok"]
