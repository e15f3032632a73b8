"""Submitted runs: every change of state is one transaction that also writes the event."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Select, delete, func, insert, select, tuple_, update

from tuning.basics.documents import Json
from tuning.basics.wording import shorten
from tuning.errors import MissingError, RefusedChangeError
from tuning.service.database.connection import Database
from tuning.service.database.tables import EVENTS, RUNS, SLOT_USES, SUBMISSIONS
from tuning.service.states import CHANGES, ENDED, WORKING, RunState

MOST_LOGGED = 300  # characters of a reason

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SubmittedRun:
    """A row of `tables.RUNS`; the comment there tells the columns."""

    id: str
    team: str
    name: str
    definition: Json
    run_directory: str
    submitted: float
    queued: float
    state: RunState = RunState.QUEUED
    reason: str = ""
    priority: int = 0
    slots_asked: int | None = None
    slots: int = 0
    started: float | None = None
    ended: float | None = None
    not_before: float = 0.0
    attempts: int = 0
    stop_asked: float | None = None
    ending: str | None = None
    outcome: Json | None = None
    schedule: str | None = None
    bytes: int = 0
    submitted_by: str | None = None


@dataclass(frozen=True)
class StateEvent:
    """A change of state. id: rises over all runs."""

    id: int
    run: str
    at: float
    state: RunState
    reason: str


@dataclass(frozen=True)
class Submission:
    """What is needed to queue a run.

    key: of `Idempotency-Key`; digest: of the body that came with it. submitted_by: the name of the token that asks.
    """

    team: str
    name: str
    definition: Json
    priority: int = 0
    slots_asked: int | None = None
    schedule: str | None = None
    key: str | None = None
    digest: str = ""
    submitted_by: str | None = None


def new_id() -> str:
    """96 random bits: nobody guesses another team's."""
    return secrets.token_hex(12)


class Runs:
    """The submitted runs of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, run: str, team: str | None = None) -> SubmittedRun:
        """Return a run of a team, or of any; `MissingError` for another team's as for one that is not there."""
        with self._database.read() as connection:
            return one(connection, run, team)

    def submit(
        self, submission: Submission, storage: str, now: float, check: Callable[[Connection], None] = lambda _: None
    ) -> SubmittedRun:
        """Queue a run in the directory `<storage>/<team>/<run>`; for a key that came before, return what it made.

        check: raises what refuses a new run, within the transaction. `RefusedChangeError` when the same key came with
        another body.
        """
        with self._database.write() as connection:
            earlier = submitted_before(connection, submission.team, submission.key, submission.digest)
            if earlier is not None:
                return one(connection, earlier, submission.team)
            check(connection)
            run = new_id()
            new = SubmittedRun(
                *(run, submission.team, submission.name, dict(submission.definition)),
                run_directory=f"{storage.rstrip('/')}/{submission.team}/{run}",
                submitted=now,
                queued=now,
                priority=submission.priority,
                slots_asked=submission.slots_asked,
                schedule=submission.schedule,
                submitted_by=submission.submitted_by,
            )
            connection.execute(insert(RUNS).values(vars(new)))
            _tell(connection, run, RunState.QUEUED, "", now)
            remember(connection, submission.team, submission.key, submission.digest, run, now)
            return new

    def change(
        self, run: str, to: RunState, now: float, reason: str = "", team: str | None = None, **values: object
    ) -> SubmittedRun:
        """Change a run's state, and further columns with it; `RefusedChangeError` where that may not follow."""
        with self._database.write() as connection:
            return change(connection, one(connection, run, team), to, now, reason, **values)

    def note(self, run: str, **values: object) -> None:
        """Set columns that are no change of state, such as the size of its directory."""
        with self._database.write() as connection:
            connection.execute(update(RUNS).where(RUNS.c.id == run).values(values))

    def in_states(self, states: Iterable[RunState]) -> list[SubmittedRun]:
        """The runs in some states, the first submitted first."""
        wanted = select(RUNS).where(RUNS.c.state.in_(states)).order_by(RUNS.c.submitted, RUNS.c.id)
        with self._database.read() as connection:
            return _read(connection, wanted)

    def page(
        self,
        team: str,
        *,
        states: Sequence[RunState] = (),
        name: str | None = None,
        since: float | None = None,
        until: float | None = None,
        before: tuple[float, str] | None = None,
        limit: int = 50,
    ) -> list[SubmittedRun]:
        """A team's runs, the newest first. before: (`submitted`, `id`) of the last one of the page before."""
        wanted = select(RUNS).where(RUNS.c.team == team).order_by(RUNS.c.submitted.desc(), RUNS.c.id.desc())
        if states:
            wanted = wanted.where(RUNS.c.state.in_(states))
        if name is not None:
            wanted = wanted.where(RUNS.c.name == name)
        if since is not None:
            wanted = wanted.where(RUNS.c.submitted >= since)
        if until is not None:
            wanted = wanted.where(RUNS.c.submitted < until)
        if before is not None:
            wanted = wanted.where(tuple_(RUNS.c.submitted, RUNS.c.id) < tuple_(*before))
        with self._database.read() as connection:
            return _read(connection, wanted.limit(limit))

    def counts(self) -> dict[RunState, int]:
        """How many runs are in each state."""
        with self._database.read() as connection:
            rows = connection.execute(select(RUNS.c.state, func.count()).group_by(RUNS.c.state)).all()
        return dict.fromkeys(RunState, 0) | {RunState(state): number for state, number in rows}

    def delete(self, run: str, team: str | None = None) -> SubmittedRun:
        """Forget a run that has ended, its events with it; its directory is the caller's matter."""
        with self._database.write() as connection:
            found = one(connection, run, team)
            check_ended(found)
            connection.execute(delete(RUNS).where(RUNS.c.id == run))
            return found

    def events(self, run: str, after: int = 0) -> list[StateEvent]:
        """What happened to a run since the event of that id, the oldest first."""
        wanted = select(EVENTS).where(EVENTS.c.run == run, EVENTS.c.id > after).order_by(EVENTS.c.id)
        with self._database.read() as connection:
            return [
                StateEvent(row.id, row.run, row.at, RunState(row.state), row.reason)
                for row in connection.execute(wanted)
            ]


