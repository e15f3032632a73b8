"""What families trained by epochs share: passes over the rows with `partial_fit`, scored every few of them."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

from tuning.models.base import Config, EncodedRows, Estimator, Grown, Model, SteppedFamily
from tuning.models.estimators import constant, lean, single_class, sklearn_seed, standardised
from tuning.preprocessing.task import Prediction, Task

#: The estimator as it was, and the epochs it has been trained for.
EpochState: TypeAlias = tuple[Estimator, int]


class EpochFamily(SteppedFamily):
    """Epochs by `partial_fit`; regression targets have mean 0 and variance 1 while training.

    All classes of the task are told to the first epoch, so a class may be missing in the training rows. An
    estimator's own early stopping is not used: the scheduler stops trials, and every prefix is scored.
    """

    length = "max_iter"

    @abstractmethod
    def build(self, config: Config, task: Task) -> Estimator:
        """Return the untrained estimator."""

    def reconfigure(self, model: Model, config: Config, task: Task) -> Model:
        """Return a model trained so far, to continue with another configuration; what is frozen stays."""
        kept = {"random_state", *self.frozen}
        params = self.build(config, task).get_params()
        return model.set_params(**{name: value for name, value in params.items() if name not in kept})

    @abstractmethod
    def restore_units(self, model: Model, mean: float, scale: float) -> None:
        """Change a regressor trained on a standardised target to the target's own units, in place."""

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        if single_class(train, task):
            return constant(train)
        model = self._seeded(config, task, seed)
        self.train_epochs(model, config, train, _target(train, task)[0], task, self.units(config, steps))
        return self._finished(model, train, task, seed)

    def grow(
        self,
        config: Config,
        train: EncodedRows,
        valid: EncodedRows,
        task: Task,
        seed: int,
        state: EpochState | None = None,
    ) -> Iterator[Grown]:
        if single_class(train, task):
            yield from self.repeat(constant(train), config, valid, task, state)
            return
        if state is None:
            model, done = self._seeded(config, task, seed), 0
        else:
            model, done = self.reconfigure(copy.deepcopy(state[0]), config, task), state[1]
        y, mean, scale = _target(train, task)
        while done < self.units(config):
            wanted = min(done + self.step_length, self.units(config))
            self.train_epochs(model, config, train, y, task, wanted - done)
            done = wanted
            answer = self.predict(model, valid, task)
            if not task.classification:
                answer = Prediction(values=answer.values * scale + mean)
            yield answer, partial(_frozen, model, done)

    def fitted(self, state: EpochState, train: EncodedRows, task: Task, seed: int) -> Model:
        if single_class(train, task):
            return constant(train)
        return self._finished(copy.deepcopy(state[0]), train, task, seed)

    def _finished(self, model: Model, train: EncodedRows, task: Task, seed: int) -> Model:
        """In the target's own units, with a plain seed."""
        if not task.classification:
            self.restore_units(model, *_target(train, task)[1:])
        return model.set_params(random_state=sklearn_seed(seed))

    def _seeded(self, config: Config, task: Task, seed: int) -> Model:
        """With a generator of its own, which continues from epoch to epoch: a plain seed would start each one alike."""
        return self.build(config, task).set_params(random_state=np.random.RandomState(sklearn_seed(seed)))

    def train_epochs(
        self, model: Model, config: Config, train: EncodedRows, y: np.ndarray, task: Task, epochs: int
    ) -> None:
        """Pass over the rows this many times."""
        extra = {} if train.weight is None else {"sample_weight": train.weight}
        with lean(self.name, config):
            for _ in range(epochs):
                if task.classification and not hasattr(model, "classes_"):
                    model.partial_fit(train.X, y, classes=np.arange(len(task.classes)), **extra)
                else:
                    model.partial_fit(train.X, y, **extra)


def _target(train: EncodedRows, task: Task) -> tuple[np.ndarray, float, float]:
    return (train.y, 0.0, 1.0) if task.classification else standardised(train)


def _frozen(model: Estimator, done: int) -> EpochState:
    return copy.deepcopy(model), done
