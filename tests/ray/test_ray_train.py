"""Trials that are trainings of Ray Train: each report a step, stopped and resumed like any trial, and nothing stays."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import made_up
import pytest
from chaos import command, wait_for
from paths import ROOT
from ray.train import ScalingConfig
from trainers import WORKERS, alone, fail, lightgbm_trainer, torch_trainer, trainer
from worker_groups import left_over, processes_of

from search_spaces import Choice, Constant, SearchSpace
from tuning import RunResult, TuneRunner
from tuning.basics.timing import USUAL, Timing

ROUNDS = 12


def search(folder: Path, objective: Any, *etas: float, timing: Timing = USUAL, **fields: Any) -> RunResult:
    config = {"rounds": fields.pop("rounds", ROUNDS), **fields.pop("constants", {})}
    parameters = [Choice("eta", list(etas)), *(Constant(name, value) for name, value in config.items())]
    given: dict[str, Any] = {
        "objective": objective,
        "search_space": SearchSpace(parameters),
        "metric": "loss",
        "mode": "min",
        "steps": config["rounds"],
        "algorithm": "grid",
        "scheduler": {"name": "asha", "grace_period": 2, "reduction_factor": 2},
        "trials": len(etas),
        "slots": 2,
        "resources": {"cpus": 0.5},
        "mlflow": False,
    }
    runner = TuneRunner(**{**given, **fields})
    runner.timing = timing
    return runner.run(folder, progress=False)


def test_workers_make_what_one_process_makes_and_a_bad_trial_is_stopped(ray_cluster: None, tmp_path: Path) -> None:
    found = search(tmp_path / "run", trainer, 0.3, 0.0001)
    good, bad = sorted(found.trial_records, key=lambda record: record.trial)
    assert (good.state, bad.state) == ("finished", "stopped"), (good.reason, good.error, bad.reason)
    assert [step.step for step in good.steps] == list(range(1, ROUNDS + 1))
    assert [step.score for step in good.steps] == pytest.approx(alone(0.3, ROUNDS), rel=1e-6)
    assert len(bad.steps) == 2
    assert left_over() == {}
    (kept,) = (tmp_path / "run" / "train" / "search").iterdir()
    assert kept.name.startswith(f"{good.trial}-")
    assert len([path for path in kept.iterdir() if path.is_dir()]) == 1  # the last checkpoint


@pytest.mark.parametrize(
    ("library", "trained"),
    [pytest.param("lightgbm", lightgbm_trainer, marks=pytest.mark.slow), ("torch", torch_trainer)],
)
def test_other_trainers_with_two_workers(ray_cluster: None, tmp_path: Path, library: str, trained: Any) -> None:
    pytest.importorskip(library, reason="it is not installed; `make fresh` has PyTorch")
    found = search(tmp_path / "run", trained, 0.2, rounds=8)
    (record,) = found.trial_records
    assert record.state == "finished", (record.reason, record.error)
    scores = [step.score for step in record.steps]
    assert len(scores) == 8
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] < 0.7 * scores[0]
    assert left_over() == {}


FOUR = ScalingConfig(num_workers=4)


def large(config: dict[str, Any], scaling_config: ScalingConfig = FOUR) -> Any:
    return trainer(config, scaling_config)


def test_workers_that_never_have_room_are_the_reason_of_their_trial(ray_cluster: None, tmp_path: Path) -> None:
    found = search(tmp_path / "run", large, 0.3, timing=Timing(own_room_s=1.0))
    (record,) = found.trial_records
    assert record.state == "failed"
    assert "for which the machines that are there have no room" in str(record.reason)


@pytest.mark.slow
@pytest.mark.chaos
def test_a_killed_worker_costs_the_rounds_since_the_last_checkpoint(ray_cluster: None, tmp_path: Path) -> None:
    found = search(tmp_path / "run", trainer, 0.3, constants={"kill": str(tmp_path / "killed")})
    (record,) = found.trial_records
    print([(step.step, round(step.seconds, 1)) for step in record.steps])  # what the start and the loss have cost
    assert (tmp_path / "killed").exists()
    assert (record.state, record.attempt) == ("finished", 1), (record.reason, record.error)
    assert [step.step for step in record.steps] == list(range(1, ROUNDS + 1))
    assert [step.score for step in record.steps] == pytest.approx(alone(0.3, ROUNDS), rel=1e-6)
    assert left_over() == {}


@pytest.mark.slow
@pytest.mark.chaos
def test_a_trial_whose_process_is_killed_goes_on_from_its_last_checkpoint(ray_cluster: None, tmp_path: Path) -> None:
    """The objective kills its trial's process from a thread, after the training has a checkpoint."""
    folder, died = tmp_path / "run", tmp_path / "died"

    def dying(config: dict[str, Any], scaling_config: ScalingConfig = WORKERS) -> Any:
        import threading
        import time

        def die() -> None:
            while not list(folder.glob("train/search/0-*/checkpoint_*/*")):
                time.sleep(0.05)
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)

        if not died.exists():
            threading.Thread(target=die, daemon=True).start()
        return trainer(config, scaling_config)

    found = search(folder, dying, 0.3, rounds=40)
    (record,) = found.trial_records
    print([(step.step, round(step.seconds, 1)) for step in record.steps])
    assert died.exists()
    assert (record.state, record.attempt) == ("finished", 2), (record.reason, record.error)
    assert record.steps[-1].score == pytest.approx(alone(0.3, 40)[-1], rel=1e-6)
    assert record.steps[-1].step == 40
    assert left_over() == {}


