"""What becomes of real drivers whose disk, run directory or MLflow goes away: a sentence, and nothing is lost."""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import yaml
from builders import write_customers
from chaos import wait_for
from real_server import RealServer
from served_folder import ServedFolder

from tuning.runs.results import RunResult
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs
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
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A file system of the size that the test names."""
    (place := tmp_path / "disk").mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={request.param}", "none", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("disk", ["60k"], indirect=True)
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


RUNS = 12


@pytest.mark.parametrize("disk", ["20m"], indirect=True)
@pytest.mark.timeout(900)
def test_a_disk_that_fills_while_twelve_runs_are_queued_holds_the_queue_and_costs_no_run(disk: Path) -> None:
    served = ServedFolder(disk.parent, "--storage", str(disk), "--mlflow", "none", customers=2)
    given = {**yaml.safe_load(served.definition.read_text()), "slots": 1}
    with served.client() as client, httpx.Client(base_url=served.url) as web:
        (token,) = json.loads((served.folder / "config" / "service-tokens.json").read_text()).values()
        web.headers["Authorization"] = f"Bearer {token}"
        runs = [client.submit({**given, "data": str(served.folder / "data" / "*.csv")}).id for _ in range(RUNS)]
        counts = Runs(Database(served.database)).counts
        wait_for(lambda: counts()[RunState.FINISHED], 240, "the first run's end")
        fill(disk)
        wait_for(lambda: not counts()[RunState.RUNNING] and web.get("/readyz").status_code == 503, 240, "the hold")
        queued = runs[-1]
        why = "The queue waits, as runs have failed alike: the disk of the runs is full."
        assert web.get("/readyz").json()["detail"].startswith(why)
        assert client.run(queued).reason.startswith(why)
        web.post("/login", data={"token": token}, headers={"Origin": served.url})
        assert why in web.get(f"/runs/{queued}", headers={"Accept": "text/html"}).text
        (disk / "ballast").unlink()
        wait_for(lambda: counts()[RunState.FINISHED] == RUNS, 600, "the end of all runs")
        assert web.get("/readyz").status_code == 200
        told = [client.run(run).to_dict() for run in runs]
    assert sum(run["attempts"] for run in told) <= 1
    assert {run["reason"] for run in told} == {"2 of 2 customers have a model"}
    assert served.end() == 0


def fill(disk: Path) -> None:
    """Leave no room on a file system."""
    with (disk / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        for size in (2**16, 2**12, 1):
            with contextlib.suppress(OSError):
                while True:
                    ballast.write(bytes(size))


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
    assert ended.reason.startswith("2 of 2 customers have a model; the copy in MLflow lacks ")
    assert ended.reason.endswith(": resume the run once MLflow answers")
    assert ended.outcome is not None
    assert ended.outcome["not_copied"]["record_parts"] > 0
    assert len(RunResult(ended.run_directory).trial_records) == 8
