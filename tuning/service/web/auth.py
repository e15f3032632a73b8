"""Who asks, and whether they may: a dependency of the whole application.

A program sends its token as `Authorization: Bearer …`; the page has a cookie, for which what changes something needs
the right `Origin`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from tuning.errors import NotAllowedError
from tuning.service.database.sessions import LASTS_S
from tuning.service.database.tokens import Role, TokenHolder
from tuning.service.service import Service

COOKIE = "tuning_session"
SAFE = ("GET", "HEAD", "OPTIONS")
LONGEST_TOKEN = 200
#: Without a token: whether the server lives, and the login page with what it is drawn with.
OPEN = frozenset({"GET /healthz", "GET /login", "POST /login", "GET /static/{name}"})
#: Not what the method says, see `role_of`.
ROLES: Mapping[str, Role] = {
    "POST /api/v1/runs/{run}/predictions": Role.READ,
    "POST /api/v1/champions/{name}/predictions": Role.READ,
    "DELETE /api/v1/schedules/{schedule}": Role.SUBMIT,
    "POST /logout": Role.READ,
    "GET /runs/new": Role.SUBMIT,
    "POST /runs/{run}/delete": Role.ADMIN,
}

_BEARER = HTTPBearer(auto_error=False, scheme_name="token", description="A token of `tuning token create`.")
_COOKIE = APIKeyCookie(name=COOKIE, auto_error=False, scheme_name="session", description="The page's login.")


async def service_of(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


ServiceOf = Annotated[Service, Depends(service_of)]


def role_of(method: str, path: str) -> Role | None:
    """The role that a route needs; None for an open one. path: as the route has it, with `{run}`."""
    route = f"{method} {path}"
    if route in OPEN:
        return None
    return ROLES.get(route, Role.READ if method in SAFE else Role.ADMIN if method == "DELETE" else Role.SUBMIT)


async def authenticate(
    request: Request,
    service: ServiceOf,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)],
    session: Annotated[str | None, Depends(_COOKIE)],
) -> None:
    """Let a request through, or refuse it; what `Asking` gives is set here."""
    needed = role_of(request.method, getattr(request.scope["route"], "path", ""))
    if needed is None:
        return
    holder = await _holder(service, bearer, session)
    request.state.holder = holder
    if bearer is None and request.method not in SAFE:
        check_origin(request, service)
    if not holder.role.includes(needed):
        raise NotAllowedError(
            f"the token {holder.name!r} has the role {holder.role}; this needs {needed}. Use another token, or have "
            "one made with `tuning token create`."
        )


async def asking(request: Request) -> TokenHolder:
    """Who asks, as `authenticate` has found out."""
    holder: TokenHolder = request.state.holder
    return holder


Asking = Annotated[TokenHolder, Depends(asking)]


def still_valid(request: Request, service: Service) -> bool:
    """Whether the token or session of a request that goes on is valid; it reads the database."""
    bearer = request.headers.get("authorization")
    found = (
        service.tokens.holder(bearer.partition(" ")[2].strip())
        if bearer
        else service.sessions.holder(request.cookies.get(COOKIE, ""), service.clock())
    )
    return found is not None and found.valid(service.clock())


def check_origin(request: Request, service: Service) -> None:
    """`NotAllowedError` unless the page that sends a request is one of this server's."""
    origin = request.headers.get("origin", "")
    if not origin or origin.lower() != own_origin(request, service):
        raise NotAllowedError(
            f"Origin {origin[:200]!r} is not this server's. Send a form from the server's own page; a program sends "
            "its token as `Authorization: Bearer …`."
        )


def own_origin(request: Request, service: Service) -> str:
    """Scheme and host by which this server is asked."""
    return _origin(service.settings.public_url or str(request.base_url))


def set_cookie(response: Response, request: Request, service: Service, session: str) -> None:
    """Give a session to a browser: not to its scripts, nor to other sites' pages, nor in the clear behind TLS."""
    secure = own_origin(request, service).startswith("https:")
    response.set_cookie(COOKIE, session, int(LASTS_S), secure=secure, httponly=True, samesite="strict")


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else ""


async def _holder(service: Service, bearer: HTTPAuthorizationCredentials | None, session: str | None) -> TokenHolder:
    """Return whose valid token it is; 401 for nobody's."""
    text = bearer.credentials if bearer else session
    found = None
    if text is not None and 0 < len(text) <= LONGEST_TOKEN:
        if bearer:
            found = await run_in_threadpool(service.tokens.holder, text)
        else:
            found = await run_in_threadpool(service.sessions.holder, text, service.clock())
    if found is not None and found.valid(service.clock()):
        return found
    said = "there is no token" if text is None else "the token is not valid: not known, ended, or revoked"
    raise HTTPException(
        401,
        f"{said}. Send one of `tuning token create` as `Authorization: Bearer TOKEN`.",
        {"WWW-Authenticate": "Bearer"},
    )
