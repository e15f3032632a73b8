"""The bulk writer on a real PostgreSQL server."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow_records import MINUTES, RUN, by_name, live_copy, open_run, study, trial, until, write_part, write_parts
from postgres_server import PostgresServer, missing

from tuning.records.schema import StepRecord
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copier import Copier
from tuning.tracking.mlflow_names import TrackedSearch
from tuning.tracking.settings import Selection
from tuning.tracking.stores import open_store
from tuning.tracking.stores.database import client, usable_uri
from tuning.tracking.stores.sql_store import BulkStore

REASON = missing()
pytestmark = [pytest.mark.skipif(REASON is not None, reason=str(REASON)), pytest.mark.timeout(3 * MINUTES)]
DRIVERS = [name for name in ("psycopg2", "psycopg") if importlib.util.find_spec(name)]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    result = PostgresServer()
    yield result
    result.remove()


@pytest.mark.parametrize("driver", DRIVERS)
def test_runs_read_back_as_they_were_recorded(driver: str, server: PostgresServer, tmp_path: Path) -> None:
    uri = server.uri(driver)
    directory = RunDirectory(str(tmp_path / "run"))
    config = {f"p{n}": n for n in range(120)} | {"text": "tab\tline\nüß\\N\0 %s %(x)s", "long": "x" * 9000}
    config |= {"quoted": 'a "b", c\r\n\\.\n', "empty": ""}
    steps = [StepRecord(1, math.nan), StepRecord(2, math.inf), *(StepRecord(n, 1 / n) for n in range(3, 1300))]
    parts = [
        write_part(directory, "t", trial("acme", 0, config=config, steps=steps), trial("acme", 1)),
        write_part(directory, "s", study("acme", 2, trial=0)),
    ]
    for _ in range(2):  # the second time nothing changes
        opened = open_store(uri, TrackedSearch(driver, RUN), str(tmp_path / "mlruns"))
        assert isinstance(opened, BulkStore)
        copier = Copier(directory, TrackedSearch(driver, RUN), Selection(None), lambda opened=opened: opened)
        for part in parts:
            copier.add(part)
        copier.work()
        assert copier.status.pending == 0
        assert copier.status.rejected == 0
    runs = by_name(uri, driver)
    assert sorted(runs) == ["acme", "acme/0000", "acme/0001"]
    run = runs["acme/0000"]
    assert run.data.params["text"].startswith("tab\tline\nüß\\N")
    assert run.data.params["text"].endswith(" %s %(x)s")
    assert len(run.data.params["long"]) == 6000
    assert len(run.data.params) == 125
    assert run.data.params["quoted"] == 'a "b", c\r\n\\.\n'
    assert run.data.params["empty"] == ""
    values = {v.step: v.value for v in client(uri).get_metric_history(run.info.run_id, "roc_auc")}
    assert len(values) == 1299
    assert math.isnan(values[1])
    assert values[2] == 1.7976931348623157e308
    assert values[7] == 1 / 7
    assert run.data.tags["tuning.best"] == "true"
    assert runs["acme"].data.metrics["test_score"] == 0.79


def test_a_run_that_another_writer_makes_at_the_same_moment_is_no_conflict(
    server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    part = write_part(directory, "t", trial("acme", 0), trial("acme", 1))
    for number in range(2):
        opened = open_store(server.uri(DRIVERS[0]), TrackedSearch("moment", RUN), str(tmp_path / "mlruns"))
        if number:  # looks before the other one has written, and writes after it
            monkeypatch.setattr(opened, "_known_runs", lambda *_: {})
        copier = Copier(directory, TrackedSearch("moment", RUN), Selection(None), lambda opened=opened: opened)
        copier.add(part)
        copier.work()
        assert (copier.status.pending, copier.status.rejected, copier.status.trials) == (0, 0, 2)
    runs = by_name(server.uri(DRIVERS[0]), "moment")
    assert sorted(runs) == ["acme", "acme/0000", "acme/0001"]
    assert [len(runs[name].data.params) for name in ("acme/0000", "acme/0001")] == [4, 4]


def test_a_server_that_goes_away_is_waited_for(server: PostgresServer, tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path / "run"))
    with open_run(directory):
        write_part(directory, "trials-c0000", *(trial("c0000", n) for n in range(3)))
        copy = live_copy(directory, server.uri(DRIVERS[0]), "away")
        until(lambda: copy.status.copied == 1)
        server.stop()
        try:
            write_parts(directory, studies=3, trials=3)
            until(lambda: not copy.status.healthy)
        finally:
            server.start()
        status = copy.close(MINUTES)
    assert (status.pending, status.error) == (0, None)
    assert len(by_name(server.uri(DRIVERS[0]), "away")) == 12


def test_a_driver_that_is_installed_is_taken() -> None:
    assert usable_uri("sqlite:///a.db") == "sqlite:///a.db"
    assert usable_uri("postgresql+psycopg2://h/d") == "postgresql+psycopg2://h/d"
    taken = usable_uri("postgresql://me:secret@h/d")
    assert taken.split("://")[1] == "me:secret@h/d"
    assert taken.split("://")[0] in ("postgresql", "postgresql+psycopg2")
