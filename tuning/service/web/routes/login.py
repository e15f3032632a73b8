"""Logging in on the page with a token, and out again."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Form, Request
from starlette.exceptions import HTTPException
from starlette.responses import RedirectResponse, Response

from tuning.service.web.auth import COOKIE, LONGEST_TOKEN, ServiceOf, check_origin, set_cookie

router = APIRouter(include_in_schema=False)


@router.post("/login")
def log_in(
    request: Request,
    service: ServiceOf,
    token: Annotated[str, Form(min_length=1, max_length=LONGEST_TOKEN)],
    next_page: Annotated[str, Form(alias="next", max_length=2000)] = "/",
) -> Response:
    """Give the holder of a valid token a session, and send them to the page that they wanted, one of this server."""
    check_origin(request, service)
    holder = service.tokens.holder(token.strip())
    if holder is None or not holder.valid(service.clock()):
        raise HTTPException(
            401, "The token is not valid: not known, ended, or revoked.", {"WWW-Authenticate": "Bearer"}
        )
    answer = RedirectResponse(next_page if re.match(r"/(?![/\\])", next_page) else "/", 303)
    set_cookie(answer, request, service, service.sessions.create(token.strip(), service.clock()))
    return answer


@router.post("/logout")
def log_out(request: Request, service: ServiceOf) -> Response:
    """End the session, here and wherever else its cookie is."""
    service.sessions.end(request.cookies.get(COOKIE, ""))
    answer = RedirectResponse("/login", 303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer
