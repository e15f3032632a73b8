"""A database of the service with rows in every table, and steps to come, which may lose none of them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from tuning.service.database import schema, tables
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs
from tuning.service.database.tokens import Tokens, digest_of
from tuning.service.schedules import Schedules
from tuning.service.states import ENDED, WORKING, RunState

TOKEN = "a kept token"  # it opens nothing but these files
DEFINITION = {"data": "/data/shops-é.csv", "target": "y", "trials": 3}
RUN_IDS = {state: f"{number:024x}" for number, state in enumerate(RunState, 1)}
SCHEDULE, PLAN = "a" * 24, "b" * 24
#: A step that changes a column, for which SQLite makes the table anew; `events` refers to it.
STEP = """
import sqlalchemy as sa
from alembic import op
revision, down_revision, branch_labels, depends_on = "9000", {newest!r}, None, None

def upgrade():
    with op.batch_alter_table("runs") as table:
        table.alter_column("name", type_=sa.String(300), existing_type=sa.String(255), existing_nullable=False)
"""


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
        "servers": [{"id": 1, "owner": owner, "beat": 5}],
    }
    with database.write() as connection:
        for table in tables.METADATA.sorted_tables:
            for row in rows[table.name]:
                connection.execute(table.insert().values(row))


def check_that_a_step_keeps_all(database: Database, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fill an empty database and take a step: every value is there as before, and the service works on it."""
    schema.upgrade(database)
    fill(database)
    before = rows_of(database)
    assert all(before.values())
    migrations = shutil.copytree(schema.MIGRATIONS, folder / "migrations")
    (migrations / "versions" / "9000_a_longer_name.py").write_text(STEP.format(newest=schema.revisions()[0]))
    monkeypatch.setattr(schema, "MIGRATIONS", migrations)
    schema.upgrade(database)
    assert rows_of(database) == before
    runs = Runs(database)
    assert {state: runs.get(run).state for state, run in RUN_IDS.items()} == {state: state for state in RunState}
    assert [event.state for event in runs.events(RUN_IDS[RunState.FINISHED])] == ["queued", "finished"]
    assert runs.get(RUN_IDS[RunState.QUEUED]).definition == DEFINITION
    holder = Tokens(database).holder(TOKEN)
    assert holder is not None
    assert (holder.team, holder.name) == ("churn", "kept")
    assert Schedules(database).get(SCHEDULE, "churn").cron == "0 3 * * 1"
    told = runs.change(RUN_IDS[RunState.QUEUED], RunState.RUNNING, 2e9, slots=1)
    assert runs.events(told.id)[-1].id > max(int(str(row["id"])) for row in before["events"])
