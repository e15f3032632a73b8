"""k nearest neighbours (scikit-learn's `KNeighborsRegressor`, `KNeighborsClassifier`); steps are the folds.

Parameters: n_neighbors (clipped to the number of training rows), weights, p. Sample weights are not used.
"""

from __future__ import annotations

from tuning.models.base import Config, EncodedRows, Estimator, Model
from tuning.models.compute import threads
from tuning.models.estimators import EstimatorFamily
from tuning.preprocessing.task import Prediction, Task

# Measured with 8 columns: up to some thousand rows comparing with every row beats a tree (0.4 against 1.2 ms
# for 333 rows, 12 against 24 ms for 3,000); in many dimensions it always does.
BRUTE_ROWS, BRUTE_COLUMNS = 10_000, 15


class KNeighborsFamily(EstimatorFamily):
    name = "knn"
    weighted = False
    simpler = (("n_neighbors", "larger"),)

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

        rows, columns = train.X.shape
        few = rows <= BRUTE_ROWS or columns > BRUTE_COLUMNS
        params = {"algorithm": "brute" if few else "kd_tree", **config}
        params["n_neighbors"] = min(params.get("n_neighbors", 5), rows)
        return (KNeighborsClassifier if task.classification else KNeighborsRegressor)(**params)

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        from joblib import parallel_config

        with parallel_config(n_jobs=threads()):  # of searches in a tree; others have OpenMP's threads
            return super().predict(model, rows, task)


FAMILY = KNeighborsFamily()
