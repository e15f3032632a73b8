"""Terms: who owned a run when, and which earlier parts each owner accepts.

Each owner of a run has a term (1, 2, …). It is claimed by placing `terms/0002.json`, which of several who try only
one can, and begins when its plan is in place. What an owner writes goes into folders of its term
(`plan/0002-3f9c1a2b…`, `records/0002-3f9c1a2b/`); a reader takes the newest term that has begun and the earlier parts
which its file accepts, nothing else. So whatever an old owner still writes after it was replaced is never read.
"""

from __future__ import annotations

import json
import os
import socket
import time
import uuid
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path

from tuning.basics.documents import Json
from tuning.basics.wording import command, resume_advice
from tuning.errors import DeletedRunError, OtherFormatError, RunError, RunOwnedError
from tuning.storage.run_directory import RunDirectory

TERMS = "terms"
RECORDS = "records"
PLAN_FOLDER = "plan"
LEASES = "leases"
FORMAT = 3  # of all files of a run directory; a change that older readers would misread makes it one higher


@dataclass(frozen=True)
class Owner:
    """A process that runs, or ran, a search.

    machine: of the running kernel and process namespace, empty where that is unknown. started: the process's start
    in kernel ticks, so that a process number that was used again is told apart.
    """

    host: str = ""
    pid: int = 0
    machine: str = ""
    started: int = 0

    def __str__(self) -> str:
        return f"{self.host}:{self.pid}"

    @property
    def here(self) -> bool:
        """True for this very process."""
        return self == this_process()

    @property
    def is_dead(self) -> bool:
        """True when it is certain from here that the process has ended."""
        return bool(self.machine) and self.machine == _machine() and _start_of(self.pid) != self.started


def this_process() -> Owner:
    """This process as an owner."""
    return Owner(socket.gethostname(), os.getpid(), _machine(), _start_of(os.getpid()))


@cache
def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _start_of(pid: int) -> int:
    """Start time of a process in kernel ticks; 0 when there is none (or it is a zombie)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if state[0] in "ZX" else int(state[19])


@dataclass(frozen=True)
class Term:
    """The time in which one owner works on a run.

    number: from 1. folder: its name in `plan/` and `records/`. accepts: names of earlier parts that count.

    trials: the budget per study. seconds: what earlier terms spent of the run's time.
    """

    number: int
    folder: str
    accepts: tuple[str, ...] = ()
    owner: Owner = field(default_factory=Owner)
    trials: int = 0
    seconds: float = 0.0

    @property
    def plan(self) -> str:
        """The file that holds its studies; a term has begun when it is there."""
        return f"{PLAN_FOLDER}/{self.folder}.parquet"

    @property
    def definition(self) -> str:
        """The file that holds the definition it works on."""
        return f"{PLAN_FOLDER}/{self.folder}.yaml"

    @property
    def lease(self) -> str:
        """The file with its owner's heartbeat."""
        return f"{LEASES}/{self.folder}.json"

    @property
    def records(self) -> str:
        """The folder of its parts."""
        return f"{RECORDS}/{self.folder}"


def check_there(directory: RunDirectory, term: Term) -> None:
    """`DeletedRunError` where the run was deleted since the term began: a write would make a part of it anew."""
    if not directory.exists(term.plan):
        raise DeletedRunError(
            f"{directory.shown} has been deleted while the run went on: its plan is gone. Start the run again, in a "
            "folder that stays."
        )


def claim_file(number: int) -> str:
    return f"{TERMS}/{number:04d}.json"


def terms(directory: RunDirectory) -> Iterator[Term]:
    """All terms that were ever claimed, the newest first."""
    names = [name for name in directory.list(TERMS) if name.endswith(".json")]
    for name in sorted(names, key=lambda name: int(Path(name).stem), reverse=True):
        yield _read(directory, name)


def newest_claimed(directory: RunDirectory) -> Term | None:
    """The newest term, whether it has begun or its owner died before."""
    return next(terms(directory), None)


def newest_term(directory: RunDirectory) -> Term | None:
    """The newest term that has begun, None for a folder that no run has been started in."""
    return next((term for term in terms(directory) if directory.exists(term.plan)), None)


def begun_term(directory: RunDirectory) -> Term:
    """The newest term that has begun; `RunError` says what the folder holds instead of a run."""
    term = newest_term(directory)
    if term is not None:
        return term
    claimed = newest_claimed(directory)
    if claimed is None:
        raise RunError(f"{directory.shown} is not a run directory: no run was started there.")
    check_plan(directory, claimed)
    raise RunError(
        f"{claimed.owner} began a run in {directory.shown} and has not come as far as its plan, so no trial was "
        f"run. If it has ended, begin again in the same folder: "
        + command("run", "DEFINITION", "--run-dir", directory.shown)
    )


def check_plan(directory: RunDirectory, claimed: Term) -> None:
    """`RunError` when somebody has deleted the plan of a run: without one nothing can have been recorded.

    claimed: the newest term, of a folder in which none has begun.
    """
    if any(directory.list(RECORDS)):
        raise RunError(
            f"the plan of {directory.shown} is not there any more: {directory.display(claimed.plan)}. Put it back; "
            f"without it only a new run is left, in another folder. What is in {RECORDS}/ is kept. If it was being "
            f"deleted, go on: {command('delete', directory.shown)}"
        )


def claim(directory: RunDirectory, number: int, accepts: tuple[str, ...], trials: int, seconds: float) -> Term:
    """Make this process the owner of term `number`; `RunOwnedError` when somebody else was quicker."""
    term = Term(number, f"{number:04d}-{uuid.uuid4().hex[:8]}", accepts, this_process(), trials, seconds)
    content = {**asdict(term), "claimed": time.time(), "format": FORMAT}
    try:
        directory.claim(claim_file(number), json.dumps(content, indent=1).encode())
    except FileExistsError as error:
        other = _read(directory, claim_file(number)).owner
        raise RunOwnedError(
            f"{other} has just started {directory.shown}. Wait for it to finish, or stop it; then: "
            f"{resume_advice(directory.shown)}"
        ) from error
    return term


def _read(directory: RunDirectory, name: str) -> Term:
    try:
        document: Json = json.loads(directory.read(name))
        _check_format(directory, document.get("format"))
        values = {each.name: document[each.name] for each in fields(Term)}
        return Term(**{**values, "accepts": tuple(values["accepts"]), "owner": Owner(**values["owner"])})
    except (ValueError, TypeError, KeyError, AttributeError, OSError) as error:
        raise RunError(
            f"{directory.display(name)} is damaged ({type(error).__name__}: {error}). Restore it. Or remove it: "
            "the run then continues from the owner before, and the trials recorded since then run again."
        ) from error


def _check_format(directory: RunDirectory, found: object) -> None:
    if found != FORMAT:
        raise OtherFormatError(
            f"{directory.shown} was written by another version of this program, in format {found or 1} (this version "
            f"reads format {FORMAT}): read it with that version, or start a new run in another folder."
        )
