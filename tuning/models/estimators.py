"""What families made of scikit-learn estimators share: checked once, fitted lean, no fold is too poor."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tuning.basics.wording import did_you_mean
from tuning.models.base import Config, EncodedRows, Estimator, Family, Model
from tuning.models.compute import limited_threads
from tuning.preprocessing.task import Prediction, Task
from tuning.storage.data_roots import EVERYWHERE, VARIABLE, DataRoots

if TYPE_CHECKING:
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.dummy import DummyClassifier


class EstimatorFamily(Family):
    """A family that is one scikit-learn estimator, fitted in one go; a trial's steps are the folds.

    weighted: the estimator takes `sample_weight`; without it weights are not used.
    standardise_target: regression targets have mean 0 and variance 1 while fitting, so that penalties and
        tolerances mean the same for every customer; predictions are in the data's own units.
    """

    weighted: ClassVar[bool] = True
    standardise_target: ClassVar[bool] = False

    @abstractmethod
    def build(self, config: Config, train: EncodedRows, task: Task, seed: int) -> Estimator:
        """Return the unfitted estimator."""

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        if single_class(train, task):
            return constant(train)
        estimator = self.build(config, train, task, seed)
        y, mean, scale = train.y, 0.0, 1.0
        if self.standardise_target and not task.classification:
            y, mean, scale = standardised(train)
        extra = {} if train.weight is None or not self.weighted else {"sample_weight": train.weight}
        with lean(self.name, config):
            estimator.fit(train.X, y, **extra)
        return estimator if scale == 1.0 and mean == 0.0 else self.restore_units(estimator, mean, scale)

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        import sklearn

        with limited_threads(), sklearn.config_context(assume_finite=True):
            return super().predict(model, rows, task)

    def restore_units(self, model: Model, mean: float, scale: float) -> Model:
        """Return a model fitted on a standardised target, in the target's own units."""
        raise NotImplementedError


class LinearFamily(EstimatorFamily):
    """An estimator whose regressor is `coef_` and `intercept_`."""

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        if task.classification:
            return super().predict(model, rows, task)
        return Prediction(values=rows.X @ model.coef_ + model.intercept_)  # what `predict` does after its checks

    def restore_units(self, model: Model, mean: float, scale: float) -> Model:
        model.coef_ = model.coef_ * scale
        model.intercept_ = model.intercept_ * scale + mean
        return model


def sklearn_seed(seed: int) -> int:
    """Return a study's seed in the range that scikit-learn takes."""
    return seed % 2**32


def check_names(family: Family, config: Config, known: Collection[str]) -> None:
    """`TypeError` for a parameter that the library would ignore silently, or by which it would get around the roots."""
    for name in config:
        if name not in known:
            raise TypeError(f"{family.name} has no parameter {name!r}.{did_you_mean(name, known)}")
        if name in family.opens and DataRoots.of_process() != EVERYWHERE:
            raise TypeError(
                f"{name!r} names a file or an address, which {family.name} opens by itself; that is not allowed where "
                f"{VARIABLE} is set. Leave it out"
            )


def single_class(train: EncodedRows, task: Task) -> bool:
    """Return whether the training rows hold one class only (a fold of a rare class, an early time fold)."""
    return task.classification and bool((train.y == train.y[0]).all())


def with_own_classes(model: Model, rows: EncodedRows, prediction: Prediction) -> Prediction:
    """Return a prediction with the classes that the model's own `predict` says.

    They need not be the most probable ones: a classifier may have a threshold of its own.
    """
    if prediction.proba is None:
        return prediction
    return replace(prediction, values=np.asarray(model.predict(rows.X)).reshape(-1).astype(np.int64))


def rows_of_a_leaf(wanted: int, train: EncodedRows) -> int:
    """The least rows of a leaf, at most a fifth of the training rows: with more, few rows cannot be split at all."""
    return min(wanted, max(1, len(train.X) // 5))


def constant(train: EncodedRows) -> DummyClassifier:
    """Return the only model that one class allows: it always says that class."""
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior").fit(train.X, train.y, train.weight)


def calibrated(estimator: Estimator, train: EncodedRows) -> CalibratedClassifierCV:
    """Return a classifier without probabilities, with sigmoid-calibrated ones (what SVC's `probability=True` was)."""
    from sklearn.calibration import CalibratedClassifierCV

    fewest = int(np.unique(train.y, return_counts=True)[1].min())
    if fewest < 2:
        raise ValueError(
            "probability: true needs at least two training rows of every class, one class has a single one"
        )
    return CalibratedClassifierCV(estimator, cv=min(3, fewest), ensemble=False)


def standardised(train: EncodedRows) -> tuple[np.ndarray, float, float]:
    """Return (y with mean 0 and variance 1, mean, scale) of a regression target, computed once for the same rows."""
    if "standardised" not in train.cache:
        mean, scale = float(train.y.mean()), float(train.y.std())
        scale = scale if scale > 0.0 else 1.0
        train.cache["standardised"] = ((train.y - mean) / scale, mean, scale)
    return train.cache["standardised"]


def float32(rows: EncodedRows) -> np.ndarray:
    """X as trees want it, converted once for the same rows; numbers beyond float32 become its largest."""
    if "float32" not in rows.cache:
        limit = np.finfo(np.float32).max
        rows.cache["float32"] = np.ascontiguousarray(np.clip(rows.X, -limit, limit), dtype=np.float32)
    return rows.cache["float32"]


# Family -> the configuration of its last fit.
_checked: dict[str, Config] = {}


@contextmanager
def lean(family: str, config: Config) -> Iterator[None]:
    """Around an estimator's own fit, which checks its parameters: what is known to be right is not checked again.

    Not converged is a score like any other. Rows are finite (or NaN where a family wants them) by their encoding.
    Parameters are checked in the first fit of a configuration (its first fold), not in the following ones: the
    checks are a sixth of a small fit.
    """
    import sklearn
    from sklearn.exceptions import ConvergenceWarning

    known = _checked.get(family) == config
    with (
        limited_threads(),
        warnings.catch_warnings(),
        sklearn.config_context(assume_finite=True, skip_parameter_validation=known),
    ):
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
    _checked[family] = dict(config)
