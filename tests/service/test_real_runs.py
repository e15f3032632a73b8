"""Runs of the service that really search: `tuning run` outlives the server, is stopped in order, and resumed."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import gettempdir

import pytest
from builders import write_customers
from chaos import wait_for
from real_server import RealServer
from supervised import gone

from tuning.runs.results import RunResult
from tuning.service.states import RunState


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    folder = tmp_path_factory.mktemp("real-runs")
    write_customers(folder / "data", 2)
    made = RealServer(folder)
    yield made
    made.process.end(signal.SIGKILL)
    made.database.close()


def folders(server: RealServer) -> set[str]:
    return {file.name for file in (server.folder / "runs" / "churn").glob("*")}


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_a_killed_server_loses_no_run_and_none_runs_twice(server: RealServer) -> None:
    before = folders(server)
    runs = [server.submit() for _ in range(3)]  # two run at once
    wait_for(lambda: any(server.driver(run) for run in runs), 240)
    server.process.end(signal.SIGKILL)
    working = [run for run in runs if (pid := server.driver(run)) and not gone(pid)]
    assert working
    server.process.start()
    wait_for(lambda: any(server.runs.get(run).state is RunState.FINISHED for run in runs), 240)
    server.process.end(signal.SIGKILL)
    server.process.start()
    for run in runs:
        assert server.ended(run).state is RunState.FINISHED
        assert server.runs.get(run).reason == "2 of 2 customers have a model"
        assert server.owners(run) == 1
        assert [event.state for event in server.runs.events(run)] == ["queued", "running", "finished"]
    assert folders(server) - before == set(runs)


@pytest.mark.timeout(900)
def test_a_run_is_stopped_with_all_that_it_has_recorded_then_resumed_and_cancelled(server: RealServer) -> None:
    run = server.submit(trials=20_000)
    wait_for(lambda: server.done_trials(run) > 0, 240, "the first trial")
    driver, before = server.driver(run), server.done_trials(run)
    server.requests.stop(run, "churn", time.time())
    stopped = server.ended(run)
    assert stopped.state is RunState.STOPPED
    assert gone(driver)
    recorded = len(RunResult(stopped.run_directory).trial_records)
    assert recorded >= before
    server.requests.resume(run, "churn", time.time(), trials=30_000)
    wait_for(lambda: server.owners(run) == 2 and server.done_trials(run) > recorded, 240, "a resumed run's first trial")
    server.requests.cancel(run, "churn", time.time())
    assert server.ended(run).state is RunState.CANCELLED
    assert len(RunResult(stopped.run_directory).trial_records) > recorded


@pytest.mark.timeout(900)
@pytest.mark.slow  # a cluster of its own; unit/service/test_supervisor.py has the folder, with a script as driver
def test_ray_leaves_nothing_below_the_temporary_folder(server: RealServer) -> None:
    shared = Path(gettempdir()) / "ray"
    run = server.submit(placement="spread", trials=20_000)
    own = Path(gettempdir()) / f"tuning-{run[:12]}"
    wait_for(lambda: server.done_trials(run) > 0, 240, "the first trial")
    assert own.stat().st_mode & 0o777 == 0o700
    (session,) = (own / "ray").glob("session_2*")
    assert not (shared / session.name).exists()
    server.requests.cancel(run, "churn", time.time())
    assert server.ended(run).state is RunState.CANCELLED
    assert not own.exists()
