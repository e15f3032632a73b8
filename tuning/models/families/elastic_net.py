"""Linear regression with a mixed L1 and L2 penalty (scikit-learn's `ElasticNet`); steps are the folds.

Parameters: alpha, for a target of variance 1 as with `lasso` (default 0.01), and l1_ratio.
"""

from __future__ import annotations

from tuning.models.base import Config, EncodedRows, Estimator
from tuning.models.estimators import LinearFamily, sklearn_seed
from tuning.preprocessing.task import REGRESSION, Task


class ElasticNetFamily(LinearFamily):
    name = "elastic_net"
    tasks = frozenset({REGRESSION})
    standardise_target = True
    simpler = (("alpha", "larger"), ("l1_ratio", "larger"))

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.linear_model import ElasticNet

        return ElasticNet(**{"alpha": 0.01, "random_state": sklearn_seed(seed), **config})


FAMILY = ElasticNetFamily()
