"""Logistic regression (scikit-learn's `LogisticRegression`, L2); steps are the folds. Parameter: C."""

from __future__ import annotations

from tuning.models.base import CLASSIFICATION, Config, EncodedRows, Estimator
from tuning.models.estimators import EstimatorFamily, sklearn_seed
from tuning.preprocessing.task import Task


class LogisticFamily(EstimatorFamily):
    name = "logistic"
    tasks = CLASSIFICATION
    simpler = (("C", "smaller"),)

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(**{"max_iter": 200, "random_state": sklearn_seed(seed), **config})


FAMILY = LogisticFamily()
