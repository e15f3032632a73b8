"""Submitted runs: list, look at, submit, stop, cancel, resume, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime

from tuning.service.database.runs import SubmittedRun
from tuning.service.states import RunState
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.messages import RunMessage, RunPage
from tuning.service.web.run_messages import cursor_of, read_cursor, run_message, team_run

router = APIRouter(tags=["runs"])
MOST_RUNS = 200  # of a page
TeamRun = Annotated[SubmittedRun, Depends(team_run)]


@router.get("/api/v1/runs")
def list_runs(
    service: ServiceOf,
    holder: Asking,
    state: Annotated[list[RunState], Query(description="Only runs in one of these states.", max_length=10)] = [],  # noqa: B006 - FastAPI copies it
    name: Annotated[str | None, Query(description="Only runs of this name.", max_length=255)] = None,
    since: Annotated[AwareDatetime | None, Query(description="Submitted then or later.")] = None,
    until: Annotated[AwareDatetime | None, Query(description="Submitted before.")] = None,
    cursor: Annotated[str | None, Query(description="`next` of the page before.", max_length=200)] = None,
    limit: Annotated[int, Query(description="Runs of a page.", ge=1, le=MOST_RUNS)] = 50,
) -> RunPage:
    """The team's runs, the newest first."""
    found = service.runs.page(
        holder.team,
        states=state,
        name=name,
        since=None if since is None else since.timestamp(),
        until=None if until is None else until.timestamp(),
        before=None if cursor is None else read_cursor(cursor),
        limit=limit + 1,
    )
    further = cursor_of(found[limit - 1]) if len(found) > limit else None
    return RunPage(runs=[run_message(run) for run in found[:limit]], next=further)


@router.get("/api/v1/runs/{run}")
def show_run(found: TeamRun) -> RunMessage:
    """One run: state, reason, place in the queue, progress, definition, and where to look further."""
    return run_message(found, whole=True)
