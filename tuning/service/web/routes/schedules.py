"""Definitions that are submitted again and again; posting a run with `schedule` makes one."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from tuning.service.schedules import Schedule
from tuning.service.service import Service
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.messages import WITHOUT_NUL, ScheduleMessage, SchedulePage

router = APIRouter(tags=["schedules"])
ScheduleId = Annotated[str, Path(description="The schedule's id.", max_length=64, pattern=WITHOUT_NUL)]


@router.get("/api/v1/schedules")
def list_schedules(service: ServiceOf, holder: Asking) -> SchedulePage:
    """The team's schedules, by name."""
    return SchedulePage(schedules=[_message(each, service) for each in service.schedules.all(holder.team)])


@router.get("/api/v1/schedules/{schedule}")
def show_schedule(service: ServiceOf, holder: Asking, schedule: ScheduleId) -> ScheduleMessage:
    """One schedule."""
    return _message(service.schedules.get(schedule, holder.team), service)


@router.delete("/api/v1/schedules/{schedule}", status_code=204)
def delete_schedule(service: ServiceOf, holder: Asking, schedule: ScheduleId) -> None:
    """Submit no more; the runs that there are stay."""
    service.schedules.delete(schedule, holder.team)


def _message(schedule: Schedule, service: Service) -> ScheduleMessage:
    told = {
        "definition": service.settings.names(schedule.team).document(schedule.definition),
        "links": {"self": f"/api/v1/schedules/{schedule.id}", "runs": f"/api/v1/runs?name={schedule.name}"},
    }
    return ScheduleMessage.model_validate({**vars(schedule), **told})
