"""The page of a team: its runs."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Query
from starlette.responses import Response

from tuning.basics.wording import shorten
from tuning.service.states import ENDED, WORKING, RunState
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.messages import WITHOUT_NUL
from tuning.service.web.pages.rendering import Render
from tuning.service.web.run_messages import cursor_of, progress_of, read_cursor

router = APIRouter(include_in_schema=False)
RUNS = 50  # of a page
MOST_TEXT = 300  # characters of a reason


@router.get("/")
def runs_page(
    service: ServiceOf,
    holder: Asking,
    render: Render,
    state: Annotated[RunState | None, Query()] = None,
    name: Annotated[str, Query(max_length=255, pattern=WITHOUT_NUL)] = "",
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
                **{key: getattr(run, key) for key in ("id", "name", "state", "submitted")},
                "reason": shorten(service.remarked(run).reason, MOST_TEXT),
                "place": places.get(run.id),
                "progress": progress_of(run) if run.state in WORKING else None,
            }
            for run in shown
        ],
        states=list(RunState),
        state=state,
        name=name,
        live=any(run.state not in ENDED for run in shown),
        older=f"/?{urlencode({key: value for key, value in asked.items() if value})}" if asked["cursor"] else "",
    )
