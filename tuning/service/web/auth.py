"""Who asks, and whether they may: a dependency of the whole application.

A program sends its token as `Authorization: Bearer …`; the page has a cookie, for which what changes something needs
the right `Origin`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPBearer
from fastapi.security.utils import get_authorization_scheme_param
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from tuning.errors import NotAllowedError
from tuning.service.database.tokens import Role, TokenHolder, digest_of
from tuning.service.service import Service

COOKIE = "tuning_session"
SAFE = ("GET", "HEAD", "OPTIONS")
LASTS_S = 12 * 3600.0  # a login: a working day
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
    _bearer: Annotated[object, Depends(_BEARER)],
    _cookie: Annotated[object, Depends(_COOKIE)],
) -> None:
    """Let a request through, or refuse it; what `Asking` gives is set here. The OpenAPI document names both ways in."""
    needed = role_of(request.method, getattr(request.scope["route"], "path", ""))
    if needed is None:
        return
    holder = await run_in_threadpool(holder_of, request, service)
    if holder is None:
        raise HTTPException(
            401,
            "There is no token, or it is not valid: not known, ended, or revoked. Send one of `tuning token create` as "
            "`Authorization: Bearer TOKEN`.",
            {"WWW-Authenticate": "Bearer"},
        )
    request.state.holder = holder
    if _token_in(request) is None and request.method not in SAFE:
        check_origin(request, service)
    if not holder.role.includes(needed):
        raise NotAllowedError(
            f"the token {holder.name!r} has the role {holder.role}; this needs {needed}. Use another token, or have "
            "one made with `tuning token create`."
        )


async def asking(request: Request) -> TokenHolder:
    """Return who asks, as `authenticate` has found out."""
    holder: TokenHolder = request.state.holder
    return holder


Asking = Annotated[TokenHolder, Depends(asking)]


def holder_of(request: Request, service: Service) -> TokenHolder | None:
    """Return who has the valid token or login of a request; None for nobody. It reads the database."""
    token, login, now = _token_in(request), request.session, service.clock()
    found = None
    if token is not None:
        found = service.tokens.holder(token)
    elif login and login["until"] > now and login["id"] not in request.app.state.ended_logins:
        found = service.tokens.holder_by(bytes.fromhex(login["token"]))
    return found if found is not None and found.valid(now) else None


def begin_login(request: Request, token: str, now: float) -> None:
    """Give a login to a browser: a signed cookie with the digest of the token, which is asked for at every request."""
    request.session.update(id=secrets.token_hex(16), token=digest_of(token).hex(), until=now + LASTS_S)


def end_login(request: Request, now: float) -> None:
    """End a login here and wherever else its cookie is."""
    ended: dict[str, float] = request.app.state.ended_logins
    if request.session:
        ended[request.session["id"]] = request.session["until"]
    for gone in [login for login, until in ended.items() if until < now]:
        del ended[gone]
    request.session.clear()


def check_origin(request: Request, service: Service) -> None:
    """Raise `NotAllowedError` unless the page that sends a request is one of this server's."""
    origin = request.headers.get("origin", "")
    if not origin or origin.lower() != _origin(service.settings.public_url or str(request.base_url)):
        raise NotAllowedError(
            f"Origin {origin[:200]!r} is not this server's. Send a form from the server's own page; a program sends "
            "its token as `Authorization: Bearer …`."
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}".lower() if parts.netloc else ""


def _token_in(request: Request) -> str | None:
    """Return the token that a program sends; None where it sends none."""
    scheme, token = get_authorization_scheme_param(request.headers.get("authorization"))
    return token if scheme.lower() == "bearer" else None
