"""Databases of the service as released versions have left them, with rows in every table.

    python tests/helpers/kept_databases.py

writes the two of the newest schema, `SCHEMA.db` of SQLite and `SCHEMA.sql` of PostgreSQL, into `tests/fixtures`. It is
run once for each schema, before a step that follows it is written; those of older ones stay as they are.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from paths import FIXTURES
from postgres_server import PostgresServer
from sqlalchemy import inspect, text

from tuning.service.database import schema, tables
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs
from tuning.service.database.sessions import Sessions
from tuning.service.database.tokens import Tokens, digest_of
from tuning.service.schedules import Schedules
from tuning.service.states import ENDED, WORKING, RunState

KEPT = FIXTURES / "service-databases"
TOKEN, COOKIE = "a kept token", "a kept cookie"  # they open nothing but these files
DEFINITION = {"data": "/data/shops-é.csv", "target": "y", "trials": 3}
RUN_IDS = {state: f"{number:024x}" for number, state in enumerate(RunState, 1)}
SCHEDULE, PLAN = "a" * 24, "b" * 24


def rows_of(database: Database) -> Mapping[str, list[dict[str, object]]]:
    """All rows of a database by table, whatever its schema, without the version of that."""
    with database.read() as connection:
        names = sorted(set(inspect(connection).get_table_names()) - {"alembic_version"})
        found = {name: connection.execute(text(f'SELECT * FROM "{name}"')).mappings().all() for name in names}
    return {name: sorted((dict(row) for row in rows), key=repr) for name, rows in found.items()}


def fill(database: Database) -> None:
    """At least one row in every table, and a run in every state."""
    runs, uses, events = [], [], []
    for number, (state, run) in enumerate(RUN_IDS.items()):
        team, at = ("churn", "credit")[number % 2], 1_700_000_000.25 + 100 * number
        begun = at + 10 if state in WORKING or state in ENDED else None
        ended = at + 20 if state in ENDED else None
        slots = 2 if state in WORKING else 0
        runs.append(
            {
                "id": run, "team": team, "name": "shops", "state": state, "reason": f"it is {state}",
                "definition": DEFINITION, "run_directory": f"runs/{team}/{run}", "priority": number,
                "slots_asked": 2 if number else None, "slots": slots, "submitted": at, "queued": at, "started": begun,
                "ended": ended, "outcome": {"customers": 3} if ended else None, "schedule": SCHEDULE,
                "stop_asked": at + 15 if state is RunState.STOPPING else None,
                "ending": "stopped" if state is RunState.STOPPING else None, "bytes": 5 * 2**30,
                "submitted_by": "kept" if number else None,
            }
        )  # fmt: skip
        events.append({"run": run, "at": at, "state": RunState.QUEUED, "reason": ""})
        if state is not RunState.QUEUED:
            events.append({"run": run, "at": at + 15, "state": state, "reason": f"it is {state}"})
        if begun is not None:
            uses.append({"run": run, "team": team, "slots": 2, "since": begun, "until": ended})
    again = {"id": SCHEDULE, "team": "churn", "name": "shops", "cron": "0 3 * * 1", "time_zone": "Europe/Berlin"}
    asked = {"id": PLAN, "team": "churn", "state": "planned", "definition": DEFINITION, "result": {"studies": 3}}
    owner = {"host": "elsewhere", "pid": 7, "machine": "an earlier boot", "started": 1}
    rows: Mapping[str, list[dict[str, object]]] = {
        "runs": runs,
        "events": events,
        "slot_uses": uses,
        "submissions": [
            {"team": "churn", "key": "once", "digest": "0" * 64, "made": RUN_IDS[RunState.QUEUED], "at": 1.5}
        ],
        "plans": [{**asked, "at": 1_700_000_000.5}],
        "schedules": [{**again, "definition": DEFINITION, "next": 1_700_000_400.0, "last": 1_699_999_000.0}],
        "tokens": [{"digest": digest_of(TOKEN), "team": "churn", "role": "admin", "name": "kept", "created": 1.5}],
        "sessions": [{"digest": digest_of(COOKIE), "token": digest_of(TOKEN), "expires": 9e9}],
        "servers": [{"id": 1, "owner": owner, "beat": 5}],
    }
    with database.write() as connection:
        for table in tables.METADATA.sorted_tables:
            for row in rows[table.name]:
                connection.execute(table.insert().values(row))


def upgrade_keeps_all(database: Database) -> None:
    """Bring a kept database to the newest schema: every value is there as before, and the service works on it."""
    before = rows_of(database)
    schema.upgrade(database)
    after = rows_of(database)
    assert all(before.values())
    for name, rows in before.items():
        assert [{column: row[column] for column in rows[0]} for row in after[name]] == rows, name
    runs = Runs(database)
    assert {state: runs.get(run).state for state, run in RUN_IDS.items()} == {state: state for state in RunState}
    assert [event.state for event in runs.events(RUN_IDS[RunState.FINISHED])] == ["queued", "finished"]
    assert runs.get(RUN_IDS[RunState.QUEUED]).definition == DEFINITION
    for holder in (Tokens(database).holder(TOKEN), Sessions(database).holder(COOKIE, 1e9)):
        assert holder is not None
        assert (holder.team, holder.name) == ("churn", "kept")
    assert Schedules(database).get(SCHEDULE, "churn").cron == "0 3 * * 1"
    told = runs.change(RUN_IDS[RunState.QUEUED], RunState.RUNNING, 2e9, slots=1)
    assert runs.events(told.id)[-1].id > max(int(str(row["id"])) for row in before["events"])


def main() -> None:
    newest = schema.revisions()[0]
    KEPT.mkdir(exist_ok=True)
    file = KEPT / f"{newest}.db"
    file.unlink(missing_ok=True)
    database = Database(f"sqlite:///{file}")
    schema.upgrade(database)
    fill(database)
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        raw = connection.connection.driver_connection
        for pragma in ("journal_mode=DELETE", "page_size=512"):
            raw.execute(f"PRAGMA {pragma}")
        raw.execute("VACUUM")
    database.close()
    server = PostgresServer()
    try:
        database = Database(server.uri("psycopg"))
        schema.upgrade(database)
        fill(database)
        database.close()
        (KEPT / f"{newest}.sql").write_text(_dumped(server))
    finally:
        server.remove()


def _dumped(server: PostgresServer) -> str:
    """What `pg_dump` says, as SQL that any client can send: without settings of one version, and without comments."""
    url = server.uri("psycopg").replace("+psycopg", "")
    plain = ("--inserts", "--no-owner", "--no-privileges", "--no-comments")
    said = subprocess.run(["pg_dump", *plain, url], capture_output=True, text=True, check=True).stdout
    lines = [line for line in said.splitlines() if not line.startswith(("--", "SET ", "SELECT pg_catalog.set_config"))]
    return "\n".join(line for line in lines if line and not line.startswith("\\")) + "\n"


if __name__ == "__main__":
    main()
