"""What is known without looking at a row (scikit-learn's dummies); steps are the folds. Parameter: strategy.

`strategy` is "mean" or "median" of a regression's target. Classes have one only, their shares.
"""

from __future__ import annotations

from tuning.models.base import Config, EncodedRows, Estimator
from tuning.models.estimators import EstimatorFamily
from tuning.preprocessing.task import Task


class ConstantFamily(EstimatorFamily):
    name = "constant"

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.dummy import DummyClassifier, DummyRegressor

        return DummyClassifier(**config) if task.classification else DummyRegressor(**config)


FAMILY = ConstantFamily()
