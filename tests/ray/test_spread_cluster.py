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

import schedulers
from search_spaces import algorithms
from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.data.customers import Customer
from tuning.definition.options import Resources
from tuning.execution.spread.events import CheckpointSaved, StepTaken, TrialSuggested
from tuning.execution.spread.journal import read_journal
from tuning.execution.spread.spread_study import SpreadStudy
from tuning.execution.spread.state import FILE, read_state
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory
from tuning.study.build import PlannedStudy
from tuning.study.study import Study

STEPS = 9


def journal_of(run: str) -> dict[str, list[Any]]:
    result = RunResult(run)
    return read_journal(result.directory, result.term, lambda name, error: None)


def give_back() -> None:
    """What Ray does when a driver's process ends: its workers and their reservations go."""
    import ray
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup

    for name, group in ray.util.placement_group_table().items():
        if group["state"] != "REMOVED":
            ray.util.remove_placement_group(PlacementGroup(PlacementGroupID(bytes.fromhex(name))))


def step_in(directory: RunDirectory, checkpoint: str) -> int:
    """The step that a trial goes on behind."""
    content = read_state(directory, directory.path(checkpoint))
    assert content is not None
    assert isinstance(content.state, int)
    return content.state


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
    with crashing(monkeypatch, 9, only="journal"), pytest.raises(Crash):
        runner.run(run, progress=False)
    give_back()
    saved: dict[int, str] = {}
    configs: dict[int, float] = {}
    (events,) = journal_of(run).values()
    for event in events:
        if isinstance(event.what, TrialSuggested):
            configs[event.trial] = event.what.config["x"]
        if isinstance(event.what, CheckpointSaved):
            saved[event.trial] = event.what.path
    recorded = {record.trial for record in RunResult(run).trial_records}
    flying = {trial: step_in(RunDirectory(run), path) for trial, path in saved.items() if trial not in recorded}
    assert flying
    before = {trial: len(_lines(tmp_path, configs[trial])) for trial in flying}
    result = runner.run(run, resume=True, progress=False)
    assert [[step.step for step in record.steps] for record in result.trial_records] == [list(range(1, STEPS + 1))] * 3
    for trial, step in flying.items():
        assert _lines(tmp_path, configs[trial])[before[trial] :] == list(range(step + 1, STEPS + 1))
    # What served is gone: a run does not fill its storage with the states of ended trials.
    assert [name for name in result.directory.list("tune") if name.endswith(FILE)] == []


def test_a_finished_study_goes_on_with_more_trials_and_gets_lost_records_back(
    ray_cluster: None, tmp_path: Path
) -> None:
    more: dict[str, Any] = {"algorithm": "optuna", "slots": 1}
    objective, run = objective_with_log(str(tmp_path / "steps")), str(tmp_path / "run")
    begun = runner_of(objective, trials=12, **more)
    begun.timing = Timing(parts_s=0.0)  # parts of a trial each
    first = begun.run(run, progress=False)
    known = {record.trial: record.config for record in first.trial_records}
    for name in [name for name in first.directory.list("records") if "/trials-" in name][:2]:
        Path(first.directory.locate(name)).unlink()
    result = runner_of(objective, trials=14, **more).run(run, resume=True, progress=False)
    found = {record.trial: record.config for record in result.trial_records}
    assert sorted(found) == list(range(14))
    assert {trial: found[trial] for trial in known} == known
    assert [(record.trials, record.status) for record in result.study_records] == [(14, "ok")]
    assert {len(_lines(tmp_path, config["x"])) for config in found.values()} == {STEPS}  # nothing was run twice


def _lines(folder: Path, x: float) -> list[int]:
    return [int(line) for line in (folder / f"steps-{x:.6f}").read_text().split()]


@pytest.mark.slow
def test_an_easy_and_a_hard_customer_on_a_cluster_take_the_decisions_that_their_events_alone_lead_to(
    ray_cluster: None, tmp_path: Path
) -> None:
    """Which trial reports first is up to the cluster; given that, a study alone must decide exactly the same."""
    for name, level in (("easy", 0.0), ("hard", 100.0)):
        (tmp_path / f"{name}.csv").write_text(f"level\n{level}\n")

    def objective(config: dict[str, Any], data: Any) -> Iterator[float]:
        for step in range(1, STEPS + 1):
            yield data["level"].mean() + (config["x"] - 1) ** 2 + 3.0 / step

    more = {"data": str(tmp_path / "*.csv"), "scheduler": "asha", "algorithm": "optuna", "trials": 10}
    result = runner_of(objective, **more).run(str(tmp_path / "run"), progress=False)
    found = {record.study: record for record in result.study_records}
    for name in ("easy", "hard"):
        seed = found[name].study_seed
        spec = Study(
            id=name,
            customer=Customer(name),
            algorithm=algorithms.parse("optuna"),
            scheduler=schedulers.parse("asha"),
            seed=seed,
            space=SPACE,
            n_trials=10,
            resources=Resources(),
        )
        alone = SpreadStudy(PlannedStudy("run", spec, "loss", "min"), lambda event: None)
        together = {record.trial: record for record in result.trial_records if record.study == name}
        events = journal_of(str(tmp_path / "run"))[name]
        alone.replay(events, together)  # raises when a suggestion is another one
        for record in alone.records:
            other = together[record.trial]
            assert (record.config, record.state, record.reason) == (other.config, other.state, other.reason)
        decided = [event.what.stop for event in events if isinstance(event.what, StepTaken)]
        assert any(decided)
        assert len(alone.records) == 10
        assert {record.state for record in alone.records} == {"finished", "stopped"}


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
