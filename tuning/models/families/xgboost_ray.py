"""XGBoost on several processes: the actors of XGBoost-Ray, which read their shards of the rows themselves.

Parameters, steps and saved models are those of `xgboost`. Beside them a configuration has `actors`, `cpus_per_actor`,
`gpus_per_actor` and `recovery` (`tuning.models.gang`). The folds of a trial are trained at the same time: each actor's
CPUs and GPU are divided among them. Where a process has no place for actors
(`tuning.models.shards`), as while a plan is made or without Ray, `xgboost` itself trains in it.

The trial's own process encodes the rows and writes the shards. After each step it gets the model, and predicts with
the trees that are new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tuning.models.base import Configuration, Grown, Matrix, State
from tuning.models.estimators import float32
from tuning.models.families.xgboost import XGBoostFamily, feature_types, prediction_of
from tuning.models.gang import Gang, without_gang
from tuning.models.shards import Place, place_of_gangs, shards_of
from tuning.models.xgboost_ray_adapter import Training, Work, unsuitable
from tuning.preprocessing.task import Prediction, Task

if TYPE_CHECKING:
    from xgboost import Booster

TREES = ("gbtree", None)  # boosters whose trees never change once they are there


class XGBoostRayFamily(XGBoostFamily):
    name = "xgboost_ray"

    def untrainable(self) -> str:
        return unsuitable()

    def gang(self, config: Configuration) -> Gang:
        return Gang.of(config)

    def fit(self, config: Configuration, train: Matrix, task: Task, seed: int, steps: int | None = None) -> Booster:
        place = place_of_gangs()
        if place is None:
            return super().fit(without_gang(config), train, task, seed, steps)
        length = self.units(config, steps)
        training = self._training({**config, self.length: length}, train, task, seed, None, place, 1)
        try:
            ((_, model),) = deque(training, maxlen=1)
        finally:
            training.close()
        return self.load(self.file, model)

    def grow(
        self, config: Configuration, train: Matrix, valid: Matrix, task: Task, seed: int, state: State = None
    ) -> Iterator[Grown]:
        for (grown,) in self.grow_folds(config, [(train, valid)], task, seed, [state]):
            yield grown

    def grow_folds(
        self,
        config: Configuration,
        folds: Sequence[tuple[Matrix, Matrix]],
        task: Task,
        seed: int,
        states: Sequence[State],
    ) -> Generator[tuple[Grown, ...], None, None]:
        place = place_of_gangs()
        if place is None:
            alone = without_gang(config)
            growing = [
                XGBoostFamily.grow(self, alone, *fold, task, seed, state)
                for fold, state in zip(folds, states, strict=True)
            ]
            yield from zip(*growing, strict=True)
            return
        trainings: list[Training] = []
        try:
            for (rows, _), state in zip(folds, states, strict=True):
                trainings.append(self._training(config, rows, task, seed, state, place, len(folds)))
            unseen = [
                _Unseen(valid, task, self.load(self.file, state) if state else None, config.get("booster") in TREES)
                for (_, valid), state in zip(folds, states, strict=True)
            ]
            for together in zip(*trainings, strict=True):
                yield tuple(
                    (each.prediction(self.load(self.file, model)), partial(bytearray, model))
                    for each, (_, model) in zip(unseen, together, strict=True)
                )
        finally:
            for training in trainings:
                training.close()

    def _training(
        self, config: Configuration, rows: Matrix, task: Task, seed: int, state: State, place: Place, folds: int
    ) -> Training:
        gang = self.gang(config)
        work = self.work(without_gang(config), gang, rows, task, seed, folds, place.folder, state)
        return Training(work, gang, place.group, share=1 / folds)

    def work(
        self,
        config: Configuration,
        gang: Gang,
        rows: Matrix,
        task: Task,
        seed: int,
        folds: int,
        folder: str,
        state: State = None,
    ) -> Work:
        """What the actors of a gang are to train; the rows' shards are written into a folder.

        config: of `xgboost`. folds: how many trainings share the actors' bundles. state: to go on from.
        """
        params = {
            **self._params(config, rows, task, seed),
            "nthread": max(1, int(gang.cpus_per_actor // folds)),
        }
        if gang.gpus_per_actor:
            params["device"] = "cuda"
        return Work(
            shards_of(rows, gang.actors, folder),
            rows.weight is not None,
            feature_types(rows),
            params,
            self.units(config),
            self.step_length,
            bytes(state) if state else None,
        )


class _Unseen:
    """What a growing model says of rows it has not seen: each step adds what its new trees say.

    steady: whether the trees before stay as they are.
    """

    def __init__(self, rows: Matrix, task: Task, model: Booster | None, steady: bool) -> None:
        import xgboost

        self.task, self.steady, self.done = task, steady, 0
        self.rows = xgboost.DMatrix(
            float32(rows), feature_types=feature_types(rows), enable_categorical=True, nthread=1
        )
        if model is not None:
            self._add(model)

    def prediction(self, model: Booster) -> Prediction:
        """What the model after a step says."""
        new = (self.done, model.num_boosted_rounds()) if self.steady else (0, 0)
        said = model.predict(self.rows, iteration_range=new)
        self._add(model)
        return prediction_of(said, self.task)

    def _add(self, model: Booster) -> None:
        if self.steady:
            rounds = model.num_boosted_rounds()
            margin = model.predict(self.rows, output_margin=True, iteration_range=(self.done, rounds))
            self.rows.set_base_margin(margin)
            self.done = rounds


FAMILY = XGBoostRayFamily()