@pytest.mark.slow
def test_what_a_worker_raises_is_the_trials_reason(ray_cluster: None, tmp_path: Path) -> None:
    def failing(config: dict[str, Any], scaling_config: ScalingConfig = WORKERS) -> Any:
        made = trainer(config, scaling_config)
        made.train_loop_per_worker, made.run_config.failure_config.max_failures = fail, 0
        return made

    (record,) = search(tmp_path / "run", failing, 0.3).trial_records
    assert record.state == "failed"
    assert str(record.reason) == "RunError: worker 0: ValueError: no more rows"
    assert left_over() == {}


@pytest.mark.slow
@pytest.mark.chaos
def test_ray_train_ends_with_its_model_after_its_worker_and_its_driver_were_killed(
    group_cluster: None, tmp_path: Path
) -> None:
    """Both after a checkpoint, from which training goes on: the example's callback then reports its end once more."""
    import ray

    name, example, housing = tmp_path / "run", ROOT / "examples" / "ray_train.yaml", str(tmp_path / "housing.csv")
    made_up.housing(1000).to_csv(housing, index=False)
    settings: dict[str, Any] = {"trials": 1, "slots": 2, "mlflow": False}
    undisturbed = TuneRunner.from_yaml(example, data=housing, **settings).run(tmp_path / "alone", progress=False)
    driver = command(
        tmp_path, "run", str(example), "--data", housing, "--run-dir", str(name),
        *(part for key, value in settings.items() for part in ("--set", f"{key}={value}")),
        RAY_ADDRESS=ray.get_runtime_context().gcs_address,
    )  # fmt: skip
    try:
        done = wait_for(lambda: set(name.glob("train/*/0-*/checkpoint_*/*")), seconds=180.0, what="a checkpoint")
        os.kill(processes_of("RayTrainWorker")[0], signal.SIGKILL)
        wait_for(lambda: set(name.glob("train/*/0-*/checkpoint_*/*")) - done, seconds=180.0, what="a later checkpoint")
    finally:
        driver.kill()
        driver.wait()
    (record,) = TuneRunner.resume(name, progress=False).trial_records
    assert record.state == "finished", (record.reason, record.error)
    assert [step.step for step in record.steps] == list(range(1, 41))
    assert record.steps[-1].score == pytest.approx(undisturbed.trial_records[0].steps[-1].score, rel=1e-6)
    assert list(name.glob("train/*/0-*/checkpoint_*/model.ubj"))
