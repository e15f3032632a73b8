"""The pages of a team: its runs and its schedules; and what the forms of a run and of a schedule change."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Form
from starlette.responses import RedirectResponse, Response

from tuning.service.states import ENDED, RunState
from tuning.service.web.auth import ServiceOf
from tuning.service.web.messages import ResumeMessage, RunMessage, RunPage, SchedulePage
from tuning.service.web.pages.rendering import Render
from tuning.service.web.routes import runs, schedules

router = APIRouter(include_in_schema=False)


@router.get("/")
def runs_page(page: Annotated[RunPage, Depends(runs.list_runs)], render: Render) -> Response:
    """Show the team's runs, the newest first."""
    live = any(run.state not in ENDED for run in page.runs)
    older = f"/?{urlencode({**render.asked, 'cursor': page.next})}" if page.next else ""
    return render("runs.html", runs=page.runs, states=list(RunState), live=live, older=older)


@router.get("/schedules")
def schedules_page(page: Annotated[SchedulePage, Depends(schedules.list_schedules)], render: Render) -> Response:
    """Show the team's schedules, by name."""
    return render("schedules.html", schedules=page.schedules)


@router.post("/schedules/{schedule}/end", dependencies=[Depends(schedules.delete_schedule)])
def end_schedule() -> Response:
    """Submit no more; the runs that there are stay."""
    return RedirectResponse("/schedules", 303)


@router.post("/runs/{run}/stop")
def stop(run: Annotated[RunMessage, Depends(runs.stop)]) -> Response:
    """End a run so that it can be resumed."""
    return RedirectResponse(f"/runs/{run.id}", 303)


@router.post("/runs/{run}/cancel")
def cancel(run: Annotated[RunMessage, Depends(runs.cancel)]) -> Response:
    """End a run for good."""
    return RedirectResponse(f"/runs/{run.id}", 303)


@router.post("/runs/{run}/resume")
def resume(found: runs.TeamRun, service: ServiceOf, changes: Annotated[ResumeMessage, Form()]) -> Response:
    """Queue a run again; an empty field leaves things as they were."""
    return RedirectResponse(f"/runs/{runs.resume(service, found, changes).id}", 303)


@router.post("/runs/{run}/delete", dependencies=[Depends(runs.delete_run)])
def delete_run() -> Response:
    """Delete a run that has ended, with everything that it has recorded."""
    return RedirectResponse("/", 303)
