"""What one team or stranger does wrong, on purpose or not, keeps a real server from nothing that others want."""

from __future__ import annotations

import contextlib
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from commands import tuning
from served_folder import ServedFolder
from sqlalchemy import update

from tuning.errors import DefinitionError
from tuning.service.database.connection import Database
from tuning.service.database.runs import Submission
from tuning.service.database.tables import SCHEDULES
from tuning.service.schedules import Schedules
from tuning.service.serve import FIRST_TEAM
from tuning.service.states import RunState

DESCRIPTORS, IDLE = 120, 300


@pytest.fixture
def narrow(tmp_path: Path) -> Iterator[ServedFolder]:
    """A server of few descriptors."""
    if shutil.which("prlimit") is None:
        pytest.skip("no prlimit, which lowers the limit of descriptors")
    made = ServedFolder(tmp_path, "--mlflow", "none", customers=1, descriptors=DESCRIPTORS)
    yield made
    assert made.end() == 0


def test_idle_connections_and_a_schedule_that_cannot_be_used_keep_no_run_from_its_end(
    narrow: ServedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More connections than the server has descriptors; a schedule in a zone that this machine does not know."""
    database = Database(narrow.database)
    made = Schedules(database).add(Submission(FIRST_TEAM, "bad", {"target": "y"}), "0 3 * * 1", "UTC", 0.0)
    with database.write() as connection:  # as another machine has taken it
        gone = {"time_zone": "Europe/Atlantis", "next": 1.0}
        connection.execute(update(SCHEDULES).where(SCHEDULES.c.id == made.id).values(gone))
    database.close()
    with contextlib.ExitStack() as idle, httpx.Client(base_url=narrow.url, timeout=30) as web:
        for _ in range(IDLE):
            idle.enter_context(socket.create_connection(("127.0.0.1", narrow.port), 30))
        for _ in range(10):
            assert web.get("/healthz", headers={"Connection": "close"}).status_code == 200
        with narrow.client() as client:
            zone = {"cron": "0 3 * * 1", "time_zone": "posix/Europe/Berlin"}
            with pytest.raises(DefinitionError, match="schedule"):
                client.submit(narrow.definition, schedule=zone)
            assert client.submit(narrow.definition).wait(240).state is RunState.FINISHED
            (listed,) = client.schedules()
    assert "'Europe/Atlantis' is not a time zone" in listed["problem"]
    monkeypatch.setenv("TUNING_CONFIG", narrow.environment["TUNING_CONFIG"])
    assert listed["problem"] in tuning("schedule", "list", "--server", narrow.url).stdout
    said = (narrow.folder / "served.txt").read_text()
    assert len(said) < 100_000
    assert "Traceback" not in said
