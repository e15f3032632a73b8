"""Ridge regression (scikit-learn's `Ridge`); steps are the folds. Parameter: alpha."""

from __future__ import annotations

from tuning.models.base import Configuration, Estimator, Matrix
from tuning.models.estimators import LinearFamily
from tuning.preprocessing.task import REGRESSION, Task


class RidgeFamily(LinearFamily):
    name = "ridge"
    tasks = frozenset({REGRESSION})
    simpler = (("alpha", "larger"),)

    def build(self, config: Configuration, train: Matrix, task: Task, seed: int) -> Estimator:
        from sklearn.linear_model import Ridge

        return Ridge(**config)


FAMILY = RidgeFamily()
