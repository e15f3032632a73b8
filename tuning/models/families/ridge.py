"""Ridge regression (scikit-learn's `Ridge`); steps are the folds. Parameter: alpha."""

from __future__ import annotations

import numpy as np

from tuning.models.base import Config, EncodedRows, Estimator, Model
from tuning.models.compute import limited_threads
from tuning.models.estimators import LinearFamily
from tuning.preprocessing.task import REGRESSION, Task

SURE = 1e-6  # from this penalty on, scaled rows always have the solution that Cholesky's method finds


class RidgeFamily(LinearFamily):
    name = "ridge"
    tasks = frozenset({REGRESSION})
    simpler = (("alpha", "larger"),)

    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        from sklearn.linear_model import Ridge

        return Ridge(**config)

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        """What `Ridge.fit` makes, to the last bit, by the functions that it calls itself: the input's checks are most
        of a small fit."""
        alpha = config.get("alpha")
        if set(config) != {"alpha"} or not isinstance(alpha, float) or not alpha >= SURE:
            return super().fit(config, train, task, seed, steps)
        model: Model = self.build(config, train, task, seed)
        X, _, centre, mean = _centred(train)
        with limited_threads():
            model.coef_ = _by_cholesky(train, alpha)
            if model.coef_ is None:
                model.coef_ = _by_ridge_regression(train, alpha)
        model.intercept_ = mean - centre @ model.coef_
        model.n_features_in_, model.n_iter_, model.solver_ = X.shape[1], None, "cholesky"
        return model


def _by_ridge_regression(train: EncodedRows, alpha: float) -> np.ndarray:
    import sklearn
    from sklearn.linear_model import ridge_regression

    X, y, *_ = _centred(train)
    with sklearn.config_context(skip_parameter_validation=True):
        found: np.ndarray = ridge_regression(
            X, y, alpha, sample_weight=train.weight, solver="cholesky", check_input=False
        )
    return found


def _by_cholesky(train: EncodedRows, alpha: float) -> np.ndarray | None:
    """The coefficients by LAPACK itself, of products that all penalties share; None where scikit-learn does more.

    That is with weights, with more columns than rows, and where the method fails.
    """
    from scipy.linalg.lapack import dposv

    X, y, *_ = _centred(train)
    rows, columns = X.shape
    if train.weight is not None or not rows >= columns > 1 or X.dtype != np.float64:
        return None
    if "products" not in train.cache:
        train.cache["products"] = X.T @ X, X.T @ y.reshape(-1, 1)
    of_columns, with_target = train.cache["products"]
    penalised = of_columns.copy()
    penalised.flat[:: columns + 1] += alpha
    _, found, failed = dposv(penalised, with_target)
    return None if failed or not np.isfinite(found).all() else found[:, 0]


def _average(values: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """`numpy.average`, which takes longer than the sum of a few rows."""
    found: np.ndarray = (
        np.add.reduce(values) / len(values) if weight is None else np.average(values, axis=0, weights=weight)
    )
    return found


def _centred(train: EncodedRows) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Return (X, y, mean of X, mean of y) with the means taken off, computed once for all penalties."""
    if "centred" not in train.cache:
        y = np.asarray(train.y, dtype=train.X.dtype)
        centre, mean = (_average(values, train.weight) for values in (train.X, y))
        train.cache["centred"] = train.X - centre, y - mean, centre, mean
    return train.cache["centred"]


FAMILY = RidgeFamily()
