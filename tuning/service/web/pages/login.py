"""Logging in on the page with a token, and out again."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.responses import RedirectResponse, Response

from tuning.service.web.auth import COOKIE, ServiceOf, begin_login, check_origin, end_login, holder_of
from tuning.service.web.pages.rendering import Render

router = APIRouter(include_in_schema=False)

NextPage = Annotated[str, Query(alias="next", max_length=2000)]


@router.get("/login")
def login_page(request: Request, service: ServiceOf, render: Render, next_page: NextPage = "/") -> Response:
    """Ask for a token; who has logged in goes on to the page that they wanted."""
    if holder_of(request, service):
        return RedirectResponse(_own(next_page), 303)
    ended = "Your login has ended. Log in again." if COOKIE in request.cookies else ""
    return render("login.html", next_page=next_page, problem=ended)


@router.post("/login")
def log_in(
    request: Request,
    service: ServiceOf,
    render: Render,
    token: Annotated[str, Form()] = "",
    next_page: Annotated[str, Form(alias="next", max_length=2000)] = "/",
) -> Response:
    """Give the holder of a valid token a login, and send them to the page that they wanted, one of this server."""
    check_origin(request, service)
    given, now = token.strip(), service.clock()
    holder = service.tokens.holder(given)
    if holder is None or not holder.valid(now):
        problem = "The token is not valid: not known, ended, or revoked. Copy it whole, without quotes."
        return render("login.html", 401, next_page=next_page, problem=problem)
    begin_login(request, given, now)
    return RedirectResponse(_own(next_page), 303)


@router.post("/logout")
def log_out(request: Request, service: ServiceOf) -> Response:
    """End the login."""
    end_login(request, service.clock())
    return RedirectResponse("/login", 303)


def _own(page: str) -> str:
    """A page of this server; its first one in place of another server's."""
    return page if re.match(r"/(?![/\\])", page) else "/"
