"""Predictions by a team's champions, in the child process that keeps their models in memory."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import cache

from tuning.models.kept_models import KeptModels
from tuning.runs.prediction.rows import PredictedRows, predict_by
from tuning.service.extract_child import write_predictions
from tuning.serving.models import ReleaseModels
from tuning.serving.releases import Releases

LOOK_S = 1.0  # between two looks for a newer release

Place = tuple[str, str, str, str | None]  # name of the champions, run, model_path, model_sha256


class ServedChampions:
    """The champions of a team, and their models as they are asked for; a release stays as long as it is in force.

    storage: the team's. size: bytes of models in memory.
    """

    def __init__(self, storage: str, size: int) -> None:
        self._storage = storage
        self._kept: KeptModels[Place] = KeptModels(size, lambda place: self._current[place[0]].load(*place[1:]))
        self._current: dict[str, ReleaseModels] = {}
        self._newest: dict[str, tuple[float, int]] = {}  # when somebody looked, and the number that was seen

    def predict(self, name: str, file: str, customer: str | None, interval: float | None) -> PredictedRows:
        """Predict the rows of a file by the champions of a name. Columns say what has answered, and its release."""
        return predict_by(self._models(name), file, customer, interval=interval, marked=True)

    def _models(self, name: str) -> ReleaseModels:
        """Those of the release that is in force."""
        looked, seen = self._newest.get(name, (-LOOK_S, 0))
        if time.monotonic() - looked >= LOOK_S:
            newest = max(Releases(name, self._storage).numbers(), default=0)
            if newest != seen or name not in self._current:
                current = ReleaseModels.current(name, self._storage)
                self._current[name] = replace(current, kept=lambda *place: self._kept.get((name, *place)))
            self._newest[name] = (time.monotonic(), newest)
        return self._current[name]


#: Of this process.
served_champions = cache(ServedChampions)


def write_champions_predictions(
    storage: str,
    size: int,
    name: str,
    folder: str,
    customer: str | None,
    most: int,
    formulas: str,
    interval: float | None,
) -> None:
    """Write predictions for the rows in a folder; see `ServedChampions` and `write_predictions`."""
    os.chdir(folder)
    served = served_champions(storage, size)
    write_predictions(lambda file: served.predict(name, file, customer, interval), most, formulas)
