"""Whether the server lives, whether it can work, and its figures for Prometheus.

The figures are runs by state, the time in the queue, slots used, and requests by route and status.
"""

from __future__ import annotations

from collections.abc import Iterator

from fastapi import APIRouter, HTTPException, Request
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy import func, select, text
from starlette.responses import Response

from tuning.service.database.tables import RUNS
from tuning.service.service import Service
from tuning.service.states import RunState
from tuning.service.web.auth import ServiceOf
from tuning.service.web.messages import HealthMessage

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
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
    reason = service.unhealthy_reason()
    if reason is not None:
        raise HTTPException(503, reason, {"Retry-After": "10"})
    return HealthMessage(status="ok")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": "The figures."}},
)
def figures(request: Request) -> Response:
    """Runs by state, time in the queue, slots used, and requests by route and status, in Prometheus' format."""
    return Response(request.app.state.metrics.text(), media_type=MEDIA_TYPE)


class Metrics:
    """The counts of one application, in a registry of its own."""

    def __init__(self, service: Service) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_Queue(service))
        self._requests = Counter("tuning_requests", "Requests.", ("method", "route", "status"), registry=self._registry)
        self._seconds = Histogram(
            "tuning_request_seconds", "Time of an answer.", ("method", "route"), registry=self._registry
        )

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        known = method if method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS") else "other"
        self._requests.labels(known, route, str(status)).inc()
        self._seconds.labels(known, route).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self._registry)


class _Queue(Collector):
    """The queue as the database has it when it is asked for."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def describe(self) -> list[Metric]:
        return []  # or registering would read the database

    def collect(self) -> Iterator[Metric]:
        counts = self._service.runs.counts()
        with self._service.database.read() as connection:
            slots = connection.scalar(select(func.sum(RUNS.c.slots))) or 0
            oldest = connection.scalar(select(func.min(RUNS.c.queued)).where(RUNS.c.state == RunState.QUEUED))
            day = self._service.clock() - 24 * 3600
            started = select(RUNS.c.started - RUNS.c.queued).where(RUNS.c.started > day)
            waited = sorted(max(0.0, row[0]) for row in connection.execute(started))
        runs = GaugeMetricFamily("tuning_runs", "Runs by state.", labels=["state"])
        for state, number in counts.items():
            runs.add_metric([state], number)
        yield runs
        yield GaugeMetricFamily("tuning_slots_used", "Slots of the runs at work.", slots)
        total = self._service.slots()
        if total is not None:
            yield GaugeMetricFamily("tuning_slots", "Slots that there are.", total)
        longest = 0.0 if oldest is None else max(0.0, self._service.clock() - oldest)
        yield GaugeMetricFamily("tuning_queue_oldest_seconds", "How long the oldest queued run waits.", longest)
        day_waits = GaugeMetricFamily(
            "tuning_queue_seconds", "Time in the queue of the runs begun in the last day.", labels=["quantile"]
        )
        for quantile in (0.5, 0.95, 1.0):
            if waited:
                day_waits.add_metric([str(quantile)], waited[min(len(waited) - 1, int(quantile * len(waited)))])
        yield day_waits
