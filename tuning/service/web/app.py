"""The application: its routes, what is around each of them, and its OpenAPI document."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable
from importlib import metadata
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, FastAPI, Request
from starlette.middleware import Middleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.responses import JSONResponse

from tuning.basics.wording import amount, did_you_mean, shorten
from tuning.errors import DefinitionError
from tuning.service.service import Service
from tuning.service.web import problems
from tuning.service.web.auth import COOKIE, LASTS_S, OPEN, authenticate
from tuning.service.web.middleware import RequestMiddleware
from tuning.service.web.pages import customer, login, new_run, one_run, rendering, team
from tuning.service.web.routes import events, health, models, plans, results, runs, schedules

API = "/api/v1"
LISTS = ("state",)  # parameters of a query that may come several times
ROUTERS: Iterable[APIRouter] = (
    *(health.router, runs.router, events.router, plans.router, schedules.router, results.router),
    models.router,
    *(rendering.router, login.router, team.router, new_run.router, one_run.router, customer.router),
)
DESCRIPTION = """Submit definitions, watch them run, and use what they have found.

Every request needs a token of `tuning token create`, as `Authorization: Bearer TOKEN`. What a team has is not there for
others. Errors are `application/problem+json`."""


def create_app(service: Service) -> FastAPI:
    """The application of one server.

    Routers are included without a prefix: their paths are whole, since roles and figures are told by them.
    """
    metrics, key = health.Metrics(service), secrets.token_urlsafe()  # which signs the logins of this server
    tls = urlsplit(service.settings.public_url or "").scheme == "https"
    app = FastAPI(
        title="Tuning service",
        version=metadata.version("tuning-service"),
        description=DESCRIPTION,
        openapi_url=None,  # below, behind a token like all others
        dependencies=[Depends(authenticate), Depends(_check_query)],
        middleware=[
            Middleware(RequestMiddleware, service.settings, metrics),
            Middleware(SessionMiddleware, key, COOKIE, int(LASTS_S), same_site="strict", https_only=tls),
        ],
        responses=problems.RESPONSES,
        redirect_slashes=False,
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.service, app.state.metrics = service, metrics
    app.state.streams = Counter[tuple[str, str]]()
    app.state.ended_logins = dict[str, float]()
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


async def _check_query(request: Request) -> None:
    """Raise `DefinitionError` for a parameter of the query that would be ignored: a second one, or an unknown one."""
    counts = Counter(name for name, _ in request.query_params.multi_items())
    operation = request.app.openapi()["paths"].get(request.scope["route"].path, {}).get(request.method.lower())
    taken = [each["name"] for each in (operation or {}).get("parameters", ()) if each["in"] == "query"]
    for unknown in counts.keys() - {*taken} if operation else ():
        raise DefinitionError.about(shorten(unknown), f"there is no such parameter.{did_you_mean(unknown, taken)}")
    for name, count in counts.items():
        if count > 1 and name not in LISTS:
            raise DefinitionError.about(shorten(name), f"it was given {amount(count, 'time')}. Give it once.")
