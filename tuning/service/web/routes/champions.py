"""Predictions by champions: what serves each customer, whichever run has found it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from tuning.service.extracts import Formulas
from tuning.service.web.auth import Asking, ServiceOf
from tuning.service.web.messages import PredictionsMessage
from tuning.service.web.routes.models import BODY, CSV, TEXT, CustomerId, IntervalShare, form_of, streamed

router = APIRouter(tags=["champions"])


async def team_champions(
    service: ServiceOf,
    holder: Asking,
    name: Annotated[str, Path(description="Of the champions, as `tuning promote --as` has it.", examples=["churn"])],
) -> str:
    """The name of champions that the team has."""
    await run_in_threadpool(service.champions.check, holder.team, name)
    return name


@router.post(
    "/api/v1/champions/{name}/predictions",
    response_model=PredictionsMessage,
    openapi_extra=BODY,
    responses={200: {"content": {CSV: TEXT}}},
)
async def predict_by_champions(
    name: Annotated[str, Depends(team_champions)],
    service: ServiceOf,
    holder: Asking,
    request: Request,
    id: CustomerId = None,
    formulas: Annotated[
        Formulas,
        Query(description="Of texts in CSV that a spreadsheet would run: `guard` puts an apostrophe before them."),
    ] = "keep",
    interval: IntervalShare = None,
) -> object:
    """Rows in, predictions out, as of a run. Each row is predicted by what serves its customer in the newest release;
    the column `answer` says what that is (`own`, `pool`, `constant`), `release` is the release's number."""
    kind, form = form_of(request)
    rows = await request.body()
    made = service.champions.predictions(holder.team, name, id, rows, form, formulas, interval)
    return await streamed(made, kind)
