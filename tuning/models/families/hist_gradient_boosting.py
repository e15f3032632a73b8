"""Histogram gradient boosting (scikit-learn's `HistGradientBoosting*`); a step is ten iterations.

Missing values and text columns are handled natively. Parameters: learning_rate, max_leaf_nodes,
min_samples_leaf, l2_regularization, max_depth, max_features, …; max_iter sets the length of a full trial
(default 100).

scikit-learn's own warm start bins the rows again and predicts them with all earlier trees at each call, and so does a
prediction of the validation rows: half of a trial's time. So while a trial grows, its estimator keeps binned rows (per
fold, shared by all trials) and running predictions.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tuning.models.base import Config, EncodedRows, Grown, Model, SteppedFamily
from tuning.models.compute import limited_threads
from tuning.models.estimators import constant, lean, rows_of_a_leaf, single_class, sklearn_seed
from tuning.preprocessing.task import Prediction, Task

if TYPE_CHECKING:
    from sklearn.ensemble import HistGradientBoostingRegressor as Estimator  # or the classifier

#: The plain estimator as it was, and its running predictions of the training and of the validation rows.
GrowingState: TypeAlias = "tuple[Estimator, np.ndarray | None, np.ndarray]"

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

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        if single_class(train, task):
            return constant(train)
        params = self._params(config, train, seed, self.units(config, steps))
        with lean(self.name, config):
            return _estimator(task.classification)(**params).fit(train.X, train.y, sample_weight=train.weight)

    def grow(
        self,
        config: Config,
        train: EncodedRows,
        valid: EncodedRows,
        task: Task,
        seed: int,
        state: GrowingState | None = None,
    ) -> Iterator[Grown]:
        if single_class(train, task):
            yield from self.repeat(constant(train), config, valid, task, state)
            return
        model = _growing(task.classification)()
        if state:
            _continue(model, state)
            config = {**config, **{name: getattr(model, name) for name in self.frozen}}
        model.rows = train
        done = model.n_iter_ if state else 0
        while done < self.units(config):
            done = min(done + self.step_length, self.units(config))
            model.set_params(**self._params(config, train, seed, done), warm_start=True)
            with lean(self.name, config):
                model.fit(train.X, train.y, sample_weight=train.weight)
            yield self.predict(model, valid, task), partial(_frozen, model)

    def fitted(self, state: GrowingState, train: EncodedRows, task: Task, seed: int) -> Model:
        return constant(train) if single_class(train, task) else copy.copy(state[0]).set_params(warm_start=False)

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        with limited_threads():
            return super().predict(model, rows, task)

    @staticmethod
    def _params(config: Config, train: EncodedRows, seed: int, iterations: int) -> dict[str, object]:
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


def _estimator(classification: bool) -> type[Estimator]:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    return HistGradientBoostingClassifier if classification else HistGradientBoostingRegressor


@cache
def _growing(classification: bool) -> type[Estimator]:
    """scikit-learn's class with what it computes anew at every warm start kept instead.

    Its instances see two sets of rows: those that they are fitted on, and those of one fold that they predict.
    """

    estimator = _estimator(classification)

    class Growing(estimator):  # type: ignore[misc,valid-type]  # scikit-learn is imported here only
        _bin_mapper: object  # which bin each number falls into
        rows: EncodedRows  # the training rows, with what is kept about them
        trained: np.ndarray | None = None  # running predictions of the training rows, updated in place by `fit`
        unseen: np.ndarray | None = None  # running predictions of the validation rows
        counted = 0  # trees of each in `unseen`

        def _bin_data(self, X: np.ndarray, sample_weight: np.ndarray | None, is_training_data: bool) -> np.ndarray:
            sampled = self.random_state if len(X) > SAMPLED_ROWS else None
            key: Hashable = ("hist_gradient_boosting", self.max_bins, tuple(self.categorical_features or ()), sampled)
            kept = self.rows.cache
            if key not in kept:
                binned = super()._bin_data(X, sample_weight, is_training_data)
                kept[key] = (self._bin_mapper, binned)
            self._bin_mapper, binned = kept[key]
            return binned

        def _predict_iterations(
            self, X: np.ndarray, predictors: list[object], raw: np.ndarray, is_binned: bool, n_threads: int
        ) -> None:
            """Add to raw predictions what the trees say; training rows are binned, validation rows are not."""
            kept, counted = (self.trained, len(predictors)) if is_binned else (self.unseen, self.counted)
            if kept is not None:
                raw[:] = kept
                predictors = predictors[counted:]
            super()._predict_iterations(X, predictors, raw, is_binned, n_threads)
            if is_binned:
                self.trained = raw
            else:
                self.unseen, self.counted = raw, self.n_iter_

    return Growing


KEPT = ("rows", "trained", "unseen", "counted")


def _frozen(model: Estimator) -> GrowingState:
    """Return (plain estimator as it is now, running predictions of training rows, of validation rows)."""
    plain = _plain(type(model).__mro__[1], model)
    return plain, None if model.trained is None else model.trained.copy(order="F"), model.unseen


def _plain(kind: type[Estimator], model: Estimator) -> Estimator:
    """Return a copy that later warm starts of the original do not change, of the class that scikit-learn knows."""
    plain = kind()
    vars(plain).update(copy.deepcopy({name: value for name, value in vars(model).items() if name not in KEPT}))
    return plain


def _continue(model: Estimator, state: GrowingState) -> None:
    """Let a growing estimator go on from a state, which stays as it is."""
    plain, trained, unseen = state
    vars(model).update(copy.deepcopy(vars(plain)))
    model.trained = None if trained is None else trained.copy(order="F")
    model.unseen, model.counted = unseen, plain.n_iter_


FAMILY = HistGradientBoostingFamily()
