"""Linear models by stochastic gradient descent (scikit-learn's `SGDRegressor`, `SGDClassifier`); a step is five epochs.

Parameters: alpha, penalty, l1_ratio, eta0, loss ("log_loss" for classes, so that there are probabilities),
learning_rate ("invscaling" by default); max_iter sets the epochs of a full trial (default 100).
"""

from __future__ import annotations

from tuning.models.base import Config, EncodedRows, Estimator, Model
from tuning.models.epoch_training import EpochFamily
from tuning.models.estimators import with_own_classes
from tuning.preprocessing.task import Prediction, Task

WITH_PROBABILITIES = ("log_loss", "modified_huber")


class SGDFamily(EpochFamily):
    name = "sgd"
    step_length = 5
    total_steps = 20
    frozen = frozenset({"average", "loss"})
    simpler = (("alpha", "larger"),)

    def probabilities(self, config: Config) -> bool:
        return config.get("loss", "log_loss") in WITH_PROBABILITIES

    def build(self, config: Config, task: Task) -> Estimator:
        from sklearn.linear_model import SGDClassifier, SGDRegressor

        params = {"learning_rate": "invscaling", "eta0": 0.01, **config}
        params.pop(self.length, None)
        if task.classification:
            return SGDClassifier(**{"loss": "log_loss", **params})
        return SGDRegressor(**params)

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        prediction = super().predict(model, rows, task)
        # Its probabilities are cut off at 0 and 1, so several classes may have the same.
        return (
            with_own_classes(model, rows, prediction) if getattr(model, "loss", "") == "modified_huber" else prediction
        )

    def restore_units(self, model: Model, mean: float, scale: float) -> None:
        model.coef_ = model.coef_ * scale
        model.intercept_ = model.intercept_ * scale + mean


FAMILY = SGDFamily()
