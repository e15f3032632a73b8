"""Submitted runs: list, look at, submit, stop, cancel, resume, delete."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from pydantic import AwareDatetime, BeforeValidator

from tuning.service.admission import admit
from tuning.service.database.runs import SubmittedRun
from tuning.service.service import Service
from tuning.service.states import RunState
from tuning.service.web import definitions
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import IdempotencyKey, SentDefinition
from tuning.service.web.messages import WITHOUT_NUL, ResumeMessage, RunMessage, RunPage
from tuning.service.web.run_messages import cursor_of, read_cursor, run_message, team_run

router = APIRouter(tags=["runs"])
MOST_RUNS = 200  # of a page
TeamRun = Annotated[SubmittedRun, Depends(team_run)]


def _no_number(value: object) -> object:
    """A time is written as one: a number would be taken for seconds since 1970."""
    if isinstance(value, str) and not any(sign in value for sign in "T :"):
        raise ValueError("a time with its zone is expected, such as 2026-06-08T03:00:00Z")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_no_number)]


@router.get("/api/v1/runs")
def list_runs(
    service: ServiceOf,
    holder: Asking,
    state: Annotated[list[RunState], Query(description="Only runs in one of these states.", max_length=10)] = [],  # noqa: B006 - FastAPI copies it
    name: Annotated[
        str | None, Query(description="Only runs of this name.", max_length=255, pattern=WITHOUT_NUL)
    ] = None,
    since: Annotated[Moment | None, Query(description="Submitted then or later.")] = None,
    until: Annotated[Moment | None, Query(description="Submitted before.")] = None,
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
    return RunPage(runs=[run_message(service.remarked(run)) for run in found[:limit]], next=further)


@router.post(
    "/api/v1/runs",
    status_code=202,
    openapi_extra=definitions.BODY,
    responses={202: {"headers": definitions.LOCATION, "links": definitions.RUN_LINKS}},
)
def submit(
    service: ServiceOf, holder: Asking, sent: SentDefinition, response: Response, idempotency_key: IdempotencyKey = None
) -> RunMessage:
    """Queue a definition. With `Idempotency-Key` a repeated submission is the same run."""
    now = service.clock()
    admitted = admit(sent.values, holder.team, service.settings, key=idempotency_key, digest=sent.digest, now=now)
    run = service.submit(admitted, holder.name)
    response.headers["Location"] = f"/api/v1/runs/{run.id}"
    return _changed(service, run)


@router.get("/api/v1/runs/{run}", responses={200: {"links": definitions.RUN_LINKS}})
def show_run(service: ServiceOf, found: TeamRun) -> RunMessage:
    """One run: state, reason, place in the queue, progress, definition, and where to look further."""
    return _whole(service, found)


@router.post("/api/v1/runs/{run}/stop", status_code=202)
def stop(service: ServiceOf, found: TeamRun) -> RunMessage:
    """End a run so that it can be resumed; what is recorded is kept."""
    return _changed(service, service.requests.stop(found.id, found.team, service.clock()))


@router.post("/api/v1/runs/{run}/cancel", status_code=202)
def cancel(service: ServiceOf, found: TeamRun) -> RunMessage:
    """End a run for good; what is recorded is kept until the run is deleted."""
    return _changed(service, service.requests.cancel(found.id, found.team, service.clock()))


@router.post("/api/v1/runs/{run}/resume", status_code=202)
def resume(service: ServiceOf, found: TeamRun, changes: ResumeMessage | None = None) -> RunMessage:
    """Queue a stopped, failed or finished run again, where wanted with more trials or other slots."""
    given = changes or ResumeMessage()
    return _changed(service, service.resume(found, trials=given.trials, slots=given.slots))


@router.delete("/api/v1/runs/{run}", status_code=204)
def delete_run(service: ServiceOf, found: TeamRun) -> None:
    """Delete a run that has ended, with everything that it has recorded."""
    service.delete(found)


def _changed(service: Service, run: SubmittedRun) -> RunMessage:
    service.wake()
    return _whole(service, run)


def _whole(service: Service, run: SubmittedRun) -> RunMessage:
    place = service.places().get(run.id) if run.state is RunState.QUEUED else None
    return run_message(run, place, service.settings.names(run.team))
