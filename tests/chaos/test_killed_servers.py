"""A server is killed again and again while clients submit, and stop, runs: nothing is lost and nothing runs twice."""

from __future__ import annotations

import random
import signal
import statistics
import threading
import time
from pathlib import Path

import pytest
from builders import write_customers
from chaos import wait_for
from real_server import RealServer
from supervised import gone

from tuning.errors import UnavailableError
from tuning.runs.results import RunResult
from tuning.service.states import ENDED, RunState

pytestmark = pytest.mark.slow

CLIENTS, RUNS_OF_EACH, KILLS, STOPS = 20, 10, 20, 100


@pytest.mark.timeout(3600)
def test_twenty_kills_of_the_server_while_twenty_clients_submit(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    server = RealServer(tmp_path, slots=4)
    seed = random.randrange(2**32)
    print("seed", seed)
    rng, accepted, lock = random.Random(seed), list[str](), threading.Lock()

    def client(number: int) -> None:
        for _ in range(RUNS_OF_EACH):
            try:
                run = server.submit(trials=2, report=False)
            except UnavailableError:
                continue
            with lock:
                accepted.append(run)
            time.sleep(number / CLIENTS)

    clients = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    for _ in range(KILLS):
        time.sleep(rng.uniform(0, 4))
        server.process.end(signal.SIGKILL)
        server.process.start()
    for thread in clients:
        thread.join()
    assert len(accepted) == CLIENTS * RUNS_OF_EACH
    wait_for(lambda: server.runs.counts()[RunState.FINISHED] == len(accepted), 3000, "the end of all runs")
    for run in accepted:
        assert [event.state for event in server.runs.events(run)] == ["queued", "running", "finished"]
        assert server.owners(run) == 1
        assert RunResult(server.runs.get(run).run_directory).summary()["succeeded"] == 1
    assert {file.name for file in (tmp_path / "runs" / "churn").iterdir()} == set(accepted)
    server.process.end()
    server.database.close()


@pytest.mark.timeout(3600)
def test_a_hundred_stops_at_random_moments(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    server = RealServer(tmp_path, slots=2)
    seed = random.randrange(2**32)
    print("seed", seed)
    rng, took = random.Random(seed), list[float]()
    for _ in range(STOPS):
        run = server.submit(trials=20_000)
        time.sleep(rng.uniform(0, 8))
        before, driver, began = server.done_trials(run), server.driver(run), time.monotonic()
        rng.choice([server.requests.stop, server.requests.cancel])(run, "churn", time.time())
        wait_for(lambda run=run: server.runs.get(run).state in ENDED, 80, f"the end of run {run}")
        took.append(time.monotonic() - began)
        assert not driver or gone(driver)
        if before:
            assert len(RunResult(server.runs.get(run).run_directory).trial_records) >= before
    print(f"stops: median {statistics.median(took):.1f} s, longest {max(took):.1f} s")
    assert max(took) <= 75
    assert statistics.median(took) <= 10
    assert server.process.end() == 0
    server.database.close()
