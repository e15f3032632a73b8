"""Logistic regression (scikit-learn's `LogisticRegression`, L2); steps are the folds. Parameter: C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuning.models.base import CLASSIFICATION, Matrix
from tuning.models.estimators import EstimatorFamily, sklearn_seed
from tuning.preprocessing.task import Task


class LogisticFamily(EstimatorFamily):
    name = "logistic"
    tasks = CLASSIFICATION

    def build(self, config: Mapping[str, Any], train: Matrix, task: Task, seed: int) -> Any:
        from sklearn.linear_model import LogisticRegression

        return LogisticRegression(**{"max_iter": 200, "random_state": sklearn_seed(seed), **config})


FAMILY = LogisticFamily()
