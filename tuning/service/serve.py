"""The server: one process with the supervisor in a thread and HTTP in the main one."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import os
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from tuning.definition.definition import define
from tuning.errors import DefinitionError
from tuning.service.children import Children
from tuning.service.database import schema
from tuning.service.database.connection import Database
from tuning.service.database.tokens import Role, Tokens
from tuning.service.service import Service
from tuning.service.settings import ServiceSettings
from tuning.service.single_server import SingleServer
from tuning.service.supervisor.supervisor import Supervisor
from tuning.service.token_files import keep_token
from tuning.service.web.app import create_app

FIRST_TEAM, FIRST_TOKEN = "default", "first of this machine"
GRACE_S = 3  # for answers that are being sent when the server ends; streams end at once
WAITING = 256  # connections that are not accepted yet, at most
CONNECTIONS, OTHERS = 10_000, 64  # at once at most; descriptors for all else, such as the database and child processes
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 10\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


def serve(settings: ServiceSettings, say: Callable[[str], None], listening: Callable[[str], None]) -> None:
    """Serve until a signal ends it, or another server has taken the database over. Runs that are at work go on.

    say: tells the person who has started it. listening: called with the URL once requests are answered.

    Raises `DefinitionError` where it may not listen, or cannot; `UnavailableError` for a database that another server
    has, or that cannot be used.
    """
    os.umask(0o077)  # what a run records, and the database, is for the server's user alone
    database = Database(settings.database)
    try:
        schema.upgrade(database)
        listener = _listen(settings)
        with contextlib.closing(listener):
            host = f"[{settings.host}]" if ":" in settings.host else settings.host
            url = f"http://{host}:{listener.getsockname()[1]}"
            end = threading.Event()
            single = SingleServer(database, end.set)
            single.take()
            try:
                _check_tokens(database, settings, url, say)
                for root in settings.missing_folders:
                    say(
                        f"data: {root} is no folder that can be read here, so no definition can name anything below it."
                    )
                _work(settings, database, listener, end, lambda: listening(url))
            finally:
                single.release()
    finally:
        database.close()


def _work(
    settings: ServiceSettings,
    database: Database,
    listener: socket.socket,
    end: threading.Event,
    ready: Callable[[], None],
) -> None:
    settings.work.mkdir(parents=True, exist_ok=True)
    children = Children()
    supervisor = Supervisor(database, settings, children)
    service = Service(
        settings,
        database,
        children,
        wake=supervisor.wake,
        slots=supervisor.slots,
        unhealthy_reason=supervisor.unhealthy_reason,
        closing=end,
    )
    server = _Server(_uvicorn(settings, service), end, ready)
    define({"data": "rows.csv", "target": "y"})  # loads what reading the first definition would have to wait for
    supervisor.start()
    service.plans.go_on()
    try:
        server.run([listener])
    finally:
        end.set()
        supervisor.close()
        children.close()


class _Server(uvicorn.Server):
    """Ends in order when a signal comes or `end` is set, and calls `ready` once it listens."""

    def __init__(self, config: uvicorn.Config, end: threading.Event, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._end, self._ready = end, ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: object) -> None:
        self._end.set()
        super().handle_exit(sig, frame)  # type: ignore[arg-type]  # the frame is that of the signal module

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    async def on_tick(self, counter: int) -> bool:
        return await super().on_tick(counter) or self._end.is_set()


class _BoundedProtocol(H11Protocol):
    """HTTP on one connection of no more than there may be at once.

    Beyond them a new one is taken in place of the one that has waited longest for a request's headers: uvicorn itself
    keeps connections that send none. How long they may take is the proxy's matter.
    """

    most = CONNECTIONS
    waiting: ClassVar[dict[_BoundedProtocol, None]] = {}  # for headers, the longest first

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        if len(self.connections) > self.most:
            longest = next(iter(self.waiting), None)
            if longest is None:
                transport.write(BUSY)
                transport.close()
                return
            del self.waiting[longest]
            longest.transport.abort()
        self.waiting[self] = None

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self.waiting.pop(self, None)
        else:
            self.waiting.setdefault(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.pop(self, None)
        super().connection_lost(exc)


def _uvicorn(settings: ServiceSettings, service: Service) -> uvicorn.Config:
    behind_proxy = settings.public_url is not None
    descriptors = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0] % 2**63, CONNECTIONS)  # -1 is no limit
    backlog = min(WAITING, descriptors // 8)  # as many may be accepted at once before one of them is looked at
    most = max(1, descriptors - OTHERS - backlog)
    return uvicorn.Config(
        create_app(service),
        access_log=False,  # `RequestMiddleware` has one that holds no token
        log_config=None,
        # h11 takes 64 KB of headers at most; another library that is installed would have no limit.
        http=type("Protocol", (_BoundedProtocol,), {"most": most, "waiting": {}}),
        backlog=backlog,
        server_header=False,
        lifespan="off",
        ws="none",
        proxy_headers=behind_proxy,  # else anybody could say to come from elsewhere
        forwarded_allow_ips=[str(network) for network in settings.trusted_proxies],
        timeout_graceful_shutdown=GRACE_S,
    )


def _listen(settings: ServiceSettings) -> socket.socket:
    try:
        family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((settings.host, settings.port), family=family, backlog=WAITING)
        # Its connections have this, too, which asyncio sets for sockets that name TCP alone. Without it the body of an
        # answer waits 40 ms, until the client has acknowledged its headers.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise DefinitionError(
            f"--host {settings.host} --port {settings.port}: nothing can listen there ({error.strerror}). Give another "
            "port, or end what has it."
        ) from error


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _check_tokens(database: Database, settings: ServiceSettings, url: str, say: Callable[[str], None]) -> None:
    """Make the first token where only this machine reaches the server; elsewhere refuse to serve without one."""
    tokens, now = Tokens(database), time.time()
    if any(holder.valid(now) for holder in tokens.all()):
        return
    if not is_loopback(settings.host):
        raise DefinitionError(
            f"--host {settings.host}: others reach this address, and there is no valid token yet. Make one first: "
            "tuning token create --database URL --team NAME --role submit --name NAME."
        )
    tokens.forget(FIRST_TEAM, FIRST_TOKEN)
    token = tokens.create(FIRST_TEAM, Role.ADMIN, FIRST_TOKEN, now)
    try:
        file = keep_token(url, token)
    except OSError as error:
        tokens.forget(FIRST_TEAM, FIRST_TOKEN)
        say(f"The first token could not be kept ({error}). Make one: tuning token create.")
    else:
        say(f"The first token, of team {FIRST_TEAM}, is in {file}; `tuning submit` finds it there.")
