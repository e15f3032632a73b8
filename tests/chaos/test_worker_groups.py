"""Trials that several processes train, on machines that vanish and with drivers that die. Each test has its own Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from chaos import command, duplicates, environment, wait_for
from group_nodes import ACTOR_START_S
from paths import HELPERS

from benchmarks.lost_actor import processes
from tuning import RunResult

pytestmark = [pytest.mark.ray, pytest.mark.slow, pytest.mark.timeout(900)]
PATIENCE_S = 600  # a loaded machine is no failure


@pytest.mark.parametrize("recovery", ["warm", "elastic"])
def test_a_node_with_half_of_the_actors_vanishes(tmp_path: Path, recovery: str) -> None:
    """Without a place for a new actor, `warm` gives the trial up after a while, and `elastic` goes on with the rest."""
    done = subprocess.run(
        [sys.executable, str(HELPERS / "group_nodes.py"), str(tmp_path / "run"), recovery],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answer["left_over"] == {}
    (state, reason, steps), second = answer["trials"]
    assert second[0] == "finished", second
    if recovery == "elastic":
        assert (state, steps) == ("finished", 6), reason
    else:
        assert state == "failed"
        assert f"1 of 2 actors did not start within {ACTOR_START_S:g} s" in reason
    result = RunResult(str(tmp_path / "run"))
    assert list(result.leaderboard()["status"]) == ["ok"]


def test_a_node_that_is_lost_for_good_costs_the_giant_its_model_until_there_is_another_one_and_nobody_else(
    tmp_path: Path,
) -> None:
    script = str(HELPERS / "lost_for_good.py")
    done = subprocess.run(
        [sys.executable, script, str(tmp_path / "run")],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    ended, resumed = map(json.loads, done.stdout.splitlines()[-2:])
    assert ended["left_over"] == resumed["left_over"] == {}
    small = [f"c{number}" for number in range(4)]
    assert [ended["customers"][name] for name in small] == [["ok", "", 3]] * 4
    first, second, third = ended["giant"]
    assert first[1] == "finished", first
    assert "1 of 2 actors did not start within" in second[2]
    no_room = "it takes 3 times 1 CPU, for which the machines that are there have no room, and none has joined them"
    assert third[1] == "failed"
    assert third[2].startswith(f"the trial: {no_room}")
    status, reason, _ = ended["customers"]["giant"]
    assert status == "no_model"
    assert reason.startswith(f"its last fit: {no_room}")
    assert resumed["giant"][:3] == ended["giant"]
    assert resumed["giant"][3][1] == "finished"
    assert [resumed["customers"][name] for name in ["giant", *small]] == [["ok", "", 4]] * 5


@pytest.mark.parametrize("model", ["xgboost", "xgboost_ray"])
def test_a_driver_killed_while_actors_train_loses_no_trial_and_tells_none_twice(tmp_path: Path, model: str) -> None:
    values = np.random.default_rng(0).normal(size=(400, 3))
    pd.DataFrame(values, columns=["a", "b", "y"]).to_csv(tmp_path / "one.csv", index=False)
    space = {"n_estimators": {"type": "constant", "value": 20}, "max_depth": {"type": "choice", "values": [2, 3, 4]}}
    definition = {
        "data": "one.csv",
        "target": "y",
        "models": [{"estimator": model, "actors": 2, "cpus_per_actor": 0.5, "search_space": space}],
        "split": {"folds": 2},
        "algorithm": "grid",
        "scheduler": "fifo",
        "trials": 3,
        "slots": 2,
        "resources": {"cpus": 0.5},
        "mlflow": False,
    }
    (tmp_path / "definition.yaml").write_text(yaml.safe_dump(definition))
    run = tmp_path / "run"

    def actors() -> set[int]:
        """Those of this run's Ray: workers have its driver's environment."""
        return {pid for pid in processes(model) if str(tmp_path) in _environment(pid)}

    def known() -> dict[Any, float]:
        try:
            return {record.key: record.started for record in RunResult(str(run)).trial_records}
        except Exception:  # there is no run yet
            return {}

    driver = command(tmp_path, "run", "definition.yaml", "--run-dir", "run", MARK=str(tmp_path))
    wait_for(lambda: (known() and actors()) or driver.poll() is not None, PATIENCE_S, "a trial's record")
    assert driver.poll() is None, (tmp_path / "err").read_text()
    working, before = actors(), known()
    os.kill(driver.pid, signal.SIGKILL)
    wait_for(lambda: not working & actors(), 60.0, "the end of the actors")
    assert 0 < len(before) < 3
    resumed = command(tmp_path, "resume", "run", MARK=str(tmp_path))
    wait_for(lambda: resumed.poll() is not None, PATIENCE_S, "the run's end")
    assert resumed.returncode == 0, (tmp_path / "err").read_text()
    result = RunResult(str(run))
    assert sorted(record.trial for record in result.trial_records) == [0, 1, 2]
    assert {record.state for record in result.trial_records} == {"finished"}
    assert sorted(record.config["max_depth"] for record in result.trial_records) == [2, 3, 4]
    assert before.items() <= known().items()
    assert duplicates(result) == []
    assert actors() == set()
    assert list(result.leaderboard()["status"]) == ["ok"]


def _environment(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""
