"""Tokens: 256 random bits that are shown once and stored as their SHA-256."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from enum import StrEnum

from sqlalchemy import Connection, Select, delete, insert, select, update

from tuning.basics.wording import amount, shorten
from tuning.errors import DefinitionError, MissingError
from tuning.service.database.connection import Database
from tuning.service.database.tables import TOKENS

TEAM = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")  # a folder's name, an experiment's, and a word of a URL
LONGEST_NAME = 255  # characters


class Role(StrEnum):
    """What the holder of a token may do; each may do what the one before may.

    read: look at runs, and predict. submit: submit, stop, cancel and resume runs. admin: delete them.
    """

    READ = "read"
    SUBMIT = "submit"
    ADMIN = "admin"

    def includes(self, other: Role) -> bool:
        order = list(Role)
        return order.index(self) >= order.index(other)


@dataclass(frozen=True)
class TokenHolder:
    """Who asks: a team, by one of its tokens."""

    team: str
    role: Role
    name: str
    created: float
    expires: float | None = None
    revoked: float | None = None

    def valid(self, now: float) -> bool:
        return (self.expires is None or now < self.expires) and self.revoked is None


def digest_of(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


def holder_in(connection: Connection, wanted: Select[tuple[object, ...]]) -> TokenHolder | None:
    """The holder in the first row of a query for tokens."""
    return next(iter(_holders(connection, wanted)), None)


def _holders(connection: Connection, wanted: Select[tuple[object, ...]]) -> list[TokenHolder]:
    rows = connection.execute(wanted)
    return [TokenHolder(row.team, Role(row.role), row.name, row.created, row.expires, row.revoked) for row in rows]


class Tokens:
    """The tokens of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, team: str, role: Role, name: str, now: float, expires: float | None = None) -> str:
        """A new token, which is nowhere but in what this returns.

        `DefinitionError` for a name that a valid token has. The name of one that has ended can be given again.
        """
        if not TEAM.fullmatch(team):
            raise DefinitionError(
                f"team {team!r}: up to 63 small letters, digits, - and _ are allowed, a letter or digit first."
            )
        if len(name) > LONGEST_NAME:
            raise DefinitionError(
                f"the name {shorten(repr(name), 60)} has {amount(len(name), 'character')}: up to {LONGEST_NAME} "
                "are allowed; choose another, such as that of its person or program."
            )
        token = secrets.token_urlsafe(32)
        values = {"team": team, "role": role, "name": name, "created": now, "expires": expires}
        named = (TOKENS.c.team == team) & (TOKENS.c.name == name)
        with self._database.write() as connection:
            before = holder_in(connection, select(TOKENS).where(named))
            if before is not None and before.valid(now):
                raise DefinitionError(
                    f"team {team!r} has a token {name!r} already. Choose another name, or revoke that one first."
                )
            connection.execute(delete(TOKENS).where(named))
            connection.execute(insert(TOKENS).values(digest=digest_of(token), **values))
        return token

    def holder(self, token: str) -> TokenHolder | None:
        """Who has a token, valid or not; None for nobody. Looked up by the digest, so no time tells a part of it."""
        return self.holder_by(digest_of(token))

    def holder_by(self, digest: bytes) -> TokenHolder | None:
        """Return who has the token of a digest."""
        with self._database.read() as connection:
            return holder_in(connection, select(TOKENS).where(TOKENS.c.digest == digest))

    def all(self, team: str | None = None) -> list[TokenHolder]:
        wanted = select(TOKENS).order_by(TOKENS.c.team, TOKENS.c.created)
        with self._database.read() as connection:
            return _holders(connection, wanted if team is None else wanted.where(TOKENS.c.team == team))

    def revoke(self, team: str, name: str, now: float) -> None:
        """End a token from now on; `MissingError` where there is none of that name."""
        named = (TOKENS.c.team == team) & (TOKENS.c.name == name)
        with self._database.write() as connection:
            if not connection.execute(update(TOKENS).where(named).values(revoked=now)).rowcount:
                raise MissingError(f"team {team!r} has no token {name!r}. `tuning token list` shows all.")

    def forget(self, team: str, name: str) -> None:
        """Remove a token's row, so that its name can be used again."""
        with self._database.write() as connection:
            connection.execute(delete(TOKENS).where(TOKENS.c.team == team, TOKENS.c.name == name))
