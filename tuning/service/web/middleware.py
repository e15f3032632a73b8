"""What is around every request: its id, the size of its body, headers, the log, the counts, and the last resort."""

from __future__ import annotations

import logging
import secrets
import time

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tuning.basics.wording import shorten, size_text
from tuning.service.settings import ServiceSettings
from tuning.service.web import problems
from tuning.service.web.routes.health import Metrics

logger = logging.getLogger("tuning.service.requests")

TOO_LARGE = 413
LONGEST_PATH = 300  # characters of a path in the log, which anybody may write
ROWS_PATH = "/predictions"  # how the path ends whose bodies hold data
#: Of every answer that does not say otherwise itself.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # a form's Origin would be "null" with `no-referrer`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class RequestMiddleware:
    """The outermost middleware.

    A body that is too large is refused before it is read where its length is announced, else once it has gone beyond.
    An error that nobody foresaw is logged with its traceback and answered without it.
    """

    def __init__(self, app: ASGIApp, settings: ServiceSettings, metrics: Metrics) -> None:
        self._app, self._settings, self._metrics = app, settings, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        request = Request(scope, receive)
        request.state.request_id = secrets.token_hex(8)

        async def framed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._set_headers(MutableHeaders(raw=message["headers"]), request, status)
                message = {**message, "headers": message["headers"]}
            await send(message)

        with_rows = request.url.path.endswith(ROWS_PATH)
        most = self._settings.prediction_bytes if with_rows else self._settings.body_bytes
        try:
            if _announced(request) > most:
                await problems.answer(request, TOO_LARGE, _too_large(most))(scope, receive, framed)
            else:
                await self._app(scope, _limited(receive, most), framed)
        except Exception:
            logger.exception("request %s failed", request.state.request_id)
            if status:
                raise
            detail = "The server has made a mistake. Its log says more under this request id."
            await problems.answer(request, 500, detail)(scope, receive, framed)
        finally:
            self._tell(request, status, time.perf_counter() - began)

    def _set_headers(self, headers: MutableHeaders, request: Request, status: int) -> None:
        for name, value in HEADERS.items():
            headers.setdefault(name, value)
        headers["X-Request-Id"] = request.state.request_id
        if status == TOO_LARGE:  # the rest of the body is not read, so the connection is of no use any more
            headers["Connection"] = "close"

    def _tell(self, request: Request, status: int, seconds: float) -> None:
        """A line in the log, without query, headers and body, where tokens are; and one more in the counts."""
        holder = getattr(request.state, "holder", None)
        who = "-" if holder is None else f"{holder.team}/{holder.name}"
        route = getattr(request.scope.get("route"), "path", "none")
        address = request.client.host if request.client else "unknown"  # behind a trusted proxy, what that says
        self._metrics.count(request.method, route, status, seconds)
        path = shorten(ascii(request.scope["path"])[1:-1], LONGEST_PATH)  # no sign of it is an order to a terminal
        logger.info(
            "%s %s %s %d %.1f ms %s %r",
            *(request.state.request_id, request.method, path, status, 1000 * seconds, address, who),
        )


def _announced(request: Request) -> int:
    """Return the length that is announced; 0 where there is none. The server below has refused what is no number."""
    return int(request.headers.get("content-length") or 0)


def _too_large(most: int) -> str:
    return (
        f"The body is larger than the {size_text(most)} that are taken here. A definition names its data and does not "
        "hold them; rows to predict come in parts."
    )


def _limited(receive: Receive, most: int) -> Receive:
    """Return what gives a body of so many bytes at most, and refuses one that goes on."""
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > most:
            raise HTTPException(TOO_LARGE, _too_large(most))
        return message

    return limited
