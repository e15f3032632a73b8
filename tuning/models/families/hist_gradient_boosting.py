"""Histogram gradient boosting (scikit-learn's `HistGradientBoosting*`); a step is ten iterations.

Missing values and text columns are handled natively. Parameters: learning_rate, max_leaf_nodes,
min_samples_leaf, l2_regularization, max_depth, max_features, …; max_iter sets the length of a full trial
(default 100).

scikit-learn's own warm start bins the rows again and predicts them with all earlier trees at each call: with
20,000 rows and steps of ten iterations that is four times the cost of one long fit. So while a trial grows,
its estimator keeps binned rows (per fold, shared by all trials) and running predictions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tuning.models.base import Configuration, Grown, Matrix, Model, SteppedFamily, full_decision, full_proba
from tuning.models.compute import limited_threads, threads
from tuning.models.estimators import constant, lean, rows_of_a_leaf, single_class, sklearn_seed
from tuning.preprocessing.task import Prediction, Task

if TYPE_CHECKING:
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
    from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting

#: The plain estimator as it was, and its running predictions of the training and of the validation rows.
GrowingState: TypeAlias = "tuple[BaseHistGradientBoosting, np.ndarray | None, np.ndarray]"

MAX_CATEGORIES = 255  # scikit-learn's limit; a column with more is taken as a number
SAMPLED_ROWS = 200_000  # above this scikit-learn finds bin borders on a sample, which depends on the seed


class HistGradientBoostingFamily(SteppedFamily):
    name = "hist_gradient_boosting"
    encoding = "ordinal"
    scale = False
    length = "max_iter"
    step_length = 10
    total_steps = 10
    frozen = frozenset({"max_bins", "loss"})
    simpler = (("max_leaf_nodes", "smaller"), ("min_samples_leaf", "larger"), ("l2_regularization", "larger"))

    def fit(self, config: Configuration, train: Matrix, task: Task, seed: int, steps: int | None = None) -> Model:
        if single_class(train, task):
            return constant(train)
        params = self._params(config, train, seed, self.units(config, steps))
        with lean(self.name, config):
            return _estimator(task)(**params).fit(train.X, train.y, sample_weight=train.weight)

    def grow(
        self,
        config: Configuration,
        train: Matrix,
        valid: Matrix,
        task: Task,
        seed: int,
        state: GrowingState | None = None,
    ) -> Iterator[Grown]:
        if single_class(train, task):
            yield from self.repeat(constant(train), config, valid, task, state)
            return
        model, raw = _restored(state) if state else (_growing(_estimator(task))(), None)
        model.rows = train
        if state:
            config = {**config, **{name: getattr(model, name) for name in self.frozen}}
        done = 0 if raw is None else model.n_iter_
        while done < self.units(config):
            wanted = min(done + self.step_length, self.units(config))
            model.set_params(**self._params(config, train, seed, wanted), warm_start=True)
            with lean(self.name, config):
                model.fit(train.X, train.y, sample_weight=train.weight)
            raw = model.add_predictions(valid, raw, done)
            done = wanted
            yield _prediction(model, raw, task), partial(_frozen, model, raw)

    def fitted(self, state: GrowingState, train: Matrix, task: Task, seed: int) -> Model:
        return constant(train) if single_class(train, task) else copy.copy(state[0]).set_params(warm_start=False)

    def predict(self, model: Model, rows: Matrix, task: Task) -> Prediction:
        with limited_threads():
            return super().predict(model, rows, task)

    @staticmethod
    def _params(config: Configuration, train: Matrix, seed: int, iterations: int) -> dict[str, object]:
        categorical = [
            column for column in train.categorical if np.nanmax(train.X[:, column], initial=0) < MAX_CATEGORIES
        ]
        return {
            "early_stopping": False,  # the scheduler's task
            **config,
            "min_samples_leaf": rows_of_a_leaf(config.get("min_samples_leaf", 20), train),
            "max_iter": iterations,
            "categorical_features": categorical or None,
            "random_state": sklearn_seed(seed),
        }


def _estimator(task: Task) -> Callable[..., BaseHistGradientBoosting]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return HistGradientBoostingClassifier if task.classification else HistGradientBoostingRegressor


@cache
def _growing(estimator: type[BaseHistGradientBoosting]) -> type[BaseHistGradientBoosting]:
    """The estimator's class with what it computes anew at every warm start kept instead."""

    class Growing(estimator):
        rows: Matrix  # the training rows, with what is kept about them
        _bin_mapper: _BinMapper
        prepared: np.ndarray | None = None  # those rows as `fit` checks and reorders them
        trained: np.ndarray | None = None  # running predictions of the training rows, updated in place by `fit`

        def _key(self) -> tuple[Hashable, ...]:
            sampled = self.random_state if len(self.rows.X) > SAMPLED_ROWS else None
            return ("hist_gradient_boosting", self.max_bins, tuple(self.categorical_features or ()), sampled)

        def _preprocess_X(self, X: np.ndarray, *, reset: bool) -> np.ndarray:  # noqa: N802  # scikit-learn's name
            if reset and self.prepared is not None:
                return self.prepared
            prepared = super()._preprocess_X(X, reset=reset)
            if reset:
                self.prepared = prepared
            return prepared

        def _bin_data(self, X: np.ndarray, sample_weight: np.ndarray | None, is_training_data: bool) -> np.ndarray:
            kept = self.rows.cache
            if self._key() not in kept:
                binned = super()._bin_data(X, sample_weight, is_training_data)
                kept[self._key()] = (self._bin_mapper, binned)
            self._bin_mapper, binned = kept[self._key()]
            return binned

        def _raw_predict(self, X: np.ndarray, n_threads: int | None = None) -> np.ndarray:
            if self.trained is None:
                self.trained = super()._raw_predict(X, n_threads)
            return self.trained

        def add_predictions(self, rows: Matrix, raw: np.ndarray | None, done: int) -> np.ndarray:
            """Raw predictions of other rows: those of the first `done` iterations plus the newer ones."""
            if self._key() not in rows.cache:
                prepared = super()._preprocess_X(rows.X, reset=False)
                rows.cache[self._key()] = np.ascontiguousarray(self._bin_mapper.transform(prepared))
            if raw is None:
                shape = (len(rows.X), self.n_trees_per_iteration_)
                raw = np.zeros(shape, dtype=self._baseline_prediction.dtype, order="F") + self._baseline_prediction
            else:
                raw = raw.copy(order="F")
            self._predict_iterations(rows.cache[self._key()], self._predictors[done:], raw, True, threads())
            return raw

    return Growing


