"""Multi-layer perceptron (scikit-learn's `MLPRegressor`, `MLPClassifier`); a step is ten epochs.

Parameters: alpha, learning_rate_init, batch_size, activation, solver ("adam" or "sgd"); the hidden layers as `width`
and `depth` (`depth` layers of `width` units each) or as hidden_layer_sizes; max_iter sets the epochs of a full
trial (default 200).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from tuning.models.base import Config, EncodedRows, Estimator, Model
from tuning.models.epoch_training import EpochFamily
from tuning.preprocessing.task import Task

#: Rows and target as scikit-learn trains on them.
Checked: TypeAlias = tuple[np.ndarray, np.ndarray]

WIDTH, DEPTH = 100, 1  # scikit-learn's default


class MLPFamily(EpochFamily):
    name = "mlp"
    step_length = 10
    total_steps = 20
    frozen = frozenset({"width", "depth", "hidden_layer_sizes", "solver"})
    simpler = (("depth", "smaller"), ("width", "smaller"), ("alpha", "larger"))

    def build(self, config: Config, task: Task) -> Estimator:
        from sklearn.neural_network import MLPClassifier, MLPRegressor

        params = dict(config)
        params.pop(self.length, None)
        width, depth = int(params.pop("width", WIDTH)), int(params.pop("depth", DEPTH))
        layers = params.pop("hidden_layer_sizes", (width,) * depth)
        layers = tuple(layers) if isinstance(layers, list | tuple) else (layers,)
        return (MLPClassifier if task.classification else MLPRegressor)(hidden_layer_sizes=layers, **params)

    def train_epochs(
        self, model: Model, config: Config, train: EncodedRows, y: np.ndarray, task: Task, epochs: int
    ) -> None:
        """As `partial_fit` does it, which checks and encodes the same rows again for half of an epoch's time."""
        check: Callable[..., Checked] = model._validate_input
        checked: list[Checked] = []

        def once(X: np.ndarray, y: np.ndarray, incremental: bool, reset: bool) -> Checked:
            if reset or not checked:
                checked[:] = [check(X, y, incremental, reset)]
            return checked[0]

        model._validate_input = once
        try:
            super().train_epochs(model, config, train, y, task, epochs)
        finally:
            del model._validate_input

    def reconfigure(self, model: Model, config: Config, task: Task) -> Model:
        model = super().reconfigure(model, config, task)
        # The optimizer was made by the first epoch and keeps its own learning rate.
        model._optimizer.learning_rate_init = model.learning_rate_init
        if model.learning_rate == "constant":
            model._optimizer.learning_rate = model.learning_rate_init
        return model

    def restore_units(self, model: Model, mean: float, scale: float) -> None:
        model.coefs_[-1] = model.coefs_[-1] * scale
        model.intercepts_[-1] = model.intercepts_[-1] * scale + mean


FAMILY = MLPFamily()
