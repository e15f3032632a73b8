"""What all parts of one server share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs
from tuning.service.database.sessions import Sessions
from tuning.service.database.tokens import Tokens
from tuning.service.queue.claim import places
from tuning.service.requests import Requests
from tuning.service.schedules import Schedules
from tuning.service.settings import ServiceSettings


def _nobody() -> None:
    """There is nobody to wake, or nothing that keeps the server from working."""


@dataclass(frozen=True)
class Service:
    """One server's settings, database and clock.

    Attributes:
        clock: seconds since 1970.
        wake: tells the supervisor that there may be something to do.
        slots: how many all runs share; None while a cluster has not said it.
        hindered: why runs are not looked after at the moment; None while they are.
        closing: set once the server ends, so that streams do.
        stream_s: the longest time for which a stream of events goes on; a client then asks again.
        look_s: between two looks of a stream at the database.
    """

    settings: ServiceSettings
    database: Database
    clock: Callable[[], float] = time.time
    wake: Callable[[], None] = _nobody
    slots: Callable[[], int | None] = _nobody
    hindered: Callable[[], str | None] = _nobody
    closing: threading.Event = field(default_factory=threading.Event)
    stream_s: float = 3600.0
    look_s: float = 0.5

    @cached_property
    def runs(self) -> Runs:
        return Runs(self.database)

    @cached_property
    def tokens(self) -> Tokens:
        return Tokens(self.database)

    @cached_property
    def sessions(self) -> Sessions:
        return Sessions(self.database)

    @cached_property
    def requests(self) -> Requests:
        return Requests(self.database, self.settings, self.slots)

    @cached_property
    def schedules(self) -> Schedules:
        return Schedules(self.database)

    def places(self) -> dict[str, int]:
        """The place of each queued run of all teams; 1 is next."""
        return places(self.database, self.settings, self.slots() or 1, self.clock())

    def work_folder(self, run: str) -> Path:
        """Where the service keeps what is its own of a run: definition, log, tables for pages."""
        return self.settings.work / run
