"""The tables. Times are seconds since 1970 (UTC); documents are JSON.

A change here is a migration in `migrations/versions`, too; `tests/unit/service` compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
)

from tuning.basics.wording import encodable


def _without_gaps(value: object) -> object:
    """A text or document with what no database holds spelled out: NUL, and halves of pairs of characters."""
    if isinstance(value, str):
        return encodable(value).replace("\0", "\\x00")
    if isinstance(value, Mapping):
        return {_without_gaps(name): _without_gaps(inner) for name, inner in value.items()}
    return [_without_gaps(inner) for inner in value] if isinstance(value, list | tuple) else value


class SanitizedText(TypeDecorator[object]):
    """What a process has said, which may hold names of files and rows as they are."""

    impl, cache_ok = Text, True

    def process_bind_param(self, value: object, dialect: object) -> object:
        return _without_gaps(value)


class SanitizedDocument(TypeDecorator[object]):
    """The same of JSON."""

    impl, cache_ok, process_bind_param = JSON, True, SanitizedText.process_bind_param


METADATA = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: A run that was submitted. `run_directory`: as commands take it. `slots_asked`: None for the team's share; `slots`:
#: those that it has while it works. `stop_asked`: when it was asked to end, `ending`: "stopped" or "cancelled".
#: `attempts`: resumes after the machine's failures since the last request of a user; `not_before`: when the next may
#: begin. `outcome`: what the command said at its end.
#: `bytes`: the size of the run directory when it was last measured, for the team's quota. `submitted_by`: the name of
#: the token that asked for it; None of a schedule's run, and of those from before names were kept.
RUNS = Table(
    "runs",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("team", String(64), nullable=False),
    Column("name", String(255), nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", SanitizedText, nullable=False, default=""),
    Column("definition", JSON, nullable=False),
    Column("run_directory", Text, nullable=False),
    Column("priority", Integer, nullable=False, default=0),
    Column("slots_asked", Integer),
    Column("slots", Integer, nullable=False, default=0),
    Column("submitted", Float, nullable=False),
    Column("queued", Float, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    Column("not_before", Float, nullable=False, default=0.0),
    Column("attempts", Integer, nullable=False, default=0),
    Column("stop_asked", Float),
    Column("ending", String(16)),
    Column("outcome", SanitizedDocument),
    Column("schedule", String(32)),
    Column("bytes", BigInteger, nullable=False, default=0),
    Column("submitted_by", String(255)),
    Index(None, "state", "team"),
    Index(None, "team", "submitted", "id"),
)

#: What happened to a run, in order; the stream of events sends them by their ids.
EVENTS = Table(
    "events",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run", String(32), ForeignKey("runs.id", ondelete="CASCADE"), nullable=False),
    Column("at", Float, nullable=False),
    Column("state", String(16), nullable=False),
    Column("reason", SanitizedText, nullable=False, default=""),
    Index(None, "run", "id"),
    sqlite_autoincrement=True,
)

#: Slots that a run has had, for the fair share and the quota of core-seconds; `until` is None while it has them.
SLOT_USES = Table(
    "slot_uses",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("run", String(32), nullable=False),  # stays when the run is deleted: what was used was used
    Column("team", String(64), nullable=False),
    Column("slots", Integer, nullable=False),
    Column("since", Float, nullable=False),
    Column("until", Float),
    Index(None, "until", "team"),
    Index(None, "run"),
)

#: A submission that may be repeated: the same key with the same body is the same run or plan.
SUBMISSIONS = Table(
    "submissions",
    METADATA,
    Column("team", String(64), primary_key=True),
    Column("key", String(255), primary_key=True),
    Column("digest", String(64), nullable=False),
    Column("made", String(32), nullable=False),
    Column("at", Float, nullable=False),
)

#: A plan that was asked for. `result`: as `tuning plan --output json` prints it; `problem`: why there is none; its
#: `result` then holds `code` and `values` of the error.
#: `typed`: the definition as somebody typed it on the page; None for one that a program sent.
PLANS = Table(
    "plans",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("team", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("definition", JSON, nullable=False),
    Column("result", SanitizedDocument),
    Column("problem", SanitizedText),
    Column("at", Float, nullable=False),
    Column("typed", Text),
    Index(None, "team", "at"),
    Index(None, "state"),
)

#: A definition that is submitted again and again. `last`: the planned time of the newest submission; `problem`: why the
#: newest one was refused.
SCHEDULES = Table(
    "schedules",
    METADATA,
    Column("id", String(32), primary_key=True),
    Column("team", String(64), nullable=False),
    Column("name", String(255), nullable=False),
    Column("cron", String(255), nullable=False),
    Column("time_zone", String(64), nullable=False),
    Column("definition", JSON, nullable=False),
    Column("priority", Integer, nullable=False, default=0),
    Column("next", Float, nullable=False),
    Column("last", Float),
    Column("problem", SanitizedText),
    Index(None, "next"),
)

#: A token by the SHA-256 of its text, which is nowhere. `expires` and `revoked`: None for never.
TOKENS = Table(
    "tokens",
    METADATA,
    Column("digest", LargeBinary(32), primary_key=True),
    Column("team", String(64), nullable=False),
    Column("role", String(16), nullable=False),
    Column("name", String(255), nullable=False),
    Column("created", Float, nullable=False),
    Column("expires", Float),
    Column("revoked", Float),
    UniqueConstraint("team", "name"),
)

#: The server that works on this database: one row. `owner`: its process; `beat` rises while it lives.
SERVERS = Table(
    "servers",
    METADATA,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("owner", JSON, nullable=False),
    Column("beat", Integer, nullable=False),
)
