"""Errors as answers: `application/problem+json` (RFC 9457) with the sentence that the commands say."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import cast
from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Match

from search_spaces.errors import rule
from tuning.basics.wording import shorten
from tuning.errors import (
    DataError,
    DefinitionError,
    MissingError,
    NotAllowedError,
    PlanError,
    QuotaError,
    RefusedChangeError,
    RunError,
    StorageError,
    TuningError,
    UnavailableError,
    UnknownCustomerError,
    code_of,
)
from tuning.storage.names import mask_in

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
LONGEST = 2000  # characters of a sentence
METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT")
#: The first that fits says the status; others of the tree are the server's matter.
STATUSES: Mapping[int, tuple[type[TuningError], ...]] = {
    404: (MissingError, UnknownCustomerError),
    403: (NotAllowedError,),
    503: (UnavailableError, StorageError),
    422: (DefinitionError, PlanError, DataError),
    409: (RefusedChangeError, RunError),
}
SENTENCES: Mapping[int, str] = {
    404: "There is nothing at this address. GET /api/v1/openapi.json lists what there is.",
    405: "This address does not take that method. GET /api/v1/openapi.json lists which it takes.",
}
#: What the client is told of a database or storage that fails, whose sentences name the server's own places.
OUT_OF_ORDER = (
    "The service cannot reach its database or its storage at the moment. Nothing was changed. Try again; the server's "
    "log says more under this request id."
)

LOGIN_ENDED = (
    "Your login has ended, and nothing was done. Log in again in another tab, and then reload this page: your browser "
    "sends the form once more."
)


class ProblemMessage(BaseModel):
    """Why a request was not done (RFC 9457)."""

    type: str = Field("about:blank", description="Always about:blank: the status says the kind.")
    title: str = Field(description="The status in words.", examples=["Unprocessable Entity"])
    status: int = Field(description="The status of HTTP.", examples=[422])
    detail: str = Field(
        description="What is wrong, the rule, and the way out.",
        examples=["target: the column to predict is missing"],
    )
    key: str | None = Field(None, description="The key or parameter that it is about.", examples=["target"])
    code: str | None = Field(None, description="The kind of the error, for programs.", examples=["definition"])
    request_id: str = Field(description="Under which the server's log has this request.", examples=["1f0c9f3ab2d44e10"])


#: What every route may answer, for the OpenAPI document.
RESPONSES: dict[int | str, dict[str, object]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemMessage"}}},
    }
    for status in (400, 401, 403, 404, 405, 409, 413, 415, 422, 429, 503)
}


def answer(
    request: Request,
    status: int,
    detail: str,
    key: str | None = None,
    headers: Mapping[str, str] | None = None,
    error: TuningError | None = None,
) -> Response:
    """A problem as response: JSON, or a page for a browser where `app.state.problem_page` makes one."""
    message = ProblemMessage(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=shorten(mask_in(detail), LONGEST),
        key=key or None,
        code=None if error is None else code_of(error),
        request_id=request.state.request_id,
    )
    page: Callable[[Request, ProblemMessage], Response] | None = getattr(request.app.state, "problem_page", None)
    if page is not None and wants_page(request):
        response = page(request, message)
        response.headers.update(headers or {})
        return response
    return JSONResponse(message.model_dump(), status, headers, MEDIA_TYPE)


def add_handlers(app: FastAPI) -> None:
    """Let every error be answered as a problem; what nobody foresaw is `RequestMiddleware`'s matter."""
    app.add_exception_handler(TuningError, _of_ours)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(HTTPException, _of_http)


def wants_page(request: Request) -> bool:
    """Whether a person's browser asks, for a page."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith("/api/")


async def _of_ours(request: Request, found: Exception) -> Response:
    """An error of ours; a sentence that names the server's own places stays in its log."""
    error = cast(TuningError, found)
    if isinstance(error, QuotaError):
        if error.later is None:
            return answer(request, 422, str(error), error.key, error=error)
        later = {"Retry-After": str(max(1, round(error.later)))}
        return answer(request, 429, str(error), headers=later, error=error)
    status = next((status for status, kinds in STATUSES.items() if isinstance(error, kinds)), 503)
    if status == 503:
        logger.error("request %s: %s", request.state.request_id, mask_in(str(error)))
        return answer(request, 503, OUT_OF_ORDER, headers={"Retry-After": "10"}, error=error)
    return answer(request, status, str(error), error.key, error=error)


async def _of_validation(request: Request, error: Exception) -> Response:
    """What FastAPI found wrong with a parameter or a body."""
    found = cast(RequestValidationError, error).errors()[0]
    place = [str(part) for part in found["loc"][1:] if not isinstance(part, int)]
    key = ".".join(place) or None
    if found["type"] == "json_invalid":
        return answer(request, 422, "The body is not JSON.")
    given = "" if found["type"] == "missing" or "input" not in found else f" (got {shorten(repr(found['input']), 100)})"
    return answer(request, 422, f"{key or 'body'}: {rule(found)}{given}.", key)


async def _of_http(request: Request, error: Exception) -> Response:
    """What Starlette, FastAPI or a route raised by a status."""
    found = cast(HTTPException, error)
    if found.status_code == HTTPStatus.UNAUTHORIZED and wants_page(request):
        return _to_login(request)
    plain = found.detail in (HTTPStatus(found.status_code).phrase, "")
    detail = SENTENCES.get(found.status_code, found.detail) if plain else found.detail
    headers = found.headers
    if found.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        headers = {**(headers or {}), "Allow": ", ".join(_taken(request))}
    return answer(request, found.status_code, detail, headers=headers)


def _taken(request: Request) -> Sequence[str]:
    """The methods that an address takes, of all its routes: Starlette names those of the first."""
    routes = request.app.routes
    scopes = ({**request.scope, "method": method} for method in METHODS)
    return [scope["method"] for scope in scopes if any(route.matches(scope)[0] is Match.FULL for route in routes)]


def _to_login(request: Request) -> Response:
    """The login, and then back; of a form that was sent, its text is kept by the browser that sends it again."""
    if request.method not in ("GET", "HEAD"):
        return answer(request, HTTPStatus.UNAUTHORIZED, LOGIN_ENDED)
    wanted = f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path
    query = "" if wanted == "/" else f"?{urlencode({'next': wanted})}"
    return RedirectResponse(f"/login{query}", HTTPStatus.SEE_OTHER)
