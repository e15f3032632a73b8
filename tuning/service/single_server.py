"""One server at a time on a database: its process is in the table of servers, with a beat that rises while it lives.

No clock of one machine is compared with another's: a server is dead when its process has ended on this machine, or when
its beat stood still for `DEAD_S` on this process's own clock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import asdict

from sqlalchemy import Connection, delete, insert, select, update

from tuning.errors import UnavailableError
from tuning.records.ownership import Owner, this_process
from tuning.service.database.connection import Database
from tuning.service.database.tables import SERVERS

logger = logging.getLogger(__name__)

BEAT_S, DEAD_S, LOOK_S = 4.0, 20.0, 1.0
_ONE = 1  # the id of the only row


class SingleServer:
    """This process as the only server of a database.

    lost: called, in a thread, when another server has taken the database over. clock: seconds that only go forward.
    """

    def __init__(
        self,
        database: Database,
        lost: Callable[[], None],
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._database, self._lost, self._clock, self._sleep = database, lost, clock, sleep
        self._me = this_process()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat_on, name="beat", daemon=True)

    def take(self) -> None:
        """Become the server; `UnavailableError` names the process that is it. Waits for a dead one for `DEAD_S`."""
        first, until = self._try(None), self._clock() + DEAD_S
        while first is not None:
            owner, beat = first
            lives_here = owner.machine == self._me.machine != ""
            now = self._try(None if lives_here or self._clock() < until else beat)
            if now is None:
                break
            if lives_here or now != first:
                raise UnavailableError(
                    f"another server works on {self._database.shown}: process {owner.pid} on {owner.host}. Stop it "
                    "first, or give this one another --database."
                )
            self._sleep(LOOK_S)
        self._thread.start()

    def beat(self) -> bool:
        """Show that this process lives; False when another one is the server by now."""
        with self._database.write() as connection:
            found = _read(connection)
            if found is None or found[0] != self._me:
                return False
            connection.execute(update(SERVERS).values(beat=found[1] + 1))
            return True

    def release(self) -> None:
        """Let another one be the server at once."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()
        with self._database.write() as connection:
            found = _read(connection)
            if found is not None and found[0] == self._me:
                connection.execute(delete(SERVERS))

    def _try(self, stood_still_at: int | None) -> tuple[Owner, int] | None:
        """Take the row where nobody has it, or a dead one; else say who has it. stood_still_at: a dead one's beat."""
        with self._database.write() as connection:
            found = _read(connection)
            if found is not None and not found[0].is_dead and found[1] != stood_still_at:
                return found
            connection.execute(delete(SERVERS))
            connection.execute(insert(SERVERS).values(id=_ONE, owner=asdict(self._me), beat=0))
            return None

    def _beat_on(self) -> None:
        while not self._over.wait(BEAT_S):
            try:
                if not self.beat():
                    logger.error("another server has taken %s over; this one ends", self._database.shown)
                    self._lost()
                    return
            except UnavailableError as error:
                logger.warning("%s", error)


def _read(connection: Connection) -> tuple[Owner, int] | None:
    found = connection.execute(select(SERVERS.c.owner, SERVERS.c.beat)).first()
    return None if found is None else (Owner(**found.owner), found.beat)
