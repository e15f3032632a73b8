"""The drivers: each is `tuning run` in a process that outlives the server, with a folder for what is said of it.

A run has a folder for each time that it is claimed, so that what one claim has left is never taken for another's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from tuning.basics.documents import Json
from tuning.basics.environment import import_environment
from tuning.definition.cpus import usable_cpus
from tuning.planning.capacity import MACHINE_SLOTS, MOST_TRIALS
from tuning.records.ownership import Owner, this_process
from tuning.service.children import SECRETS, roots_variable, run_variable
from tuning.service.database.runs import SubmittedRun
from tuning.service.settings import NO_MLFLOW, ServiceSettings
from tuning.service.supervisor import launcher
from tuning.service.supervisor.launcher import EXIT, LAUNCHER

DEFINITION = "definition.yaml"
RAY_SOCKET = "/tuning-5f0c9f3ab2d4/ray/session_2026-06-08_03-00-00_000000_4194304/sockets/plasma_store"
LONGEST_BASE = 107 - len(RAY_SOCKET)  # the longest path of a socket on Linux
STARTING = Owner()  # in place of a driver that is just being started
#: Seconds after the first look at a run that is to end, and the signal that is sent then. A driver answers the first by
#: writing what is finished, the second by ending its workers.
ORDERS = ((0.0, signal.SIGTERM), (30.0, signal.SIGTERM), (60.0, signal.SIGKILL))


@dataclass(frozen=True)
class Gone:
    """A driver that has ended.

    code: of its process, negative for a signal; None where nobody has seen the end. reason: where it is known here.
    told: the outcome that the driver has printed (`tuning.runs.outcome_file`); empty if it was killed before.
    """

    code: int | None = None
    reason: str = ""
    told: Json = field(default_factory=dict)


class Drivers:
    """Starts the drivers, and finds them again. command: what the driver of a run is."""

    def __init__(self, settings: ServiceSettings, command: Callable[[SubmittedRun], Sequence[str]]) -> None:
        self._settings, self._command = settings, command
        self._launchers: dict[Path, subprocess.Popen[bytes]] = {}  # started here and not ended yet, by their folders

    def start(self, run: SubmittedRun) -> None:
        """Begin to work on a claimed run; `OSError` where that cannot be. Called again, it starts no second driver."""
        folder = claim_folder(self._settings.work, run)
        folder.mkdir(parents=True, exist_ok=True)
        for older in folder.parent.iterdir():
            if older != folder:
                shutil.rmtree(older, ignore_errors=True)
        _place(folder / DEFINITION, yaml.safe_dump({**run.definition, "slots": run.slots}, sort_keys=False))
        here = this_process()
        self._launchers[folder] = subprocess.Popen(  # noqa: S603  # this program's own command
            [
                *(sys.executable, "-I", "-S", launcher.__file__, str(folder), self._ray_folder(run)),
                *(here.host, here.machine, *self._command(run)),
            ],
            env={**driver_environment(self._settings, run.team), **run_variable(run.id)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def look(self, run: SubmittedRun) -> Owner | Gone | None:
        """The driver that works on a run, `STARTING` before it does; None where nobody has come to start one."""
        folder = claim_folder(self._settings.work, run)
        own = self._launchers.get(folder)
        over = own is not None and own.poll() is not None  # asked before its files are read: they are complete then
        processes = processes_in(folder)
        if processes is None and own is None:
            return None
        if processes is None and not over:
            return STARTING
        alive = processes is not None and any(_alive(owner) for owner in processes.values())
        end = _read(folder / EXIT)
        if end is None and alive:
            return processes["driver"] if processes else STARTING
        self._launchers.pop(folder, None)
        if ray_folder := self._ray_folder(run):
            shutil.rmtree(ray_folder, ignore_errors=True)  # of a launcher that was killed
        if end is None and processes is None:
            return Gone(None, "its process could not be started")
        return Gone() if end is None else Gone(end["code"], told=end["told"] or {})

    def _ray_folder(self, run: SubmittedRun) -> str:
        """Where Ray's files of a run are; empty with a cluster, which has its own."""
        bases = (os.environ.get("RAY_TMPDIR", ""), tempfile.gettempdir())
        base = next((each for each in bases if 0 < len(each) <= LONGEST_BASE), "/tmp")  # noqa: S108 - made for its user alone
        return "" if self._settings.ray_address else f"{base}/tuning-{run.id[:12]}"


def claim_folder(work: Path, run: SubmittedRun) -> Path:
    """What belongs to a run since it was claimed last: definition, processes, output, log."""
    return work / run.id / "driver" / f"{run.started or 0:.6f}"


def processes_in(folder: Path) -> Mapping[str, Owner] | None:
    """The launcher and the driver of a claim; None before they are there."""
    found = _read(folder / LAUNCHER)
    return None if found is None else {name: Owner(**values) for name, values in found.items()}


def send(driver: Owner, number: int) -> None:
    """Send a driver a signal: SIGKILL to its whole process group. Nothing where it is another process by now."""
    if driver.is_dead or not _alive(driver):
        return
    with suppress(ProcessLookupError, PermissionError):
        if number == signal.SIGKILL:
            os.killpg(driver.pid, number)
        else:
            os.kill(driver.pid, number)


class Stopping:
    """The runs that are to end, and what their drivers were sent.

    clock: seconds that only go forward: by the time of day, a clock that is set back would keep a run alive. A server
    that was started anew begins with the first signal again.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._asked: dict[str, tuple[float, int]] = {}  # since when, and how many orders were given

    def ask(self, run: str, driver: Owner) -> None:
        """Give a driver the orders that are due."""
        since, given = self._asked.get(run, (self._clock(), 0))
        for after, number in ORDERS[given:]:
            if self._clock() - since >= after:
                send(driver, number)
                given += 1
        self._asked[run] = since, given

    def forget(self, run: str) -> None:
        self._asked.pop(run, None)


def driver_environment(settings: ServiceSettings, team: str) -> dict[str, str]:
    """The variables of a driver: the server's, without what is secret, with the roots that the team may read."""
    variables = {name: value for name, value in os.environ.items() if name not in SECRETS}
    for name, chosen in (("RAY_ADDRESS", settings.ray_address), ("MLFLOW_TRACKING_URI", settings.mlflow)):
        variables.pop(name, None)
        if chosen and chosen != NO_MLFLOW:
            variables[name] = chosen
    trials = settings.team(team).quotas.trials_per_run
    allowed = {MOST_TRIALS: "" if trials is None else str(trials)}
    if settings.ray_address is None:
        allowed[MACHINE_SLOTS] = str(settings.slots or usable_cpus())
    return {**variables, **import_environment(), **roots_variable(settings, team), **allowed}


def search_command(run: SubmittedRun) -> Sequence[str]:
    """`tuning run`, which begins a run or resumes it."""
    said = ("--resume", "--progress", "none", "--output", "json")
    return [sys.executable, "-m", "tuning.cli", "run", DEFINITION, "--run-dir", run.run_directory, *said]


def _alive(owner: Owner) -> bool:
    """Whether a process may be at work on this machine; one of an earlier boot, or of another machine, is not."""
    return owner.machine == this_process().machine and not owner.is_dead


def _read(file: Path) -> Json | None:
    """A file of the launcher, which is whole or not there."""
    try:
        found: Json = json.loads(file.read_bytes())
    except FileNotFoundError:
        return None
    return found


def _place(file: Path, text: str) -> None:
    draft = file.with_suffix(".new")
    draft.write_text(text)
    os.replace(draft, file)
