"""One server on a database: a second one is refused, and a dead one is followed."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from dataclasses import asdict

import pytest
from chaos import wait_for
from sqlalchemy import insert, update

from tuning.errors import UnavailableError
from tuning.records.ownership import Owner
from tuning.service.database.connection import Database
from tuning.service.database.tables import SERVERS
from tuning.service.single_server import DEAD_S, SingleServer


class Ticks:
    """A clock that goes forward while somebody sleeps. meanwhile: called with each second."""

    def __init__(self, meanwhile=lambda: None) -> None:
        self.now, self.meanwhile = 0.0, meanwhile

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.meanwhile()

    def server(self, database: Database, lost=lambda: None) -> SingleServer:
        return SingleServer(database, lost, clock=lambda: self.now, sleep=self.sleep)


ELSEWHERE = Owner("far", 7, "another boot", 1)


def put(database: Database, owner: Owner, beat: int = 5) -> None:
    with database.write() as connection:
        connection.execute(insert(SERVERS).values(id=1, owner=asdict(owner), beat=beat))


def test_a_second_server_is_refused_at_once_and_the_process_named(database: Database) -> None:
    first, ticks = SingleServer(database, lambda: None), Ticks()
    second = ticks.server(database)
    first.take()
    try:
        with pytest.raises(UnavailableError, match=r"another server works on .*: process \d+ on "):
            second.take()
        assert ticks.now == 0
        first.release()
        second.take()
    finally:
        first.release()
        second.release()


@pytest.mark.long
def test_a_killed_one_is_followed_at_once_on_its_machine(database: Database) -> None:
    code = (
        "import sys, time; from tuning.service.database.connection import Database; "
        "from tuning.service.single_server import SingleServer; "
        "SingleServer(Database(sys.argv[1]), lambda: None).take(); print('ready', flush=True); time.sleep(600)"
    )
    url = database.url.render_as_string()
    first = subprocess.Popen([sys.executable, "-c", code, url], stdout=subprocess.PIPE)
    assert first.stdout is not None
    assert first.stdout.readline() == b"ready\n"
    ticks = Ticks()
    with pytest.raises(UnavailableError, match=f"process {first.pid} on "):
        ticks.server(database).take()
    first.send_signal(signal.SIGKILL)  # and nobody has asked for its code yet
    wait_for(lambda: Owner(**asdict(_owner_in(database))).is_dead)
    second = ticks.server(database)
    second.take()
    assert ticks.now == 0
    second.release()
    first.wait()
    first.stdout.close()


def _owner_in(database: Database) -> Owner:
    with database.read() as connection:
        return Owner(**connection.execute(SERVERS.select()).one().owner)


def test_one_on_another_machine_is_followed_when_its_beat_stands_still(database: Database) -> None:
    put(database, ELSEWHERE)
    ticks = Ticks()
    server = ticks.server(database)
    server.take()
    assert DEAD_S <= ticks.now <= 30
    assert server.beat()
    server.release()


def test_one_on_another_machine_that_beats_is_left_alone(database: Database) -> None:
    put(database, ELSEWHERE)

    def beat() -> None:
        with database.write() as connection:
            connection.execute(update(SERVERS).values(beat=SERVERS.c.beat + 1))

    with pytest.raises(UnavailableError, match="process 7 on far"):
        Ticks(beat).server(database).take()


def test_a_server_that_was_taken_for_dead_hears_of_it(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.service.single_server.BEAT_S", 0.01)
    lost = threading.Event()
    server = SingleServer(database, lost.set)
    server.take()
    with database.write() as connection:
        connection.execute(update(SERVERS).values(owner=asdict(ELSEWHERE)))
    wait_for(lost.is_set)
    server.release()
    assert _owner_in(database) == ELSEWHERE
