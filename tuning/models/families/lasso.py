"""Linear regression with an L1 penalty (scikit-learn's `Lasso`); steps are the folds.

Parameter: alpha, for a target of variance 1 (it is standardised while fitting, see docs/models.md); scikit-learn's
own default of 1 would leave nothing but the mean there, so ours is 0.01.
"""

from __future__ import annotations

from tuning.models.base import Config, EncodedRows, Estimator
from tuning.models.estimators import LinearFamily, sklearn_seed
from tuning.preprocessing.task import REGRESSION, Task


class LassoFamily(LinearFamily):
    name = "lasso"
    tasks = frozenset({REGRESSION})
    standardise_target = True
    simpler = (("alpha", "larger"),)

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.linear_model import Lasso

        return Lasso(**{"alpha": 0.01, "random_state": sklearn_seed(seed), **config})


FAMILY = LassoFamily()
