"""What a run has found: its leaderboard, one customer, and its report."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator, Mapping
from typing import Annotated, BinaryIO, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from fastapi import APIRouter, Depends, HTTPException, Query
from starlette.concurrency import run_in_threadpool
from starlette.responses import HTMLResponse, Response, StreamingResponse

from tuning.basics.wording import guarded
from tuning.data.formats.csv_file import csv_text
from tuning.errors import StorageError
from tuning.notes.note import plain
from tuning.runs.outcome import REPORT
from tuning.service.database.runs import SubmittedRun
from tuning.service.settings import ServiceSettings
from tuning.service.views.tables import MOST_ROWS, RunTables, Status
from tuning.service.web.auth import ServiceOf
from tuning.service.web.messages import CustomerMessage, LeaderboardMessage
from tuning.service.web.routes.models import recorded
from tuning.service.web.routes.runs import TeamRun
from tuning.storage.run_directory import RunDirectory

router = APIRouter(tags=["results"])
BATCH = 20_000  # rows of a file that are made at a time

#: Of a report, which has a policy of its own that lets its own script run alone. It may be whatever the run has
#: written, so it has no origin: it reads neither the session nor anything else of the server.
POLICY = (
    "sandbox allow-scripts; default-src 'none'; img-src data:; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

TableForm = Literal["json", "csv", "parquet"]
FILES: Mapping[str, Mapping[str, object]] = {"text/csv": {}, "application/vnd.apache.parquet": {}}


async def shown_tables(found: TeamRun, service: ServiceOf) -> RunTables:
    """A run's tables. While they are written no thread waits for them: there are few, for all requests together."""
    return await asyncio.wrap_future(await run_in_threadpool(service.views.ask, found))


ShownHere = Annotated[RunTables, Depends(shown_tables)]


@router.get("/api/v1/runs/{run}/leaderboard", response_model=LeaderboardMessage, responses={200: {"content": FILES}})
def leaderboard(
    found: TeamRun,
    shown: ShownHere,
    sort: Annotated[str, Query(description="A column; better values come first.", max_length=64)] = "customer",
    search: Annotated[str, Query(description="Part of a customer's id, in any case.", max_length=255)] = "",
    status: Annotated[Status, Query(description="Only customers of this status; empty for all.")] = "",
    start: Annotated[int, Query(description="Rows before the page.", ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(description="Rows of the page.", ge=1, le=MOST_ROWS)] = 50,
    format: Annotated[TableForm, Query(description="`csv` and `parquet` are files of all rows.")] = "json",
) -> object:
    """One row per customer. The rows of a run that goes on are some seconds old: `written` says when they were."""
    if format != "json":
        return _file(shown, sort, found.id, format)
    return leaderboard_message(shown, sort, search, status, start, limit)


def leaderboard_message(
    shown: RunTables, sort: str, search: str, status: str, start: int, limit: int
) -> LeaderboardMessage:
    """Return a page of a leaderboard as the API tells it."""
    page = shown.page(sort=sort, search=search, status=status, start=start, rows=limit)
    return LeaderboardMessage.model_validate({**vars(page), "rows": plain(page.rows), "written": shown.written})


@router.get("/api/v1/runs/{run}/customer")
def customer(
    shown: ShownHere,
    id: Annotated[str, Query(description="The customer's id, whatever is in it.", max_length=4096)],
) -> CustomerMessage:
    """One customer: its row of the leaderboard, its studies, and its trials with their learning curves."""
    row = shown.customer(id)
    records = {name: plain(row.pop(name)) for name in ("studies", "trials")}
    return CustomerMessage.model_validate({"row": plain(row), **records, "written": shown.written})


@router.get("/api/v1/runs/{run}/report", response_class=HTMLResponse)
async def report(
    found: TeamRun,
    service: ServiceOf,
    id: Annotated[str | None, Query(description="A customer's id, for its own report.", max_length=4096)] = None,
) -> Response:
    """The report of the run, or of one customer: one page of HTML that needs nothing else."""
    made: BinaryIO | None = None
    if id is not None:
        made = await asyncio.wrap_future(service.extracts.report(recorded(found), id))
    return await run_in_threadpool(_page, made, found, service.settings)


def _page(made: BinaryIO | None, run: SubmittedRun, settings: ServiceSettings) -> Response:
    """Return a report as a team gets it: files and the run by their names, not by their paths on the server.

    made: that of one customer; None for the run's, which the run has written at its end.
    """
    try:
        content = RunDirectory(run.run_directory).read(REPORT) if made is None else made.read()
    except (StorageError, FileNotFoundError):
        raise HTTPException(404, f"run {run.id} has no report yet; it is written when the run ends.") from None
    finally:
        if made is not None:
            made.close()
    page = settings.names(run.team, run.run_directory).text(content.decode("utf-8", "replace"))
    return HTMLResponse(page, headers={"Content-Security-Policy": POLICY})


def _file(tables: RunTables, sort: str, run: str, form: TableForm) -> Response:
    """All rows in a file."""
    named = {"Content-Disposition": f'attachment; filename="leaderboard-{run}.{form}"'}
    if form == "parquet":
        sink = io.BytesIO()
        pq.write_table(tables.all_rows(sort), sink, compression="zstd")
        return Response(sink.getvalue(), media_type="application/vnd.apache.parquet", headers=named)
    return StreamingResponse(_csv(tables.all_rows(sort)), media_type="text/csv", headers=named)


def _csv(rows: pa.Table) -> Iterator[str]:
    for start in range(0, max(1, len(rows)), BATCH):
        frame = rows.slice(start, BATCH).to_pandas().map(guarded)
        yield csv_text(frame) if not start else csv_text(frame).split("\n", 1)[1]