def _frozen(model: BaseHistGradientBoosting, raw: np.ndarray) -> GrowingState:
    """(plain estimator as it is now, running predictions of training rows, of validation rows)."""
    plain = copy.copy(model)
    plain.__class__ = type(model).__mro__[1]
    plain._predictors = list(model._predictors)
    plain._feature_subsample_rng = copy.deepcopy(model._feature_subsample_rng)
    for kept in ("rows", "trained", "prepared"):
        plain.__dict__.pop(kept, None)
    return plain, None if model.trained is None else model.trained.copy(order="F"), raw


def _restored(state: GrowingState) -> tuple[BaseHistGradientBoosting, np.ndarray]:
    """The opposite of `_frozen`; the state itself stays as it is."""
    plain, trained, raw = state
    model = copy.copy(plain)
    model._predictors = list(plain._predictors)
    model._feature_subsample_rng = copy.deepcopy(plain._feature_subsample_rng)
    model.__class__ = _growing(plain.__class__)
    model.trained = None if trained is None else trained.copy(order="F")
    return model, raw


def _prediction(model: BaseHistGradientBoosting, raw: np.ndarray, task: Task) -> Prediction:
    if not task.classification:
        return Prediction(values=model._loss.link.inverse(raw.ravel()))
    proba = full_proba(model._loss.predict_proba(raw), model.classes_, task)
    decision = full_decision(raw, task) if len(model.classes_) == len(task.classes) else None
    return Prediction(values=proba.argmax(axis=1), proba=proba, decision=decision)


FAMILY = HistGradientBoostingFamily()
