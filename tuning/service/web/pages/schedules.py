"""The page of what a team submits again and again."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import RedirectResponse, Response

from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.pages.rendering import Render, fitting
from tuning.service.web.routes.schedules import ScheduleId

router = APIRouter(include_in_schema=False)


@router.get("/schedules")
def schedules_page(service: ServiceOf, holder: Asking, render: Render) -> Response:
    """The team's schedules, by name."""
    return render("schedules.html", schedules=fitting(service.schedules.all(holder.team)))


@router.post("/schedules/{schedule}/end")
def end_schedule(service: ServiceOf, holder: Asking, schedule: ScheduleId) -> Response:
    """Submit no more; the runs that there are stay."""
    service.schedules.delete(schedule, holder.team)
    return RedirectResponse("/schedules", 303)
