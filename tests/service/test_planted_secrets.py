"""A token, a database's password and a storage's key are nowhere that anybody looks, whatever becomes of runs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import tuning
from postgres_server import PostgresServer
from served_folder import ServedFolder
from sqlalchemy import text

from tuning.errors import DefinitionError
from tuning.service.database.connection import Database
from tuning.service.states import RunState

PASSWORD, KEY = "planted-password-7c1e", "planted/key+9f2b"  # they open nothing


@pytest.fixture
def served(postgres: PostgresServer, tmp_path: Path) -> Iterator[ServedFolder]:
    url = postgres.uri("psycopg").replace("tuning@", f"tuning:{PASSWORD}@")
    planted = {"TUNING_DATABASE": url, "AWS_SECRET_ACCESS_KEY": KEY, "AWS_ACCESS_KEY_ID": "planted"}
    made = ServedFolder(tmp_path, customers=2, environment=planted)
    yield made
    made.end()


def command_lines() -> str:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(file.read_text(errors="replace"))
    return "\n".join(found)


def rows_of(database: str) -> str:
    """All that the service's tables hold."""
    opened = Database(database)
    with opened.read() as connection:
        names = connection.execute(text("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")).scalars().all()
        assert "events" in names
        rows = [str(connection.execute(text(f'SELECT * FROM "{name}"')).all()) for name in names]
    opened.close()
    return "\n".join(rows)


@pytest.mark.timeout(900)
def test_no_planted_secret_is_found_after_a_run_a_failure_and_a_stop(
    served: ServedFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: dict[str, str] = {}
    (token,) = json.loads((served.folder / "config" / "service-tokens.json").read_text()).values()
    with served.client() as client:
        first = client.submit(served.definition, slots=2, report=True)
        for event in first.events():
            seen[f"event {event.id or event.kind}"] = str(event.data)
            if event.kind == "progress" or event.data["state"] == "running":
                seen["command lines"] = seen.get("command lines", "") + command_lines()
        failed = client.submit(served.definition, name="wrong", target="nothing", slots=2)
        stopped = client.submit(served.definition, name="second", trials=5_000, slots=2)
        stopped.stop()
        ended = [run.wait(300) for run in (first, failed, stopped)]
        assert [run.state for run in ended] == [RunState.FINISHED, RunState.FAILED, RunState.STOPPED]
        with pytest.raises(DefinitionError) as refused:
            client.plan(served.definition, target="nothing")
        answers = [refused.value, *(run.to_dict() for run in ended), first.leaderboard().to_json()]
        seen["answers"] = "\n".join(map(str, answers))
    monkeypatch.setenv("TUNING_CONFIG", served.environment["TUNING_CONFIG"])
    listed = tuning("status", "--server", served.url)
    assert first.id in listed.stdout
    seen["commands"] = listed.stdout + listed.stderr
    seen["database"] = rows_of(served.environment["TUNING_DATABASE"])
    for file in served.folder.rglob("*"):
        if file.is_file() and served.folder / "config" not in file.parents:  # where its user's token is kept
            seen[str(file)] = file.read_bytes().decode("utf-8", "replace")
    assert "serve" in seen["command lines"]
    assert first.id in seen["command lines"]  # the driver's
    assert [name for name in seen if name.endswith("/log.txt")]
    for secret in (token, PASSWORD, KEY):
        assert [name for name, content in seen.items() if secret in content] == []
