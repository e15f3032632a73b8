"""What becomes of real drivers whose disk, run directory or MLflow goes away: a sentence, and nothing is lost."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from builders import write_customers
from chaos import wait_for
from real_server import RealServer

from tuning.runs.results import RunResult
from tuning.service.states import RunState

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    folder = tmp_path_factory.mktemp("bad-luck")
    write_customers(folder / "data", 2)
    made = RealServer(folder)
    yield made
    made.process.end(signal.SIGKILL)
    made.database.close()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 60 KiB."""
    mount = ["mount", "-t", "tmpfs", "-o", "size=60k", "none", str(tmp_path)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


@pytest.mark.timeout(600)
def test_a_full_disk_of_the_runs_is_a_reason_and_the_run_goes_on_once_there_is_room(
    server: RealServer, disk: Path
) -> None:
    run = server.submit(str(disk))
    wait_for(lambda: server.runs.get(run).attempts == 1, 240, "the driver's end")
    failed = server.runs.get(run)
    assert failed.state is RunState.QUEUED
    assert "No space left on device" in failed.reason
    assert failed.reason.endswith("tried again in 10 s (try 1 of 3)")
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
    server.runs.note(run, not_before=0.0)
    assert server.ended(run).reason == "2 of 2 customers have a model"
    assert len(RunResult(failed.run_directory).trial_records) == 8


@pytest.mark.timeout(600)
def test_a_run_directory_that_is_deleted_is_a_reason_and_a_resume_searches_anew(server: RealServer) -> None:
    run = server.submit(trials=2000)
    wait_for(lambda: server.done_trials(run) > 0, 240, "the first trial")
    shutil.rmtree(server.runs.get(run).run_directory)
    failed = server.ended(run)
    assert failed.state is RunState.FAILED
    assert failed.reason.startswith(f"run {run} has been deleted while the run went on")
    server.requests.resume(run, "churn", time.time(), trials=4)
    assert server.ended(run).reason == "2 of 2 customers have a model"
    assert len(RunResult(failed.run_directory).trial_records) == 8


@pytest.fixture
def without_mlflow(tmp_path: Path) -> Iterator[RealServer]:
    """A server whose MLflow does not answer."""
    write_customers(tmp_path / "data", 2)
    made = RealServer(tmp_path, mlflow="http://127.0.0.1:9")
    yield made
    made.process.end(signal.SIGKILL)
    made.database.close()


@pytest.mark.timeout(600)
def test_without_mlflow_a_run_is_finished_and_says_what_is_not_there(without_mlflow: RealServer) -> None:
    ended = without_mlflow.ended(without_mlflow.submit(mlflow={"experiment": "churn/week"}))
    assert ended.state is RunState.FINISHED
    assert ended.reason.startswith("2 of 2 customers have a model; the copy in MLflow is incomplete: ")
    assert ended.reason.endswith(" missing. Resume the run once MLflow answers")
    assert len(RunResult(ended.run_directory).trial_records) == 8
