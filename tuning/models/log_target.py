"""A regression target's logarithm, as the parameter `target` of any built-in family: `plain` or `log`.

A model of the logarithm errs in shares of what it predicts. What it predicts is in the target's own units, and so is
every score. Rows are encoded as for the family itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tuning.models.base import (
    Family,
    Grown,
    Hyperparameters,
    Matrix,
    Model,
    Stage,
    State,
    SteppedFamily,
)
from tuning.preprocessing.task import Prediction, Task

TARGET = "target"  # the parameter
PLAIN, LOG = "plain", "log"
LARGEST = 700.0  # whose exponential is finite


def in_logarithms(family: Family) -> Family:
    """The family, fitted to the logarithm of positive targets."""
    return _SteppedLogTarget(family) if isinstance(family, SteppedFamily) else _LogTarget(family)


class _LogTarget(Family):
    def __init__(self, family: Family) -> None:
        self.inner = family
        self.name, self.file = family.name, family.file  # type: ignore[misc]  # those of the family
        self.encoding, self.scale = family.encoding, family.scale  # type: ignore[misc]  # those of the family

    def fit(self, config: Hyperparameters, train: Matrix, task: Task, seed: int, steps: int | None = None) -> Model:
        return self.inner.fit(config, _logged(train), task, seed, steps)

    def predict(self, model: Model, rows: Matrix, task: Task) -> Prediction:
        return _restored(self.inner.predict(model, rows, task))

    def save(self, model: Model) -> tuple[str, bytes]:
        return self.inner.save(model)

    def load(self, name: str, content: bytes) -> Model:
        return self.inner.load(name, content)


class _SteppedLogTarget(_LogTarget, SteppedFamily):
    inner: SteppedFamily

    def __init__(self, family: SteppedFamily) -> None:
        super().__init__(family)
        self.length, self.step_length = family.length, family.step_length  # type: ignore[misc]  # those of the family
        self.total_steps = family.total_steps  # type: ignore[misc]  # those of the family

    def grow(
        self, config: Hyperparameters, train: Matrix, valid: Matrix, task: Task, seed: int, state: State = None
    ) -> Iterator[Grown]:
        for prediction, get_state in self.inner.grow(config, _logged(train), valid, task, seed, state):
            yield _restored(prediction), get_state

    def grow_folds(
        self,
        config: Hyperparameters,
        folds: Sequence[tuple[Matrix, Matrix]],
        task: Task,
        seed: int,
        states: Sequence[State],
    ) -> Iterator[tuple[Grown, ...]]:
        logged = [(_logged(train), valid) for train, valid in folds]
        for together in self.inner.grow_folds(config, logged, task, seed, states):
            yield tuple((_restored(prediction), get_state) for prediction, get_state in together)

    def fitted(self, state: State, train: Matrix, task: Task, seed: int) -> Model:
        return self.inner.fitted(state, _logged(train), task, seed)

    def fit_stages(self, stages: Sequence[Stage], train: Matrix, task: Task) -> Model:
        return self.inner.fit_stages(stages, _logged(train), task)


def _logged(rows: Matrix) -> Matrix:
    """The same rows with the logarithm of their target, and a cache of their own."""
    if "log target" not in rows.cache:
        rows.cache["log target"] = Matrix(rows.X, np.log(rows.y), rows.weight, rows.categorical)
    return rows.cache["log target"]


def _restored(prediction: Prediction) -> Prediction:
    return replace(prediction, values=np.exp(np.minimum(prediction.values, LARGEST)))
