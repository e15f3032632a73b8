"""The forms on a run's page: stop, cancel, resume, delete. Each leads back to a page."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form
from starlette.responses import RedirectResponse, Response

from tuning.service.service import Service
from tuning.service.web.auth import ServiceOf
from tuning.service.web.messages import MOST_SLOTS, MOST_TRIALS
from tuning.service.web.routes.runs import TeamRun

router = APIRouter(include_in_schema=False)


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


@router.post("/runs/{run}/resume")
def resume(
    found: TeamRun,
    service: ServiceOf,
    trials: Annotated[int | None, Form(ge=1, le=MOST_TRIALS)] = None,
    slots: Annotated[int | None, Form(ge=1, le=MOST_SLOTS)] = None,
) -> Response:
    """Queue a run again; an empty field leaves things as they were."""
    service.resume(found, trials=trials, slots=slots)
    return _back(found.id, service)


@router.post("/runs/{run}/delete")
def delete_run(found: TeamRun, service: ServiceOf) -> Response:
    """Delete a run that has ended, with everything that it has recorded."""
    service.delete(found)
    return RedirectResponse("/", 303)


def _back(run: str, service: Service) -> Response:
    service.wake()
    return RedirectResponse(f"/runs/{run}", 303)
