"""The models that a run has found, and a team's champions: files, and predictions of new rows."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Annotated, Any, BinaryIO

from fastapi import APIRouter, Depends, HTTPException, Path, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from tuning.basics.wording import shorten
from tuning.errors import RefusedChangeError
from tuning.service.database.runs import SubmittedRun
from tuning.service.extract_child import RowsMessage
from tuning.service.extracts import Formulas, RowsForm, SentRows
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.definitions import JSON
from tuning.service.web.messages import PredictionsMessage
from tuning.service.web.routes.runs import TeamRun

router = APIRouter(tags=["results"])
UNIT = 1 << 16  # bytes that are sent at a time
ZIP, CSV = "application/zip", "text/csv"
UNSAFE, MOST_NAME = re.compile(r"[^A-Za-z0-9._-]"), 80  # what is no part of a file's name; characters of a customer
FORMS: Mapping[str, RowsForm] = {JSON[0]: "json", CSV: "csv"}
KINDS = {form: kind for kind, form in FORMS.items()}
ARCHIVE: Mapping[str, object] = {ZIP: {"schema": {"type": "string", "format": "binary"}}}
TEXT: Mapping[str, object] = {"schema": {"type": "string"}, "example": "age,prediction\n41,no\n"}
BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "content": {
            JSON[0]: {"schema": RowsMessage.model_json_schema()},
            CSV: {"schema": {"type": "string"}, "example": "age\n41\n"},
        },
    }
}

CustomerId = Annotated[
    str | None,
    Query(
        description="The customer's id, whatever is in it; by default the run's only one, and for predictions the one "
        "that each row's key columns name.",
        max_length=4096,
    ),
]
PREDICTIONS: Mapping[str, Any] = {
    "response_model": PredictionsMessage,
    "openapi_extra": BODY,
    "responses": {200: {"content": {CSV: TEXT}}},
}


async def sent_rows(
    request: Request,
    id: CustomerId = None,
    formulas: Annotated[
        Formulas,
        Query(description="Of texts in CSV that a spreadsheet would run: `guard` puts an apostrophe before them."),
    ] = "keep",
    interval: Annotated[
        float | None,
        Query(
            description="Of a regression: the share of new rows whose target is to lie between `prediction_low` and "
            "`prediction_high`, which come with it. Without it there are no intervals.",
            gt=0,
            lt=1,
            examples=[0.8],
        ),
    ] = None,
) -> SentRows:
    """Read rows as JSON or CSV; 415 for another type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in FORMS:
        raise HTTPException(415, f"Content-Type {shorten(repr(kind))} is not taken. Send {JSON[0]} or {CSV}.")
    return SentRows(await request.body(), FORMS[kind], id, formulas, interval)


async def team_champions(
    service: ServiceOf,
    holder: Asking,
    name: Annotated[str, Path(description="Of the champions, as `tuning promote --as` has it.", examples=["churn"])],
) -> str:
    """Return the name of champions that the team has."""
    await run_in_threadpool(service.champions.check, holder.team, name)
    return name


Sent = Annotated[SentRows, Depends(sent_rows)]


@router.get("/api/v1/runs/{run}/model", response_class=Response, responses={200: {"content": ARCHIVE}})
async def model(found: TeamRun, service: ServiceOf, id: CustomerId = None) -> Response:
    """A customer's saved model: a ZIP archive of its files, with their digests as `sha256sum --check` reads them."""
    whose = f"-{UNSAFE.sub('_', id)[:MOST_NAME]}" if id else ""
    named = {"Content-Disposition": f'attachment; filename="model-{found.id}{whose}.zip"'}
    return await streamed(service.extracts.model(recorded(found), id), ZIP, named)


@router.post("/api/v1/runs/{run}/predictions", **PREDICTIONS)
async def predict(found: TeamRun, service: ServiceOf, sent: Sent) -> object:
    """Rows in, predictions out, in the form in which they came: the rows with a column `prediction`, and one of
    probabilities per class where the model has them. CSV is read as the run's data are."""
    return await streamed(service.extracts.predictions(recorded(found), sent), KINDS[sent.form])


@router.post("/api/v1/champions/{name}/predictions", tags=["champions"], **PREDICTIONS)
async def predict_by_champions(
    name: Annotated[str, Depends(team_champions)], service: ServiceOf, holder: Asking, sent: Sent
) -> object:
    """Rows in, predictions out, as of a run. Each row is predicted by what serves its customer in the newest release;
    the column `answer` says what that is (`own`, `pool`, `constant`), `release` is the release's number."""
    return await streamed(service.champions.predictions(holder.team, name, sent), KINDS[sent.form])


def recorded(run: SubmittedRun) -> SubmittedRun:
    """A run that has begun; `RefusedChangeError` for another, without a look at its folder."""
    if run.started is None:
        raise RefusedChangeError(f"run {run.id} is {run.state} and has recorded nothing yet. Wait until it has begun.")
    return run


async def streamed(made: Future[BinaryIO], media_type: str, headers: Mapping[str, str] | None = None) -> Response:
    """A file as answer, a piece at a time, once it is made."""
    file = await asyncio.wrap_future(made)
    size = {"Content-Length": str(os.fstat(file.fileno()).st_size)}
    return StreamingResponse(_pieces(file), media_type=media_type, headers={**(headers or {}), **size})


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(UNIT):
            yield piece
