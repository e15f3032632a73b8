"""The pages of a team: its runs, and the login."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from tuning.service.states import ENDED, RunState
from tuning.service.web.auth import COOKIE, Asking, ServiceOf
from tuning.service.web.pages.rendering import Render
from tuning.service.web.routes.runs import TeamRun
from tuning.service.web.run_messages import cursor_of, progress_of, read_cursor

router = APIRouter(include_in_schema=False)
RUNS = 50  # of a page


@router.get("/login")
async def login_page(request: Request, service: ServiceOf, render: Render) -> Response:
    """Asks for a token; who has logged in goes on to the runs."""
    session = request.cookies.get(COOKIE)
    if session:
        now = service.clock()
        holder = await run_in_threadpool(service.sessions.holder, session, now)
        if holder is not None and holder.valid(now):
            return RedirectResponse("/", 303)
    return render("login.html")


@router.get("/")
def runs_page(
    service: ServiceOf,
    holder: Asking,
    render: Render,
    state: Annotated[RunState | None, Query()] = None,
    name: Annotated[str, Query(max_length=255)] = "",
    cursor: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """The team's runs, the newest first."""
    found = service.runs.page(
        holder.team,
        states=[] if state is None else [state],
        name=name or None,
        before=None if cursor is None else read_cursor(cursor),
        limit=RUNS + 1,
    )
    shown, places = found[:RUNS], service.places()
    asked = {"state": state or "", "name": name, "cursor": cursor_of(shown[-1]) if len(found) > RUNS else ""}
    return render(
        "runs.html",
        runs=[
            {
                **{key: getattr(run, key) for key in ("id", "name", "state", "reason", "submitted")},
                "place": places.get(run.id),
                "progress": progress_of(run) if run.state not in ENDED and run.started is not None else None,
            }
            for run in shown
        ],
        states=list(RunState),
        state=state,
        name=name,
        live=any(run.state not in ENDED for run in shown),
        older=f"/?{urlencode({key: value for key, value in asked.items() if value})}" if asked["cursor"] else "",
    )


@router.post("/runs/{run}/stop")
def stop(found: TeamRun, service: ServiceOf) -> Response:
    """End a run so that it can be resumed."""
    service.requests.stop(found.id, found.team, service.clock())
    return _back(found.id, service)


@router.post("/runs/{run}/cancel")
def cancel(found: TeamRun, service: ServiceOf) -> Response:
    """End a run for good."""
    service.requests.cancel(found.id, found.team, service.clock())
    return _back(found.id, service)


def _back(run: str, service: ServiceOf) -> Response:
    service.wake()
    return RedirectResponse(f"/runs/{run}", 303)
