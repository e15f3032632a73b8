"""A submitted run as the API tells it."""

from __future__ import annotations

import base64
import binascii
import math
from typing import Annotated

from fastapi import Path
from starlette.concurrency import run_in_threadpool

from tuning.errors import DefinitionError, TuningError
from tuning.runs.progress import read_progress
from tuning.service.database.runs import SubmittedRun
from tuning.service.names import Names
from tuning.service.states import RunState
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.messages import RUN_ID, WITHOUT_NUL, ProgressMessage, RunMessage, moment

RunId = Annotated[str, Path(description="The run's id.", examples=[RUN_ID], max_length=64, pattern=WITHOUT_NUL)]
OWN_PLACE = "run_dir"  # of what a command says at its end, where the server keeps the run
LINKS = ("events", "leaderboard", "report", "model", "stop", "cancel", "resume")


async def team_run(run: RunId, holder: Asking, service: ServiceOf) -> SubmittedRun:
    """The run that a path names; 404 where the team has none of that id."""
    return service.remarked(await run_in_threadpool(service.runs.get, run, holder.team))


def progress_of(run: SubmittedRun) -> ProgressMessage | None:
    """How far a run is; None before its first word, and where its directory cannot be read."""
    try:
        progress = read_progress(run.run_directory)
    except TuningError:
        return None
    if progress is None:
        return None
    return ProgressMessage.model_validate(
        {**progress.to_dict(), "without_model": progress.no_model, "line": str(progress)}
    )


def run_message(run: SubmittedRun, place: int | None = None, names: Names | None = None) -> RunMessage:
    """names: of its team, for the answer about one run, which has progress and definition."""
    address = f"/api/v1/runs/{run.id}"
    return RunMessage(
        id=run.id,
        name=run.name,
        team=run.team,
        state=run.state,
        reason=run.reason,
        place=place,
        priority=run.priority,
        slots_asked=run.slots_asked,
        slots=run.slots,
        attempts=run.attempts,
        submitted=moment(run.submitted),
        started=moment(run.started),
        ended=moment(run.ended),
        not_before=moment(run.not_before) if run.state is RunState.QUEUED and run.not_before else None,
        submitted_by=run.submitted_by,
        schedule=run.schedule,
        progress=None if names is None else progress_of(run),
        outcome=None if run.outcome is None else {k: v for k, v in run.outcome.items() if k != OWN_PLACE},
        definition=None if names is None else names.document(run.definition),
        links={"self": address, **{name: f"{address}/{name}" for name in LINKS}},
    )


def cursor_of(run: SubmittedRun) -> str:
    """Where a page ends."""
    return base64.urlsafe_b64encode(f"{run.submitted!r} {run.id}".encode()).decode()


def read_cursor(cursor: str) -> tuple[float, str]:
    """`DefinitionError` for what no page has ended with."""
    try:
        at, _, run = base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii").partition(" ")
        seconds = float(at)
        if not math.isfinite(seconds) or "\0" in run:
            raise ValueError(at)
    except (binascii.Error, ValueError) as error:
        raise DefinitionError.about(
            "cursor", "this is not one that a page has given. Begin again without it."
        ) from error
    return seconds, run
