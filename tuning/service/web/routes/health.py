"""Whether the server lives, whether it can work, and its figures for Prometheus."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from sqlalchemy import text
from starlette.responses import Response

from tuning.service.web import metrics
from tuning.service.web.auth import ServiceOf
from tuning.service.web.messages import HealthMessage

router = APIRouter(tags=["server"])


@router.get("/healthz")
async def healthz() -> HealthMessage:
    """Whether the server answers; no token is needed."""
    return HealthMessage(status="ok")


@router.get("/readyz")
def readyz(service: ServiceOf) -> HealthMessage:
    """Whether the server can use its database and looks after runs; 503 where not."""
    with service.database.read() as connection:
        connection.execute(text("SELECT 1"))
    hindered = service.hindered()
    if hindered is not None:
        raise HTTPException(503, hindered, {"Retry-After": "10"})
    return HealthMessage(status="ok")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {metrics.MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "The figures."}},
)
def figures(request: Request) -> Response:
    """Runs by state, time in the queue, slots used, and requests by route and status, in Prometheus' format."""
    return Response(request.app.state.metrics.text(), media_type=metrics.MEDIA_TYPE)
