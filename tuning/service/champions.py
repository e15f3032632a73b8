"""Predictions by a team's champions; their models stay in memory between requests."""

from __future__ import annotations

import re
import shutil
import tempfile
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO

from tuning.basics.wording import RUN_ADDRESS
from tuning.definition.fields import NAME
from tuning.errors import MissingError
from tuning.service.children import Child, ChildLimits, Children, Kind
from tuning.service.extract_child import ANSWER
from tuning.service.extracts import SentRows
from tuning.service.settings import GB, ServiceSettings
from tuning.serving.release import RELEASES
from tuning.serving.releases import FOLDER
from tuning.storage.data_roots import VARIABLE
from tuning.storage.run_directory import RunDirectory

KIND = Kind("predictions", at_once=8, most_open=4)
MOST_CHILDREN = 4
SECONDS = 60.0


class Champions:
    """What serves the customers of teams: `<storage>/<team>/champions/<name>`."""

    def __init__(self, settings: ServiceSettings, children: Children) -> None:
        self._settings, self._children = settings, children
        self._models = int(settings.champions_gb * GB)  # bytes of models that stay in memory
        self._there: set[tuple[str, str]] = set()

    def check(self, team: str, name: str) -> None:
        """Raise `MissingError` unless a team has champions of that name; this looks at the storage."""
        if (team, name) in self._there:
            return  # releases are never deleted
        if re.fullmatch(NAME, name):
            directory = RunDirectory(f"{self._storage(team)}/{FOLDER}/{name}")
            if any(True for _ in directory.list(RELEASES)):
                self._there.add((team, name))
                return
        raise MissingError(f"there are no champions called {name[:100]!r}. Make a release of a run: tuning promote.")

    def predictions(self, team: str, name: str, sent: SentRows) -> Future[BinaryIO]:
        """Predict rows, with columns that say what has answered; errors are those of `RunArtifacts`."""
        return self._children.submit(KIND, team, lambda: self._predict(team, name, sent))

    def _predict(self, team: str, name: str, sent: SentRows) -> BinaryIO:
        work = self._settings.work / FOLDER / team
        with (
            self._children.kept(team, MOST_CHILDREN, lambda: self._start(work)) as child,
            tempfile.TemporaryDirectory(dir=work) as folder,
        ):
            sent.write(Path(folder))
            champions = {"storage": self._storage(team), "size": self._models, "name": name, "folder": folder}
            values = {**champions, **sent.values(self._settings)}
            child.ask("tuning.service.champions_child:write_champions_predictions", values, self._settings.names(team))
            return Path(folder, ANSWER).open("rb")

    def _start(self, work: Path) -> Child:
        shutil.rmtree(work, ignore_errors=True)  # what a server that was killed has left there
        work.mkdir(parents=True)
        environment = {VARIABLE: f"{work}\n", RUN_ADDRESS: f"/api/v1/{FOLDER}"}
        return Child(environment, ChildLimits(SECONDS, 2 * GB + 2 * self._models), work)

    def _storage(self, team: str) -> str:
        return f"{self._settings.storage.rstrip('/')}/{team}"
