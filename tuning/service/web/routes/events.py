"""What happens to a run, as a stream of server-sent events."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request
from fastapi.sse import EventSourceResponse, ServerSentEvent
from starlette.concurrency import run_in_threadpool

from tuning.basics.wording import amount
from tuning.errors import QuotaError, TuningError
from tuning.service.database.runs import StateEvent, SubmittedRun
from tuning.service.service import Service
from tuning.service.states import ENDED, WORKING
from tuning.service.web.auth import Asking, ServiceOf, holder_of
from tuning.service.web.messages import EventMessage, ProgressMessage
from tuning.service.web.routes.runs import TeamRun, progress_of

router = APIRouter(tags=["runs"])

MOST_ID = 2**62


async def _counted(request: Request, service: ServiceOf, holder: Asking) -> AsyncIterator[None]:
    """Count a token's stream for as long as it is open: each one asks the database again and again."""
    streams: Counter[tuple[str, str]] = request.app.state.streams
    who, most = (holder.team, holder.name), service.settings.streams_per_token
    if streams[who] >= most:
        raise QuotaError(
            f"{amount(most, 'stream')} of events are open with this token, as many as may be at once. Close one, or "
            "ask GET /api/v1/runs now and then.",
            later=10.0,
        )
    streams[who] += 1
    try:
        yield
    finally:
        streams[who] -= 1


@router.get(
    "/api/v1/runs/{run}/events", response_class=EventSourceResponse, dependencies=[Depends(_counted, scope="request")]
)
async def events(
    request: Request,
    service: ServiceOf,
    found: TeamRun,
    last_event_id: Annotated[
        int, Header(ge=0, le=MOST_ID, description="The id of the last event that is known; those after it are sent.")
    ] = 0,
) -> AsyncIterator[ServerSentEvent]:
    """Changes of state as events `state` with ids, each once and none merged; between them events `progress` without
    ids, of which only the newest counts. The stream ends after the run's last change; a run that is resumed has a new
    one."""
    began, told, shown = service.clock(), last_event_id, None
    while True:
        look = await run_in_threadpool(_look, request, service, found, told)
        if look is None:  # the token was revoked, or the run deleted
            return
        changes, progress, ended = look
        for change in changes:
            told = change.id
            yield ServerSentEvent(
                event="state", id=str(change.id), data=EventMessage.model_validate(change).model_dump(mode="json")
            )
        if progress is not None and progress != shown:
            shown = progress
            yield ServerSentEvent(event="progress", data=progress.model_dump(mode="json"))
        if ended or service.closing.is_set() or service.clock() - began >= service.stream_s:
            return
        await asyncio.sleep(service.look_s)


def _look(
    request: Request, service: Service, found: SubmittedRun, told: int
) -> tuple[list[StateEvent], ProgressMessage | None, bool] | None:
    """What is new: changes of state, the progress, and whether that is all. None where nothing may be told any more."""
    try:
        if holder_of(request, service) is None:
            return None
        run = service.runs.get(found.id, found.team)
        changes = service.runs.events(found.id, told)
        ended = run.state in ENDED and not any(change.state not in ENDED for change in changes[-1:])
        return changes, progress_of(run) if run.state in WORKING or ended else None, ended
    except TuningError:
        return None
