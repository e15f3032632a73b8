"""Sessions of the page: a cookie's random text, stored as its digest beside that of the token it was given for."""

from __future__ import annotations

import secrets

from sqlalchemy import delete, insert, select

from tuning.service.database.connection import Database
from tuning.service.database.tables import SESSIONS, TOKENS
from tuning.service.database.tokens import TokenHolder, digest_of, holder_in

LASTS_S = 12 * 3600.0  # a working day


class Sessions:
    """Who has logged in on the page. A session ends with its token, at the next request."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, token: str, now: float) -> str:
        """A new session of a token that is there; what this returns is nowhere else."""
        session = secrets.token_urlsafe(32)
        values = {"digest": digest_of(session), "token": digest_of(token), "expires": now + LASTS_S}
        with self._database.write() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.expires < now))
            connection.execute(insert(SESSIONS).values(values))
        return session

    def holder(self, session: str, now: float) -> TokenHolder | None:
        """Who has logged in, by a token that may have ended since; None for nobody."""
        wanted = select(TOKENS).join(SESSIONS, SESSIONS.c.token == TOKENS.c.digest)
        wanted = wanted.where(SESSIONS.c.digest == digest_of(session), SESSIONS.c.expires > now)
        with self._database.read() as connection:
            return holder_in(connection, wanted)

    def end(self, session: str) -> None:
        with self._database.write() as connection:
            connection.execute(delete(SESSIONS).where(SESSIONS.c.digest == digest_of(session)))
