"""Logging in on the page with a token, and out again."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, Query, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from tuning.service.web.auth import COOKIE, LONGEST_TOKEN, ServiceOf, check_origin, set_cookie
from tuning.service.web.pages.rendering import Render

router = APIRouter(include_in_schema=False)

NextPage = Annotated[str, Query(alias="next", max_length=2000)]


@router.get("/login")
async def login_page(request: Request, service: ServiceOf, render: Render, next_page: NextPage = "/") -> Response:
    """Asks for a token; who has logged in goes on to the page that they wanted."""
    session = request.cookies.get(COOKIE)
    if not session:
        return render("login.html", next_page=next_page)
    now = service.clock()
    holder = await run_in_threadpool(service.sessions.holder, session, now)
    if holder is not None and holder.valid(now):
        return RedirectResponse(_own(next_page), 303)
    return render("login.html", next_page=next_page, problem="Your login has ended. Log in again.")


@router.post("/login")
def log_in(
    request: Request,
    service: ServiceOf,
    render: Render,
    token: Annotated[str, Form()] = "",
    next_page: Annotated[str, Form(alias="next", max_length=2000)] = "/",
) -> Response:
    """Give the holder of a valid token a session, and send them to the page that they wanted, one of this server."""
    check_origin(request, service)
    given = token.strip()
    holder = service.tokens.holder(given) if 0 < len(given) <= LONGEST_TOKEN else None
    if holder is None or not holder.valid(service.clock()):
        problem = "The token is not valid: not known, ended, or revoked. Copy it whole, without quotes."
        return render("login.html", 401, next_page=next_page, problem=problem)
    answer = RedirectResponse(_own(next_page), 303)
    set_cookie(answer, request, service, service.sessions.create(given, service.clock()))
    return answer


@router.post("/logout")
def log_out(request: Request, service: ServiceOf) -> Response:
    """End the session, here and wherever else its cookie is."""
    service.sessions.end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _own(page: str) -> str:
    """A page of this server; its first one in place of another server's."""
    return page if re.match(r"/(?![/\\])", page) else "/"
