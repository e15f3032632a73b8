"""What tests ask of an application of the service, in their own process."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from sqlalchemy import insert

from tuning.errors import RunError
from tuning.service.child import answer
from tuning.service.children import Children, result_of
from tuning.service.database.runs import Submission, new_id
from tuning.service.database.tables import EVENTS, PLANS, RUNS
from tuning.service.database.tokens import Role
from tuning.service.names import AS_THEY_ARE, Names
from tuning.service.service import Service
from tuning.service.states import ENDED, WORKING, RunState

ORIGIN = {"Origin": "http://testserver"}
BROWSER = {"Accept": "text/html"}


def no_child(*_: object, **__: object) -> None:
    """In place of `Children.run`, where what it would answer is no matter."""
    raise RunError("no process is started here")


_ONE_AT_A_TIME = threading.Lock()


def child_here(
    _: Children,
    function: str,
    values: Mapping[str, object],
    *,
    environment: Mapping[str, str],
    limits: object = None,
    folder: Path | None = None,
    names: Names = AS_THEY_ARE,
) -> Any:
    """In place of `Children.run`: the same function in this process, which has imported what it needs."""
    with _ONE_AT_A_TIME, contextlib.chdir(folder or "."), patch.dict(os.environ, environment):
        told = answer({"function": function, "values": values})
    return result_of(json.loads(json.dumps(told)), names)


def only_tables_here(children: Children, function: str, values: Mapping[str, object], **asked: Any) -> Any:
    """The same of the tables of pages alone; no process makes anything else."""
    if function != "tuning.service.views.write:write":
        no_child()
    return child_here(children, function, values, **asked)


def bearer(service: Service, team: str = "churn", role: Role = Role.ADMIN, name: str = "test") -> dict[str, str]:
    """The header of a new token."""
    return {"Authorization": f"Bearer {service.tokens.create(team, role, name, service.clock())}"}


def request_scope(method: str, path: str, headers: Mapping[str, str]) -> dict[str, object]:
    """What a server hands to an application with a request, whose body comes as a test wants it to."""
    return {
        "type": "http",
        "http_version": "1.1",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("testserver", 80),
        "client": ("c", 1),
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
    }


def routes_of(app: FastAPI) -> list[tuple[str, str]]:
    """Method and path of everything that an application answers."""
    return sorted(
        (method, str(route.path)) for route in iter_route_contexts(app.routes) for method in route.methods or ()
    )


def submitted(service: Service, team: str = "churn", name: str = "week") -> str:
    """The id of a run that waits in the queue."""
    submission = Submission(team, name, {"data": f"{service.settings.data[0]}/a.csv", "target": "y"})
    return service.requests.submit(submission, service.clock()).id


def planned(service: Service, team: str = "churn", **values: object) -> str:
    """The id of a plan whose child process has ended; refused, unless `values` of its row say otherwise."""
    row = {"id": new_id(), "team": team, "state": "refused", "definition": {}, "problem": "no data", "at": 1.0}
    with service.database.write() as connection:
        connection.execute(insert(PLANS).values({**row, **values}))
    return str(row["id"])


def scheduled(service: Service, team: str = "churn") -> str:
    """The id of a schedule."""
    return service.schedules.add(Submission(team, "week", {}), "0 3 * * 1", "UTC", service.clock()).id


def run_in(service: Service, state: RunState, team: str = "churn") -> str:
    """The id of a run that is in a state, without what led to it."""
    at, working = service.clock(), state in WORKING
    row = {"id": new_id(), "team": team, "name": "week", "state": state, "submitted": at, "queued": at}
    times = {"started": at if working else None, "ended": at if state in ENDED else None, "slots": int(working)}
    asked = {"definition": {"data": f"{service.settings.data[0]}/a.csv", "target": "y"}}
    directory = f"{service.settings.storage}/{team}/{row['id']}"
    with service.database.write() as connection:
        connection.execute(insert(RUNS).values({**row, **times, **asked, "run_directory": directory}))
        connection.execute(insert(EVENTS).values(run=row["id"], at=at, state=state, reason=""))
    return str(row["id"])


def finished(service: Service, run_directory: str, team: str = "churn") -> str:
    """The id of a run that has ended, with the records of another in a directory."""
    run = submitted(service, team)
    service.runs.note(run, run_directory=run_directory)
    service.runs.change(run, RunState.RUNNING, 2.0, slots=1)
    service.runs.change(run, RunState.FINISHED, 3.0)
    return run
