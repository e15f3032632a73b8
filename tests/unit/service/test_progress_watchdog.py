"""A driver that says nothing: left alone while it has not begun to, killed and tried again when it had."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from supervised import Supervised

from tuning.records.ownership import Owner
from tuning.runs.progress import Progress, write_progress
from tuning.service.database.connection import Database
from tuning.service.database.runs import SubmittedRun
from tuning.service.states import RunState
from tuning.service.supervisor.progress_watchdog import SILENT_S, ProgressWatchdog
from tuning.storage.run_directory import RunDirectory

WORKS = "touch begun; while :; do sleep 0.05; done"
SAID = Progress(
    state="running",
    customers=1,
    studies=1,
    trials=4,
    done_studies=0,
    done_trials=1,
    noun="customer",
    share=0.1,
    median_gain=None,
    relative=True,
    best=None,
    no_model=0,
    failed_trials=0,
    seconds=1.0,
    rate=None,
    seconds_left=None,
    doing="",
    slots=1,
    term=1,
    owner=Owner(),
    updated="1",
)


def say(run: SubmittedRun, updated: str) -> None:
    directory = RunDirectory(run.run_directory)
    directory.create()
    write_progress(directory, replace(SAID, updated=updated))


class Listened:
    """A supervisor that looks at the progress when a test says so."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.server = Supervised(database, folder, WORKS)
        self.watchdog = ProgressWatchdog(lambda: self.server.later)
        self.server.supervisor.watchdog = self.watchdog
        self.id = self.server.begun()

    def listen(self, after: float) -> SubmittedRun:
        self.server.later += after
        self.watchdog.read([self.server.get(self.id)])
        return self.server.look(self.id)


def test_a_driver_that_said_something_and_then_nothing_is_killed_and_tried_again(
    database: Database, tmp_path: Path
) -> None:
    listened = Listened(database, tmp_path)
    listened.listen(0)
    for word in ("1", "2"):
        say(listened.server.get(listened.id), word)
        listened.listen(60)
    assert listened.listen(SILENT_S - 1).state is RunState.RUNNING
    listened.listen(1)
    again = listened.server.look_until(listened.id, RunState.QUEUED)
    assert again.reason.startswith("its process said nothing for 15 min and was killed; tried again in 10 s")


def test_a_driver_that_has_said_nothing_yet_is_left_alone(database: Database, tmp_path: Path) -> None:
    listened = Listened(database, tmp_path)
    say(listened.server.get(listened.id), "of an earlier driver")
    for after in (0, SILENT_S, SILENT_S):
        assert listened.listen(after).state is RunState.RUNNING
    listened.server.supervisor.requests.cancel(listened.id, "churn", 0.0)
    listened.server.look_until(listened.id, RunState.CANCELLED)