def check_ended(run: SubmittedRun) -> None:
    """`RefusedChangeError` for a run that cannot be deleted yet."""
    if run.state not in ENDED:
        raise RefusedChangeError(
            f"run {run.id} is {run.state}. Cancel it first; only a run that has ended can be deleted."
        )


def one(connection: Connection, run: str, team: str | None) -> SubmittedRun:
    """A run within a transaction; `MissingError` for another team's as for one that is not there."""
    found = _read(connection, select(RUNS).where(RUNS.c.id == run))
    if not found or team not in (None, found[0].team):
        raise MissingError(f"there is no run {run!r} in your team.")
    return found[0]


def change(
    connection: Connection, run: SubmittedRun, to: RunState, now: float, reason: str = "", **values: object
) -> SubmittedRun:
    """The same as `Runs.change` within a transaction that does more, such as the queue's claim."""
    if to not in CHANGES[run.state]:
        allowed = ", ".join(sorted(CHANGES[run.state])) or "nothing"
        raise RefusedChangeError(f"run {run.id} is {run.state} and cannot become {to}; what can follow: {allowed}.")
    times: Mapping[str, object] = {}
    if to is RunState.RUNNING:
        times = {"started": now, "ended": None}
        use = {"run": run.id, "team": run.team, "slots": values["slots"], "since": now}
        connection.execute(insert(SLOT_USES).values(use))
    elif to is RunState.QUEUED:
        times = {"queued": now, "ended": None, "stop_asked": None, "ending": None}
    elif to in ENDED:
        times = {"ended": now}
    if to not in WORKING:
        values = {"slots": 0, **values}
        ended = update(SLOT_USES).where(SLOT_USES.c.run == run.id, SLOT_USES.c.until.is_(None))
        connection.execute(ended.values(until=now))
    changed = {"state": to, "reason": reason, **times, **values}
    connection.execute(update(RUNS).where(RUNS.c.id == run.id).values(changed))
    _tell(connection, run.id, to, reason, now)
    return one(connection, run.id, None)


def submitted_before(connection: Connection, team: str, key: str | None, digest: str) -> str | None:
    """The id of what a team has submitted with a key; `RefusedChangeError` when it was another body."""
    if key is None:
        return None
    found = connection.execute(select(SUBMISSIONS).where(SUBMISSIONS.c.team == team, SUBMISSIONS.c.key == key)).first()
    if found is None:
        return None
    if found.digest != digest:
        raise RefusedChangeError(
            f"Idempotency-Key {key!r} came before with another body, and made {found.made}. Use a new key for a new "
            "submission."
        )
    made: str = found.made
    return made


def remember(connection: Connection, team: str, key: str | None, digest: str, made: str, now: float) -> None:
    """Keep what a submission with a key has made."""
    if key is not None:
        connection.execute(insert(SUBMISSIONS).values(team=team, key=key, digest=digest, made=made, at=now))


def _tell(connection: Connection, run: str, state: RunState, reason: str, now: float) -> None:
    connection.execute(insert(EVENTS).values(run=run, at=now, state=state, reason=reason))
    logger.info("run %s is %s%s", run, state, f": {shorten(repr(reason), MOST_LOGGED)}" if reason else "")


def _read(connection: Connection, wanted: Select[tuple[object, ...]]) -> list[SubmittedRun]:
    return [SubmittedRun(**{**row, "state": RunState(row["state"])}) for row in connection.execute(wanted).mappings()]
