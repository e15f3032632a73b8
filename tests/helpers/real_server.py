"""A server without HTTP in a process of its own, whose drivers are real, and what clients ask of it."""

from __future__ import annotations

import time
from pathlib import Path

from builders import definition
from chaos import wait_for
from service_process import ServerProcess

from tuning.records.ownership import terms
from tuning.runs.progress import read_progress
from tuning.service.database import schema
from tuning.service.database.connection import Database
from tuning.service.database.runs import Runs, Submission, SubmittedRun
from tuning.service.requests import Requests
from tuning.service.settings import ServiceSettings
from tuning.service.states import ENDED
from tuning.service.supervisor.drivers import claim_folder, processes_in
from tuning.storage.run_directory import RunDirectory


class RealServer:
    """A server process, the database beside it, and what clients ask of it."""

    def __init__(self, folder: Path, slots: int = 2, mlflow: str = "") -> None:
        self.folder = folder
        url = f"sqlite:///{folder}/service.db"
        self.database = Database(url)
        schema.upgrade(self.database)
        self.process = ServerProcess(url, folder, slots, mlflow=mlflow)
        self.process.start()
        self.settings = ServiceSettings(database=url, storage=str(folder / "runs"), work=folder / "work", slots=slots)
        self.runs = Runs(self.database)
        self.requests = Requests(self.database, self.settings, lambda: slots)

    def submit(self, storage: str | None = None, **fields: object) -> str:
        made = definition(self.folder / "data", **{"placement": "auto", **fields})
        del made["slots"]
        submission = Submission("churn", "chaos", made, slots_asked=1)
        return self.runs.submit(submission, storage or self.settings.storage, time.time()).id

    def driver(self, run: str) -> int:
        found = processes_in(claim_folder(self.settings.work, self.runs.get(run)))
        return 0 if found is None else found["driver"].pid

    def done_trials(self, run: str) -> int:
        progress = read_progress(self.runs.get(run).run_directory)
        return 0 if progress is None else progress.done_trials

    def ended(self, run: str) -> SubmittedRun:
        wait_for(lambda: self.runs.get(run).state in ENDED, 240, f"the end of run {run}")
        return self.runs.get(run)

    def owners(self, run: str) -> int:
        """How many drivers have worked on a run."""
        return len(list(terms(RunDirectory(self.runs.get(run).run_directory))))
