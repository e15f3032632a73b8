"""Support vector machine with a kernel (scikit-learn's `SVR`, `SVC`, RBF by default); steps are the folds.

Parameters: C, gamma, epsilon, kernel, for a target of variance 1 in regression. Classes have decision values, not
probabilities; with `probability: true` they are calibrated by cross-validation (three further fits). Training
takes time that grows with the square of the rows.
"""

from __future__ import annotations

from tuning.models.base import Config, EncodedRows, Estimator
from tuning.models.estimators import EstimatorFamily, calibrated
from tuning.preprocessing.task import Task


class SVMFamily(EstimatorFamily):
    name = "svm"
    simpler = (("C", "smaller"), ("gamma", "smaller"))

    def probabilities(self, config: Config) -> bool:
        return bool(config.get("probability", False))

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.compose import TransformedTargetRegressor
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC, SVR

        params = {name: value for name, value in config.items() if name != "probability"}
        if not task.classification:
            return TransformedTargetRegressor(SVR(**params), transformer=StandardScaler(), check_inverse=False)
        return calibrated(SVC(**params), train) if self.probabilities(config) else SVC(**params)


FAMILY = SVMFamily()
