"""Ridge regression (scikit-learn's `Ridge`); steps are the folds. Parameter: alpha."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuning.models.base import Matrix
from tuning.models.estimators import LinearFamily
from tuning.preprocessing.task import REGRESSION, Task


class RidgeFamily(LinearFamily):
    name = "ridge"
    tasks = frozenset({REGRESSION})

    def build(self, config: Mapping[str, Any], train: Matrix, task: Task, seed: int) -> Any:
        from sklearn.linear_model import Ridge

        return Ridge(**config)


FAMILY = RidgeFamily()
