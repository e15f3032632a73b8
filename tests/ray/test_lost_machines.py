"""A run on a cluster says which machines it has lost, and ends with a sentence when the head is one of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from chaos import environment, wait_for
from cluster_process import ClusterProcess

from tuning.runs.outcome_file import read_outcome
from tuning.runs.progress import read_progress
from tuning.storage.run_directory import RunDirectory

pytestmark = [pytest.mark.ray, pytest.mark.slow]

SLOW = "import time\n\ndef slow(config):\n    time.sleep(0.5)\n    return config['x']\n"


@pytest.fixture
def cluster() -> Iterator[ClusterProcess]:
    made = ClusterProcess()
    yield made
    made.kill()


def test_a_lost_machine_is_named_and_a_lost_head_ends_the_run_before_ray_does(
    cluster: ClusterProcess, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(SLOW)
    space = {"x": {"type": "float", "low": -1.0, "high": 1.0}}
    given = {"objective": "mine.py:slow", "search_space": space, "metric": "loss", "mode": "min", "trials": 10_000}
    (tmp_path / "d.yaml").write_text(yaml.safe_dump({**given, "mlflow": False, "report": False}))
    command = [sys.executable, "-m", "tuning.cli", "run", "d.yaml", "--run-dir", "run", "--output", "json"]
    with (tmp_path / "log").open("w") as log:
        driver = subprocess.Popen(
            [*command, "--progress", "none"],
            cwd=tmp_path,
            env=environment() | {"RAY_ADDRESS": cluster.address},
            stdout=subprocess.PIPE,
            stderr=log,
        )
    try:
        wait_for(
            lambda: (found := read_progress(tmp_path / "run")) is not None and found.done_trials > 0, 240, "trials"
        )
        cluster.say("remove")
        wait_for(lambda: "of the Ray cluster is gone" in (tmp_path / "log").read_text(), 120, "the word on the machine")
        cluster.kill_head()
        said, _ = driver.communicate()
    finally:
        driver.kill()
    assert driver.returncode == 1
    outcome = read_outcome(RunDirectory(tmp_path / "run"))
    assert outcome is not None
    assert (outcome["state"], outcome["code"], len(outcome["lost_nodes"])) == ("failed", "head_lost", 1)
    assert outcome["reason"].startswith(f"the head of the Ray cluster at {cluster.address} has ended")
    assert json.loads(said)["code"] == "head_lost"
