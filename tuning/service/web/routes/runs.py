"""Submitted runs: list, look at, submit, stop, cancel, resume, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import AwareDatetime, BeforeValidator
from starlette.concurrency import run_in_threadpool

from tuning.errors import TuningError
from tuning.runs.progress import read_progress
from tuning.service.admission import admit
from tuning.service.database.runs import SubmittedRun
from tuning.service.service import Service
from tuning.service.states import WORKING, RunState
from tuning.service.web import definitions
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import IdempotencyKey, SentDefinition
from tuning.service.web.messages import RUN_ID, WITHOUT_NUL, ProgressMessage, ResumeMessage, RunMessage, RunPage

router = APIRouter(tags=["runs"])
MOST_RUNS = 200  # of a page
CURSOR = r"^[0-9]{1,12}\.[0-9]{1,9},[0-9a-f]{1,64}$"  # when the last run of a page was submitted, and its id
OWN_PLACE = "run_dir"  # of what a command says at its end, where the server keeps the run
LINKS = ("events", "leaderboard", "report", "model", "stop", "cancel", "resume")

RunId = Annotated[str, Path(description="The run's id.", examples=[RUN_ID], max_length=64, pattern=WITHOUT_NUL)]


async def team_run(run: RunId, holder: Asking, service: ServiceOf) -> SubmittedRun:
    """Return the run that a path names; 404 where the team has none of that id."""
    return await run_in_threadpool(service.runs.get, run, holder.team)


TeamRun = Annotated[SubmittedRun, Depends(team_run)]


def run_message(
    service: Service, run: SubmittedRun, places: Mapping[str, int] | None = None, *, whole: bool = True
) -> RunMessage:
    """Return a run as the API tells it.

    places: in the queue, where the caller knows them. whole: with its definition, and progress in every state.
    """
    queued, address = run.state is RunState.QUEUED, f"/api/v1/runs/{run.id}"
    if places is None:
        places = service.places() if queued else {}
    told = {
        **vars(service.remarked(run)),
        "place": places.get(run.id),
        "not_before": run.not_before if queued and run.not_before else None,
        "progress": progress_of(run) if whole or run.state in WORKING else None,
        "outcome": run.outcome and {name: value for name, value in run.outcome.items() if name != OWN_PLACE},
        "definition": service.settings.names(run.team).document(run.definition) if whole else None,
        "links": {"self": address, **{name: f"{address}/{name}" for name in LINKS}},
    }
    return RunMessage.model_validate(told)


def progress_of(run: SubmittedRun) -> ProgressMessage | None:
    """Return how far a run is; None before its first word, and where its directory cannot be read."""
    try:
        progress = read_progress(run.run_directory)
    except TuningError:
        return None
    if progress is None:
        return None
    return ProgressMessage.model_validate(
        {**progress.to_dict(), "without_model": progress.no_model, "line": str(progress)}
    )


def _no_number(value: object) -> object:
    """Refuse a time that is a number, which would be taken for seconds since 1970."""
    if isinstance(value, str) and not any(sign in value for sign in "T :"):
        raise ValueError("a time with its zone is expected, such as 2026-06-08T03:00:00Z")
    return value


def _chosen(states: object) -> object:
    """Leave out the empty text that a form sends for all states."""
    return [state for state in states if state != ""] if isinstance(states, list) else states


Moment = Annotated[AwareDatetime, BeforeValidator(_no_number)]
States = Annotated[list[RunState], BeforeValidator(_chosen)]


@router.get("/api/v1/runs")
def list_runs(
    service: ServiceOf,
    holder: Asking,
    state: Annotated[States, Query(description="Only runs in one of these states.", max_length=10)] = [],  # noqa: B006 - FastAPI copies it
    name: Annotated[
        str | None, Query(description="Only runs of this name.", max_length=255, pattern=WITHOUT_NUL)
    ] = None,
    since: Annotated[Moment | None, Query(description="Submitted then or later.")] = None,
    until: Annotated[Moment | None, Query(description="Submitted before.")] = None,
    cursor: Annotated[
        str | None, Query(description="`next` of the page before.", max_length=200, pattern=CURSOR)
    ] = None,
    limit: Annotated[int, Query(description="Runs of a page.", ge=1, le=MOST_RUNS)] = 50,
) -> RunPage:
    """The team's runs, the newest first."""
    at, _, last = (cursor or "").partition(",")
    found = service.runs.page(
        holder.team,
        states=state,
        name=name or None,
        since=None if since is None else since.timestamp(),
        until=None if until is None else until.timestamp(),
        before=(float(at), last) if cursor else None,
        limit=limit + 1,
    )
    places, shown = service.places(), found[:limit]
    further = f"{shown[-1].submitted!r},{shown[-1].id}" if len(found) > limit else None
    return RunPage(runs=[run_message(service, run, places, whole=False) for run in shown], next=further)


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
    return run_message(service, found)


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
    return run_message(service, run)
