"""What MLflow and `tuning mlflow sync` say of a run that has not come to its end."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from mlflow_records import runs_in

from tuning import TuneRunner
from tuning.cli.program import main
from tuning.driver.session import RunSession
from tuning.errors import RunError, RunInterrupted

SEARCH: dict[str, Any] = {
    "name": "demo",
    "search_space": {"x": {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5}},
    "algorithm": "random",
    "scheduler": "fifo",
    "metric": "loss",
    "mode": "min",
}
KILLED = """
import os, signal, sys
from test_mlflow_unfinished import SEARCH, at_call
from tuning import TuneRunner

kill = at_call(5, lambda: os.kill(os.getpid(), signal.SIGKILL))
TuneRunner(**SEARCH, objective=kill, trials=50, mlflow=False).run(sys.argv[1], progress=False, in_process=True)
"""


def at_call(number: int, action: Callable[[], object]) -> Callable[[Mapping[str, float]], float]:
    """An objective that does something when it is called for the n-th time."""
    calls = itertools.count(1)

    def objective(config: Mapping[str, float]) -> float:
        if next(calls) == number:
            action()
        return config["x"]

    return objective


def summary_of(run: Path, uri: str) -> Any:
    """The summary run, once `tuning mlflow sync` has completed the copy."""
    answer = CliRunner().invoke(main, ["mlflow", "sync", str(run), "--tracking-uri", uri])
    assert answer.exit_code == 0, answer.output
    (found,) = runs_in(uri, "demo", "tags.tuning.kind = 'summary'")
    return found


def search(run: Path, uri: str, **fields: Any) -> None:
    options = {"tracking_uri": uri, "record_trials": "none"}
    runner = TuneRunner(**{**SEARCH, "objective": at_call(0, int), "mlflow": options, **fields})
    runner.run(str(run), progress=False, in_process=True)


def test_the_summary_of_an_interrupted_run_is_killed(tmp_path: Path, mlflow_database: str) -> None:
    interrupt = at_call(5, lambda: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(RunInterrupted):
        search(tmp_path / "run", mlflow_database, objective=interrupt, trials=100_000)
    summary = summary_of(tmp_path / "run", mlflow_database)
    assert summary.info.status == "KILLED"
    assert f"1 study unfinished: `tuning resume {tmp_path}/run`" in summary.data.tags["mlflow.note.content"]


def test_the_summary_of_a_run_that_could_not_go_on_is_failed(
    tmp_path: Path, mlflow_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise RunError("workers keep crashing")

    monkeypatch.setattr(RunSession, "_work", fails)
    with pytest.raises(RunError, match="workers keep crashing"):
        search(tmp_path / "run", mlflow_database, trials=2)
    assert summary_of(tmp_path / "run", mlflow_database).info.status == "FAILED"


def test_following_a_run_whose_process_was_killed_does_not_call_it_complete(
    tmp_path: Path, mlflow_database: str
) -> None:
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    run = str(tmp_path / "run")
    killed = subprocess.run([sys.executable, "-c", KILLED, run], env=paths, capture_output=True, text=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    command = [sys.executable, "-m", "tuning.cli", "mlflow", "sync", run, "--follow", "--output", "json"]
    done = subprocess.run([*command, "--tracking-uri", mlflow_database], env=paths, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    assert f"tuning resume {run}" in done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["status"]["abandoned"], last["complete"]) == (True, False)
