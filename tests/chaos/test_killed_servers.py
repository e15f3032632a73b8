"""A server is killed again and again while clients submit, and runs are stopped: nothing is lost, nothing runs twice.

CHAOS_SCALE, such as 0.1, makes fewer clients, kills and stops of them.
"""

from __future__ import annotations

import os
import random
import signal
import statistics
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from builders import write_customers
from chaos import seed_of, wait_for
from real_server import RealServer
from served_folder import ServedFolder
from supervised import gone

from tuning.errors import UnavailableError
from tuning.records.ownership import terms
from tuning.runs.results import RunResult
from tuning.service.client import TuningClient
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs
from tuning.service.states import ENDED, RunState
from tuning.service.supervisor.drivers import claim_folder, processes_in
from tuning.storage.run_directory import RunDirectory

pytestmark = pytest.mark.slow

SCALE = float(os.environ.get("CHAOS_SCALE", "1"))
CLIENTS, KILLS, STOPS = (max(2, round(SCALE * number)) for number in (20, 20, 100))
RUNS_OF_EACH = 10
MARK = "TUNING_TEST_MARK"  # a variable that everything inherits which a server starts, also the processes of Ray


def marked(mark: str) -> set[int]:
    """The processes that a server has started, and itself."""
    found = set()
    for file in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in file.read_bytes().split(b"\0"):
                found.add(int(file.parent.name))
        except OSError:
            continue
    return found


@pytest.fixture
def mark() -> Iterator[str]:
    """The mark of a test's processes, none of which outlives it."""
    made = uuid.uuid4().hex
    yield made
    for pid in marked(made):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.timeout(7200)
def test_twenty_kills_of_the_server_while_twenty_clients_submit(tmp_path: Path, mark: str) -> None:
    rng, accepted, lock = random.Random(seed_of("kills of the server")), list[str](), threading.Lock()
    served = ServedFolder(tmp_path, customers=1, slots=4, environment={MARK: mark})
    database = Database(served.database)
    runs = Runs(database)

    def submit_all(number: int) -> None:
        with served.client() as client:
            for _ in range(RUNS_OF_EACH):
                run = accepted_by(client)
                with lock:
                    accepted.append(run)
                time.sleep(number / CLIENTS)

    def accepted_by(client: TuningClient) -> str:
        key = uuid.uuid4().hex
        while True:
            try:
                return client.submit(served.definition, key=key, slots=1, report=False).id
            except UnavailableError:  # it was away for a minute, or as often as this client has asked
                continue

    clients = [threading.Thread(target=submit_all, args=(number,)) for number in range(CLIENTS)]
    for thread in clients:
        thread.start()
    found_again = 0
    for _ in range(KILLS):
        time.sleep(rng.uniform(0, 4))
        served.end(signal.SIGKILL)
        working = [run for run in runs.in_states([RunState.RUNNING]) if run.id in accepted]
        before = {run.id: processes_in(claim_folder(tmp_path / "service" / "work", run)) for run in working}
        served.start()
        found_again += sum(found is not None and not found["driver"].is_dead for found in before.values())
    for thread in clients:
        thread.join()
    assert len(accepted) == CLIENTS * RUNS_OF_EACH
    wait_for(lambda: runs.counts()[RunState.FINISHED] == len(accepted), 6000, "the end of all runs")
    assert {run.id for run in runs.page("default", limit=10_000)} == set(accepted)  # none was made that nobody knows of
    for id in accepted:
        run = runs.get(id)
        assert [event.state for event in runs.events(id)] == ["queued", "running", "finished"]
        assert len(list(terms(RunDirectory(run.run_directory)))) == 1  # one owner: none ran twice
        assert RunResult(run.run_directory).summary()["succeeded"] == 1
    assert {file.name for file in (tmp_path / "service" / "runs" / "default").iterdir()} == set(accepted)
    print(f"{len(accepted)} runs, {KILLS} kills; {found_again} times a driver that worked was found again")
    assert found_again
    assert served.end() == 0
    assert marked(mark) == set()
    database.close()


@pytest.mark.timeout(7200)
def test_a_hundred_stops_at_random_moments(tmp_path: Path, mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed_of("stops"))
    monkeypatch.setenv(MARK, mark)
    write_customers(tmp_path / "data", 2)
    server = RealServer(tmp_path, slots=2)
    took, recorded, submitted = list[float](), 0, time.monotonic()
    first = server.submit(trials=20_000, placement="packed")
    wait_for(lambda: server.done_trials(first) > 0, 240, "the first trial")
    until_a_trial = time.monotonic() - submitted
    server.requests.cancel(first, "churn", time.time())
    server.ended(first)
    for _ in range(STOPS):
        run = server.submit(trials=20_000, placement=rng.choice(["auto", "packed"]))  # packed: on Ray from the start
        time.sleep(rng.uniform(0, 2 * until_a_trial))
        before, driver, began = server.done_trials(run), server.driver(run), time.monotonic()
        rng.choice([server.requests.stop, server.requests.cancel])(run, "churn", time.time())
        wait_for(lambda run=run: server.runs.get(run).state in ENDED, 80, f"the end of run {run}")
        took.append(time.monotonic() - began)
        assert not driver or gone(driver)
        assert marked(mark) == {server.process.pid}
        if before:
            recorded += 1
            assert len(RunResult(server.runs.get(run).run_directory).trial_records) >= before
    took.sort()
    print(f"{STOPS} stops, {recorded} of runs with trials; the first trial took {until_a_trial:.1f} s")
    print(f"median {statistics.median(took):.1f} s, longest {took[-1]:.1f} s")
    assert recorded
    assert took[-1] <= 75
    assert statistics.median(took) <= 10
    assert server.process.end() == 0
    server.database.close()
