"""What is known without looking at a row (scikit-learn's dummies); steps are the folds. Parameter: strategy.

`strategy` is "mean" or "median" of a regression's target. Classes have one only, their shares.
"""

from __future__ import annotations

import numpy as np

from tuning.models.base import Config, EncodedRows, Estimator, Model
from tuning.models.estimators import EstimatorFamily
from tuning.preprocessing.encoding import medians
from tuning.preprocessing.task import Task

EASY: tuple[Config, ...] = ({"strategy": "mean"}, {"strategy": "median"})


class ConstantFamily(EstimatorFamily):
    name = "constant"

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.dummy import DummyClassifier, DummyRegressor

        return DummyClassifier(**config) if task.classification else DummyRegressor(**config)

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        """What scikit-learn's dummy makes, to the last bit; of a target without weights without its checks."""
        if task.classification or train.weight is not None or config not in EASY:
            return super().fit(config, train, task, seed, steps)
        model: Model = self.build(config, train, task, seed)
        model.n_features_in_, model.n_outputs_ = train.X.shape[1], 1
        model.constant_ = statistic_of(train.y, config["strategy"]).reshape(1, -1)
        return model


def statistic_of(y: np.ndarray, name: str) -> np.ndarray:
    """(1,) the mean or the median of a target (n,)."""
    column = y.reshape(-1, 1)
    if name == "median":
        return medians(column)
    found: np.ndarray = np.add.reduce(column) / len(column)
    return found


FAMILY = ConstantFamily()
