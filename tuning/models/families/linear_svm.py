"""Linear support vector machine (scikit-learn's `LinearSVR`, `LinearSVC`); steps are the folds.

Parameters: C, epsilon and loss, for a target of variance 1 in regression. Classes have decision values, not
probabilities; with `probability: true` they are calibrated by cross-validation (three further fits).
"""

from __future__ import annotations

from tuning.models.base import Config, EncodedRows, Estimator
from tuning.models.estimators import LinearFamily, calibrated, sklearn_seed
from tuning.preprocessing.task import Task


class LinearSVMFamily(LinearFamily):
    name = "linear_svm"
    standardise_target = True
    simpler = (("C", "smaller"),)

    def probabilities(self, config: Config) -> bool:
        return bool(config.get("probability", False))

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.svm import LinearSVC, LinearSVR

        params = {name: value for name, value in config.items() if name != "probability"}
        estimator = (LinearSVC if task.classification else LinearSVR)(**{"random_state": sklearn_seed(seed), **params})
        return calibrated(estimator, train) if task.classification and self.probabilities(config) else estimator


FAMILY = LinearSVMFamily()
