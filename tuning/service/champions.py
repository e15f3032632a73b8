"""Predictions by a team's champions, whose models stay in memory between requests."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import BinaryIO

from tuning import errors
from tuning.definition.fields import NAME
from tuning.errors import MissingError, TuningError
from tuning.service.children import GB, ChildLimits, ChildQueue
from tuning.service.extract_child import ANSWER, ROWS_CSV, ROWS_JSON
from tuning.service.extracts import Formulas, RowsForm
from tuning.service.kept_children import KeptChild, KeptChildren
from tuning.service.settings import ServiceSettings
from tuning.serving.release import RELEASES
from tuning.serving.releases import FOLDER
from tuning.storage.data_roots import VARIABLE
from tuning.storage.run_directory import RunDirectory

AT_ONCE, MOST_OPEN = 8, 4  # in all, and of a team
MOST_CHILDREN = 4
SECONDS = 60.0


class Champions:
    """What serves the customers of teams: `<storage>/<team>/champions/<name>`."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._queue = ChildQueue("predictions", AT_ONCE, MOST_OPEN)
        self._children = KeptChildren(MOST_CHILDREN, self._start)
        self._there: set[tuple[str, str]] = set()

    def check(self, team: str, name: str) -> None:
        """`MissingError` unless a team has champions of that name; it looks at the storage."""
        if (team, name) in self._there:
            return  # releases are never deleted
        if re.fullmatch(NAME, name):
            directory = RunDirectory(f"{self._storage(team)}/{FOLDER}/{name}")
            if any(True for _ in directory.list(RELEASES)):
                self._there.add((team, name))
                return
        raise MissingError(f"there are no champions called {name[:100]!r}. Make a release of a run: tuning promote.")

    def predictions(
        self,
        team: str,
        name: str,
        customer: str | None,
        rows: bytes,
        form: RowsForm,
        formulas: Formulas = "keep",
        interval: float | None = None,
    ) -> Future[BinaryIO]:
        """Rows with predictions, as of `Extracts.predictions`, and columns that say what has answered."""
        asked = {
            "name": name,
            "customer": customer,
            "most": self._settings.prediction_rows,
            "formulas": formulas,
            "interval": interval,
        }
        given = {ROWS_CSV if form == "csv" else ROWS_JSON: rows}
        return self._queue.submit(team, lambda: self._answer(team, asked, given))

    def close(self) -> None:
        """Begin no further ones."""
        self._queue.close()

    def _answer(self, team: str, asked: Mapping[str, object], given: Mapping[str, bytes]) -> BinaryIO:
        with self._children.of(team) as child, tempfile.TemporaryDirectory(dir=child.folder) as folder:
            for name, content in given.items():
                Path(folder, name).write_bytes(content)
            told = json.loads(child.ask(json.dumps({**asked, "folder": folder}).encode()))
            if told:
                kind: type[TuningError] = getattr(errors, told["error"])
                error = kind(told["reason"].replace(f"{self._storage(team)}/", "").replace("`customer`", "`id`"))
                error.key = told["key"]
                raise error
            return Path(folder, ANSWER).open("rb")

    def _start(self, team: str) -> KeptChild:
        folder = self._settings.work / FOLDER / team
        shutil.rmtree(folder, ignore_errors=True)  # what a server that was killed has left there
        folder.mkdir(parents=True)
        models = int(self._settings.champions_gb * GB)
        limits = ChildLimits(SECONDS, 2 * GB + 2 * models)
        arguments = [self._storage(team), str(models)]
        return KeptChild("tuning.service.champions_child", arguments, {VARIABLE: f"{folder}\n"}, limits, folder)

    def _storage(self, team: str) -> str:
        return f"{self._settings.storage.rstrip('/')}/{team}"
