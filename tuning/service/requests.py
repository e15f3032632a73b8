"""What a team asks for: submit, stop, cancel, resume. Changes of the database only; the supervisor does the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlalchemy import Connection, update

from tuning.errors import RefusedChangeError
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission, SubmittedRun, change, one
from tuning.service.database.tables import RUNS
from tuning.service.queue import quotas
from tuning.service.queue.claim import used_by
from tuning.service.settings import ServiceSettings
from tuning.service.states import CHANGES, ENDED, RunState


class Requests:
    """What may be asked of a server. slots: says how many it has, None while its cluster has not said them.

    Each takes the team that asks, which must have the run (`MissingError`), and the time. Wake the supervisor then.
    """

    def __init__(self, database: Database, settings: ServiceSettings, slots: Callable[[], int | None]) -> None:
        self._database, self._settings, self._slots = database, settings, slots

    def submit(self, submission: Submission, now: float) -> SubmittedRun:
        """Queue a run, as `Runs.submit`; `QuotaError`."""

        def check(connection: Connection) -> None:
            self._check(connection, submission, now)

        return Runs(self._database).submit(submission, self._settings.storage, now, check)

    def stop(self, run: str, team: str, now: float) -> SubmittedRun:
        """End a run so that it can be resumed; nothing happens to one that ends or is stopped already."""
        return self._end(run, team, RunState.STOPPED, now)

    def cancel(self, run: str, team: str, now: float) -> SubmittedRun:
        """End a run for good; what is recorded is kept until it is deleted."""
        return self._end(run, team, RunState.CANCELLED, now)

    def resume(
        self, run: str, team: str, now: float, *, trials: int | None = None, slots: int | None = None
    ) -> SubmittedRun:
        """Queue a stopped, failed or finished run again. trials, slots: in place of those of the definition."""
        with self._database.write() as connection:
            found = one(connection, run, team)
            if found.state not in ENDED or found.state is RunState.CANCELLED:
                raise RefusedChangeError(
                    f"run {run} is {found.state}. Only one that is stopped, failed or finished can be resumed."
                )
            definition = {**found.definition, **({} if trials is None else {"trials": trials})}
            asked = found.slots_asked if slots is None else slots
            again = Submission(found.team, found.name, definition, found.priority, asked)
            self._check(connection, again, now)
            return change(
                connection,
                found,
                RunState.QUEUED,
                now,
                "resumed",
                definition=definition,
                slots_asked=asked,
                attempts=0,
                not_before=0.0,
                outcome=None,
            )

    def _end(self, run: str, team: str, ending: RunState, now: float) -> SubmittedRun:
        with self._database.write() as connection:
            found = one(connection, run, team)
            if found.state is ending or (
                found.state is RunState.STOPPING and found.ending in (ending, RunState.CANCELLED)
            ):
                return found
            if found.state is RunState.STOPPING:
                connection.execute(update(RUNS).where(RUNS.c.id == run).values(ending=ending))
                return replace(found, ending=ending)
            word = "stop" if ending is RunState.STOPPED else "cancel"
            if found.state in ENDED and ending not in CHANGES[found.state]:
                raise RefusedChangeError(f"run {run} is {found.state}: nothing of it is left to {word}.")
            reason = f"asked to {word}"
            if found.state is not RunState.RUNNING:
                return change(connection, found, ending, now, reason)
            return change(connection, found, RunState.STOPPING, now, reason, ending=str(ending), stop_asked=now)

    def _check(self, connection: Connection, asked: Submission, now: float) -> None:
        allowed = self._settings.team(asked.team).quotas
        quotas.check(asked, allowed, used_by(connection, asked.team, now), self._slots(), now)
