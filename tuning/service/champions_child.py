"""The child process that predicts by a team's champions: `python -m tuning.service.champions_child STORAGE BYTES`.

A question is a line of JSON on stdin, its rows lie in a folder, and the answer is left there; a line of JSON says so,
or what is wrong. Models stay in memory up to BYTES, and a release as long as it is in force.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import sys
import time
from dataclasses import replace

from tuning.basics.documents import Json
from tuning.basics.wording import raised
from tuning.errors import TuningError
from tuning.models.kept_models import KeptModels
from tuning.runs.prediction.rows import PredictedRows, predict_by
from tuning.service.extract_child import write_predictions
from tuning.service.kept_children import IDLE_S
from tuning.serving.models import ReleaseModels
from tuning.serving.releases import Releases

LOOK_S = 1.0  # between two looks for a newer release

Place = tuple[str, str, str, str | None]  # name of the champions, run, model_path, model_sha256


class ServedChampions:
    """The champions of a team, and their models as they are asked for.

    storage: the team's. most: bytes of models in memory.
    """

    def __init__(self, storage: str, most: int) -> None:
        self._storage = storage
        self._kept: KeptModels[Place] = KeptModels(most, lambda place: self._current[place[0]].load(*place[1:]))
        self._current: dict[str, ReleaseModels] = {}
        self._newest: dict[str, tuple[float, int]] = {}  # when somebody looked, and the number that was seen

    def predict(self, name: str, file: str, customer: str | None, interval: float | None) -> PredictedRows:
        """The rows of a file by the champions of a name. Columns say what has answered, and of which release."""
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


def answer(champions: ServedChampions, asked: Json) -> dict[str, str]:
    """Leave an answer in the folder of a question; what is wrong, if anything."""
    try:
        os.chdir(asked["folder"])
        write_predictions(
            lambda file: champions.predict(asked["name"], file, asked["customer"], asked["interval"]),
            asked["most"],
            asked["formulas"],
        )
    except TuningError as error:
        return {"error": type(error).__name__, "reason": str(error), "key": error.key}
    except (Exception, SystemExit) as error:  # of a model
        return {"error": "RunError", "reason": raised(error), "key": ""}
    return {}


def main() -> None:
    champions = ServedChampions(sys.argv[1], int(sys.argv[2]))
    with open(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what models print is no answer
        waiting = select.poll()
        waiting.register(0, select.POLLIN)
        while waiting.poll(IDLE_S * 1000):
            line = sys.stdin.buffer.readline()
            if not line:
                return
            told = answer(champions, json.loads(line))
            with contextlib.suppress(OSError):
                os.chdir("/")
            answers.write(f"{json.dumps(told)}\n")
            answers.flush()


if __name__ == "__main__":
    main()
