"""What all parts of one server share."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tuning.errors import DefinitionError, RefusedChangeError, RunOwnedError
from tuning.records.ownership import newest_term
from tuning.runs.deletion import delete_run
from tuning.runs.plan_file import frozen_definition, trials_refusal
from tuning.service.admission import Admitted, check_again
from tuning.service.champions import Champions
from tuning.service.children import Children
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, SubmittedRun, check_ended
from tuning.service.database.tokens import Tokens
from tuning.service.extracts import RunArtifacts
from tuning.service.plans import Plans
from tuning.service.queue.claim import Places
from tuning.service.requests import Requests
from tuning.service.schedules import Schedules
from tuning.service.settings import ServiceSettings
from tuning.service.states import RunState
from tuning.service.views.views import LeaderboardCache
from tuning.serving.kept_runs import refusal
from tuning.storage.run_directory import RunDirectory


def _nobody() -> None:
    """There is nobody to wake, or nothing that keeps the server from working."""


@dataclass(eq=False)
class Service:
    """One server's settings, database and clock.

    Attributes:
        clock: seconds since 1970.
        wake: tells the supervisor that there may be something to do.
        slots: how many all runs share; None while a cluster has not said it.
        unhealthy_reason: why runs are not looked after at the moment; None while they are.
        closing: set once the server ends, so that streams do.
        stream_s: the longest time for which a stream of events goes on; a client then asks again.
        look_s: between two looks of a stream at the database.
    """

    settings: ServiceSettings
    database: Database
    children: Children = field(default_factory=Children)
    clock: Callable[[], float] = time.time
    wake: Callable[[], None] = _nobody
    slots: Callable[[], int | None] = _nobody
    unhealthy_reason: Callable[[], str | None] = _nobody
    closing: threading.Event = field(default_factory=threading.Event)
    stream_s: float = 3600.0
    look_s: float = 0.5

    def __post_init__(self) -> None:
        settings, database, children = self.settings, self.database, self.children
        self.runs, self.tokens = Runs(database), Tokens(database)
        self.requests, self.schedules = Requests(database, settings, self.slots), Schedules(database)
        self.plans = Plans(database, settings, children, self.slots)
        self.views = LeaderboardCache(settings, children, self.clock)
        self.extracts, self.champions = RunArtifacts(settings, children), Champions(settings, children)
        self._places = Places(database, settings)
        self._submitting = threading.Lock()

    def places(self) -> Mapping[str, int]:
        """The place of each queued run of all teams; 1 is next."""
        return self._places.at(self.clock(), self.slots() or 1)

    def remarked(self, run: SubmittedRun) -> SubmittedRun:
        """The run, of one that waits with what keeps the server from beginning any."""
        waits = run.state is RunState.QUEUED and not run.reason
        return replace(run, reason=self.unhealthy_reason() or "") if waits else run

    def work_folder(self, run: str) -> Path:
        """Where the service keeps what is its own of a run: definition, log, tables for pages."""
        return self.settings.work / run

    def submit(self, admitted: Admitted, by: str) -> SubmittedRun:
        """Queue what was admitted, and again at the times of its timetable. by: the name of the token that asks.

        If the server was killed between the two, a repeated submission adds the schedule now.
        """
        submission, timetable = replace(admitted.submission, submitted_by=by), admitted.timetable
        with self._submitting if timetable else contextlib.nullcontext():
            run = self.requests.submit(submission, self.clock())
            if timetable is None or run.schedule is not None:
                return run
            made = self.schedules.add(submission, timetable.cron, timetable.time_zone, self.clock())
            self.runs.note(run.id, schedule=made.id)
            return self.runs.get(run.id)

    def resume(self, run: SubmittedRun, *, trials: int | None = None, slots: int | None = None) -> SubmittedRun:
        """Queue a run again, as `Requests.resume`; `NotAllowedError` for one that its team may not run any more,
        `DefinitionError` for trials that its directory cannot have any more."""
        check_again(run.definition, run.team, self.settings)
        directory = RunDirectory(run.run_directory)
        term = None if trials is None else newest_term(directory)
        if term is not None and (refused := trials_refusal(frozen_definition(directory, term), trials or 0)):
            raise DefinitionError.about("trials", f"{refused}. Nothing was changed.")
        return self.requests.resume(run.id, run.team, self.clock(), trials=trials, slots=slots)

    def delete(self, run: SubmittedRun) -> None:
        """Delete a run that has ended: its directory, what the service keeps of it, and its row, in this order."""
        check_ended(run)
        directory = RunDirectory(run.run_directory)
        if refusal(directory):
            raise RefusedChangeError(
                f"one of the newest releases of champions needs models of run {run.id}. Delete it when newer ones do "
                "not."
            )
        try:
            deleted = delete_run(directory)
        except RunOwnedError as error:
            raise RefusedChangeError(
                f"a process still works on run {run.id}. Delete it when that has ended; else in a minute."
            ) from error
        if not deleted:
            directory.delete()  # what a run has left that never began
        self.views.forget(run.id)
        shutil.rmtree(self.work_folder(run.id), ignore_errors=True)
        self.runs.delete(run.id, run.team)
