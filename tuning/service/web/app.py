"""The application: its routes, what is around each of them, and its OpenAPI document."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import metadata

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.middleware import Middleware
from starlette.responses import JSONResponse

from tuning.service.service import Service
from tuning.service.web import problems
from tuning.service.web.auth import OPEN, authenticate
from tuning.service.web.limits import OpenStreams, RateLimiter, check_query
from tuning.service.web.metrics import Metrics
from tuning.service.web.middleware import Frame
from tuning.service.web.pages import all_runs, changes, login, new_run, one_run, rendering
from tuning.service.web.pages import schedules as schedule_pages
from tuning.service.web.routes import champions, events, health, models, plans, results, runs, schedules

API = "/api/v1"
ROUTERS: Iterable[APIRouter] = (
    *(health.router, runs.router, events.router, plans.router, schedules.router, results.router),
    *(models.router, champions.router),
    *(rendering.router, login.router, all_runs.router, new_run.router, one_run.router, changes.router),
    schedule_pages.router,
)
DESCRIPTION = """Submit definitions, watch them run, and use what they have found.

Every request needs a token of `tuning token create`, as `Authorization: Bearer TOKEN`. What a team has is not there for
others. Errors are `application/problem+json`."""


def create_app(service: Service) -> FastAPI:
    """The application of one server.

    Routers are included without a prefix: their paths are whole, since roles and figures are told by them.
    """
    metrics = Metrics(service)
    app = FastAPI(
        title="Tuning service",
        version=metadata.version("tuning-service"),
        description=DESCRIPTION,
        openapi_url=None,  # below, behind a token like all others
        dependencies=[Depends(authenticate), Depends(check_query)],
        middleware=[Middleware(Frame, settings=service.settings, metrics=metrics)],
        responses=problems.RESPONSES,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service, app.state.metrics = service, metrics
    app.state.rates, app.state.streams = RateLimiter(), OpenStreams()
    app.state.problem_page = rendering.problem_page
    problems.add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    app.add_api_route(f"{API}/openapi.json", _openapi, include_in_schema=False)
    return app


async def _openapi(request: Request) -> JSONResponse:
    """The OpenAPI document, made once."""
    app: FastAPI = request.app
    document = app.openapi()
    document["components"]["schemas"].setdefault(
        "ProblemMessage", problems.ProblemMessage.model_json_schema(ref_template="#/components/schemas/{model}")
    )
    for method, path in (route.split() for route in OPEN):
        if operation := document["paths"].get(path, {}).get(method.lower()):
            operation["security"] = []
    return JSONResponse(document)
