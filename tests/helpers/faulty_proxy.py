"""A proxy on loopback that does to a server's clients what networks and overloaded servers do."""

from __future__ import annotations

import http.client
import itertools
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MINUTES = 300.0  # nothing here is timed; this only ends what would hang for ever
FAULTS = ("refuse", "hang", "error", "unavailable", "slow", "drop")


class FaultyProxy:
    """Forwards to a port of this machine; `fault` says how badly, None is faultless.

    refuse: nobody listens. hang: no answer until the fault is over, then a closed connection. error, unavailable: 500,
    and 503 with Retry-After. slow: half a second for every answer. drop: of every third request the answer is thrown
    away after the server has done what it was asked for. late: the first request that makes a run is kept back while
    the client gives up, and reaches the server by `release`.
    """

    def __init__(self, port: int) -> None:
        self.backend = port
        self.fault: str | None = None
        self.changed = threading.Condition()
        self.count = itertools.count(1)
        self.kept: threading.Event | None = None
        self.released = threading.Event()
        self.delivered = threading.Event()
        self.server: ThreadingHTTPServer | None = None
        self.port = 0
        self._listen()

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def set(self, fault: str | None) -> None:
        with self.changed:
            before, self.fault = self.fault, fault
            self.changed.notify_all()
        if fault == "refuse":
            self.close()
        elif before == "refuse":
            self._listen()

    def release(self) -> None:
        """Let the request that was kept back reach the server; returns when the server has answered it."""
        self.released.set()
        assert self.delivered.wait(MINUTES)

    def close(self) -> None:
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def _listen(self) -> None:
        self.server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def forward(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.backend, timeout=MINUTES)
        try:
            connection.request(method, path, body, {**headers, "Host": f"127.0.0.1:{self.backend}"})
            answer = connection.getresponse()
            return answer.status, answer.getheader("Content-Type", ""), answer.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what this is about."""


def _handler(proxy: FaultyProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            headers = {"Content-Type": self.headers.get("Content-Type", "application/json")}
            fault = proxy.fault
            if fault == "hang":
                with proxy.changed:
                    proxy.changed.wait_for(lambda: proxy.fault != "hang", timeout=MINUTES)
                return self.cut()
            if fault == "refuse":
                return self.cut()
            if fault in ("error", "unavailable"):
                return self.reply(500 if fault == "error" else 503, "text/plain", b"out of order")
            if fault == "slow":
                with proxy.changed:
                    proxy.changed.wait_for(lambda: proxy.fault != "slow", timeout=0.5)
            if fault == "late" and self.path.endswith("/runs/create") and proxy.kept is None:
                proxy.kept = threading.Event()
                proxy.kept.set()
                proxy.released.wait(MINUTES)
                proxy.forward(self.command, self.path, headers, body)
                proxy.delivered.set()
                return self.cut()
            answer = proxy.forward(self.command, self.path, headers, body)
            if fault == "drop" and next(proxy.count) % 3 == 0:
                return self.cut()
            return self.reply(*answer)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815  # the names that http.server calls

        def reply(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            if status == 503:
                self.send_header("Retry-After", "1")
            self.end_headers()
            self.wfile.write(content)

        def cut(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    return Handler
