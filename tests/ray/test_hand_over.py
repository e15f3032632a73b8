"""A run that begins in forks goes on with Ray where it takes longer than was thought."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from chaos import duplicates, environment, truth

from tuning import RunResult, TuneRunner

DRIVER = """
import sys
import ray
from tuning import TuneRunner
from tuning.basics.timing import Timing

runner = TuneRunner.from_yaml(sys.argv[1])
runner.timing = Timing(parts_s=0.0, ray_start_s=0.1, first_trial_s=float('inf'))
runner.run(sys.argv[2], progress=False)
assert ray.is_initialized()
"""
OBJECTIVE = """
import threading
import ray

def loss(config, data):
    if config["x"] > 4 and not ray.is_initialized():
        threading.Event().wait()  # as if it took long
    return (config["x"] - data["y"].mean()) ** 2
"""


@pytest.mark.parametrize(("customers", "placement"), [pytest.param(1, "spread", marks=pytest.mark.slow), (2, "packed")])
def test_ray_goes_on_where_the_forks_stop(tmp_path: Path, customers: int, placement: str) -> None:
    (tmp_path / "mine.py").write_text(OBJECTIVE)
    for number in range(customers):
        (tmp_path / f"c{number}.csv").write_text(f"y\n{number}\n")
    # The suggestions of random search are the same in whatever order trials end.
    fields = {"data": "c*.csv", "objective": "mine.py:loss", "metric": "loss", "mode": "min", "mlflow": False}
    fields |= {"search_space": {"x": {"type": "float", "low": -5.0, "high": 5.0, "default": 0.0}}, "slots": 2}
    fields |= {"algorithm": "random", "scheduler": "fifo", "trials": 30}
    (tmp_path / "d.yaml").write_text(yaml.safe_dump(fields))
    runner = TuneRunner.from_yaml(
        tmp_path / "d.yaml", objective=lambda config, data: (config["x"] - data["y"].mean()) ** 2
    )
    assert runner.plan().placement == placement
    command = [sys.executable, "-c", DRIVER, "d.yaml", "run"]
    ended = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    result = RunResult(str(tmp_path / "run"))
    here = runner.run(str(tmp_path / "here"), progress=False, in_process=True)
    found, wanted = truth(result)["studies"], truth(here)["studies"]
    assert (found, duplicates(result)) == (wanted, [])
    assert len({record.worker for record in result.trial_records}) > customers  # forks, and Ray's workers
