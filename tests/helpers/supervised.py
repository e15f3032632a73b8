"""A supervisor in a test, with drivers that are small shell scripts in place of `tuning run`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from chaos import wait_for

from tuning.service.children import Children
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission, SubmittedRun
from tuning.service.settings import ServiceSettings
from tuning.service.supervisor.drivers import claim_folder, processes_in
from tuning.service.supervisor.supervisor import Supervisor


class Supervised:
    """One server without HTTP.

    script: of the shell, the driver of each run, begun in the service's folder of it; RUN is the run's directory.
    now, later: its clocks, which a test sets: the time of day and one that only goes forward.
    """

    def __init__(self, database: Database, folder: Path, script: str = "exit 0", slots: int = 4) -> None:
        self.database, self.folder, self.script = database, folder, script
        self.settings = ServiceSettings(
            database="sqlite://",
            storage=str(folder / "runs"),
            work=folder / "work",
            data=(str(folder),),
            slots=slots,
        )
        self.runs, self.now, self.later = Runs(database), 1000.0, 0.0
        self.supervisor = self.again()

    def again(self) -> Supervisor:
        """Another supervisor, as after the first was killed."""
        self.supervisor = Supervisor(
            self.database,
            self.settings,
            Children(),
            clock=lambda: self.now,
            monotonic=lambda: self.later,
            command=self.command,
        )
        return self.supervisor

    def submit(self, team: str = "churn") -> str:
        submission = Submission(team, "week", {"target": "y"}, slots_asked=1)
        return self.supervisor.requests.submit(submission, self.now).id

    def begun(self) -> str:
        """A run whose driver is at work."""
        run = self.submit()
        self.supervisor.look()
        wait_for(lambda: (self.work_of(run) / "begun").exists(), what="the driver's beginning")
        return run

    def get(self, run: str) -> SubmittedRun:
        return self.runs.get(run)

    def look(self, run: str) -> SubmittedRun:
        self.supervisor.look()
        return self.get(run)

    def look_until(self, run: str, *states: str) -> SubmittedRun:
        wait_for(lambda: self.look(run).state in states, what=" or ".join(states))
        return self.get(run)

    def work_of(self, run: str) -> Path:
        return claim_folder(self.settings.work, self.get(run))

    def process(self, run: str, name: str) -> int:
        found = processes_in(self.work_of(run))
        assert found is not None
        return found[name].pid

    def starts(self) -> int:
        """How many drivers have begun."""
        file = self.folder / "starts"
        return file.read_text().count("\n") if file.exists() else 0

    def launchers(self) -> int:
        """How many launchers of this server's drivers are alive."""
        return launchers_in(self.folder)

    def command(self, run: SubmittedRun) -> Sequence[str]:
        return ["/bin/sh", "-c", f"RUN={run.run_directory}; echo $$ >> {self.folder}/starts; {self.script}"]


def launchers_in(folder: Path) -> int:
    """How many launchers are alive whose drivers work in a folder."""
    found = 0
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = file.read_bytes().split(b"\0")
            found += b"launcher.py" in b"".join(words[3:4]) and bytes(folder) in b"".join(words[4:5])
    return found


def gone(pid: int) -> bool:
    """Whether a process has ended, also where nobody has asked for its code."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except OSError:
        return True
