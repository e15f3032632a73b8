"""What one team or stranger does wrong, on purpose or not, keeps a real server from nothing that others want."""

from __future__ import annotations

import contextlib
import shutil
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from chaos import wait_for
from served_folder import ServedFolder
from sqlalchemy import update

from tuning.errors import DefinitionError
from tuning.service.client import TuningClient
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission
from tuning.service.database.tables import SCHEDULES
from tuning.service.schedules import Schedules
from tuning.service.states import RunState

DESCRIPTORS, IDLE = 120, 300


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedFolder]:
    made = ServedFolder(tmp_path_factory.mktemp("misuse"), "--mlflow", "none", customers=2)
    yield made
    assert made.end() == 0


@pytest.fixture
def client(served: ServedFolder) -> Iterator[TuningClient]:
    with served.client() as made:
        yield made


def test_a_schedule_in_a_zone_that_is_not_there_keeps_no_run_from_its_beginning(
    served: ServedFolder, client: TuningClient
) -> None:
    for cron, zone in (("0 3 * * 1", "posix/Europe/Berlin"), ("0 0 3 * * 1", "Europe/Berlin")):
        with pytest.raises(DefinitionError, match="schedule"):
            client.submit({"data": "data/*.csv", "target": "y", "schedule": {"cron": cron, "time_zone": zone}})
    database = Database(served.database)
    schedules = Schedules(database)
    made = schedules.add(Submission("other", "bad", {"data": "data/*.csv", "target": "y"}), "0 3 * * 1", "UTC", 0.0)
    with database.write() as connection:  # as another machine has taken it
        gone = {"time_zone": "Europe/Atlantis", "next": 1.0}
        connection.execute(update(SCHEDULES).where(SCHEDULES.c.id == made.id).values(gone))
    assert client.submit(served.definition).wait(240).state is RunState.FINISHED
    wait_for(lambda: schedules.get(made.id, "other").problem, 30, "the schedule's problem")
    assert "'Europe/Atlantis' is not a time zone" in (schedules.get(made.id, "other").problem or "")
    database.close()


def test_a_time_that_is_skipped_is_told_where_the_schedule_is_shown(served: ServedFolder, client: TuningClient) -> None:
    endless = {"data": str(served.folder / "data" / "*.csv"), "target": "y", "metric": "r2", "search_space": "ridge"}
    run = client.submit({**endless, "trials": 100_000, "name": "endless", "slots": 1, "schedule": "0 3 1 1 *"})
    (made,) = [each for each in client.schedules() if each["name"] == "endless"]
    database = Database(served.database)
    with database.write() as connection:
        connection.execute(update(SCHEDULES).where(SCHEDULES.c.id == made["id"]).values(next=time.time()))
    team = Runs(database).get(run.id).team
    wait_for(lambda: Schedules(database).get(made["id"], team).problem, 60, "the schedule's problem")
    (shown,) = [each["problem"] for each in client.schedules() if each["id"] == made["id"]]
    assert shown.startswith(f"run {run.id} of this schedule was not over at ")
    assert shown in served.command("schedule", "list", "--server", served.url).stdout
    client.end_schedule(made["id"])
    client.cancel(run.id).wait(120)
    database.close()


def test_a_resume_with_fewer_trials_is_refused_and_changes_nothing(served: ServedFolder, client: TuningClient) -> None:
    run = client.submit(served.definition, name="fewer").wait(240)
    with pytest.raises(DefinitionError, match="trials: 2 there, 1 here; they can only become more"):
        client.resume(run.id, trials=1)
    after = client.run(run.id)
    assert (after.state, after.to_dict()["definition"]) == (RunState.FINISHED, run.to_dict()["definition"])
    assert client.resume(run.id).wait(240).state is RunState.FINISHED
    more = client.resume(run.id, trials=3).wait(240)
    assert (more.state, more.progress and more.progress["done_trials"]) == (RunState.FINISHED, 6)


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[ServedFolder]:
    """A server of few descriptors."""
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit, which lowers the limit of descriptors")
    made = ServedFolder(tmp_path, "--mlflow", "none", customers=1, descriptors=DESCRIPTORS)
    yield made
    assert made.end() == 0


def test_more_idle_connections_than_descriptors_keep_nobody_out_and_fill_no_log(narrow: ServedFolder) -> None:
    with contextlib.ExitStack() as idle, httpx.Client(base_url=narrow.url, timeout=30) as web:
        for _ in range(IDLE):
            idle.enter_context(socket.create_connection(("127.0.0.1", narrow.port), 30))
        began = time.monotonic()
        for _ in range(10):
            assert web.get("/healthz", headers={"Connection": "close"}).status_code == 200
        with narrow.client() as client:
            assert client.submit(narrow.definition).wait(240).state is RunState.FINISHED
        assert (narrow.folder / "served.txt").stat().st_size < 100_000
        assert "Traceback" not in (narrow.folder / "served.txt").read_text()
        assert time.monotonic() - began < 240
