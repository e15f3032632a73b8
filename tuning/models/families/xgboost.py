"""XGBoost on one node; a step is ten boosting rounds, a full trial 200 (n_estimators sets another length).

Uses the Booster API on arrays with one QuantileDMatrix per fold, built once and shared by all trials:
rebuilding it costs up to a third of training (dmlc/xgboost#6283). Text columns are native categories.
Parameters: learning_rate, max_depth, min_child_weight, subsample, colsample_bytree, reg_lambda, reg_alpha,
and any other training parameter of XGBoost.

Four settings differ from XGBoost's defaults. `seed_per_iteration`: all Boosters of a process draw from one global
generator, so without it the folds of a trial, and trials that take turns, change each other's samples. `max_bin`
is 64 up to 2,000 training rows: a third of the time and equally good there (docs/models.md has the figures).
`max_cat_to_onehot`: where a text has more than 20 values, one is split from the others, not a set of them: sets fit the
noise of values that stand in few rows. `min_child_weight` is at most a fifth of what all training rows weigh, or few
rows, and rows with small weights, cannot be split at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from tuning.models.base import Configuration, Grown, Matrix, State, SteppedFamily
from tuning.models.estimators import check_names, float32
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task

if TYPE_CHECKING:
    from xgboost import Booster, QuantileDMatrix

SMALL_ROWS, SMALL_BINS, BINS = 2_000, 64, 256
MANY_CATEGORIES, ONE_AGAINST_THE_REST = 20, 2**20
LARGEST_LEAF = 0.2  # at most this share of all rows
# Parameters of xgboost.train that the estimators take by another name or not at all.
CORE_NAMES = (
    *("eta", "min_split_loss", "lambda", "alpha", "seed", "nthread", "seed_per_iteration", "process_type"),
    *("sample_type", "normalize_type", "rate_drop", "one_drop", "skip_drop", "feature_selector", "top_k", "updater"),
    *("refresh_leaf", "tweedie_variance_power", "huber_slope", "quantile_alpha", "max_cached_hist_node"),
)
OBJECTIVES = {REGRESSION: "reg:squarederror", BINARY: "binary:logistic", MULTICLASS: "multi:softprob"}


class XGBoostFamily(SteppedFamily):
    name = "xgboost"
    encoding = "ordinal"
    scale = False
    file = "model.ubj"
    length = "n_estimators"
    step_length = 10
    total_steps = 20
    frozen = frozenset({"booster"})
    simpler = (("max_depth", "smaller"), ("min_child_weight", "larger"), ("reg_lambda", "larger"))

    def fit(self, config: Configuration, train: Matrix, task: Task, seed: int, steps: int | None = None) -> Booster:
        import xgboost

        params = self._params(config, train, task, seed)
        return xgboost.train(params, _training(train, params["max_bin"]), num_boost_round=self.units(config, steps))

    def grow(
        self,
        config: Configuration,
        train: Matrix,
        valid: Matrix,
        task: Task,
        seed: int,
        state: State = None,
    ) -> Iterator[Grown]:
        import xgboost

        params = self._params(config, train, task, seed)
        rows, unseen = _training(train, params["max_bin"]), _validation(valid, train, params["max_bin"])
        booster = xgboost.Booster(params, [rows, unseen], model_file=state)
        done = booster.num_boosted_rounds()
        while done < self.units(config):
            for _ in range(min(self.step_length, self.units(config) - done)):
                booster.update(rows, done)
                done += 1
                # The first round has taken the columns' names and types from the rows. Comparing them again before
                # each round, as strings, would be 3 to 13 % of small fits.
                booster._assign_dmatrix_features = _known_already
            yield (
                prediction_of(booster.predict(unseen, validate_features=False), task),
                partial(booster.save_raw, "ubj"),
            )

    def fitted(self, state: State, train: Matrix, task: Task, seed: int) -> Booster:
        import xgboost

        return xgboost.Booster({"nthread": 1}, model_file=state)

    def predict(self, model: Booster, rows: Matrix, task: Task) -> Prediction:
        import xgboost

        matrix = xgboost.DMatrix(float32(rows), feature_types=feature_types(rows), enable_categorical=True, nthread=1)
        return prediction_of(model.predict(matrix), task)

    def save(self, model: Booster) -> tuple[str, bytes]:
        return self.file, bytes(model.save_raw("ubj"))

    def load(self, name: str, content: bytes) -> Booster:
        import xgboost

        return xgboost.Booster({"nthread": 1}, model_file=bytearray(content))

    @staticmethod
    def _params(config: Configuration, train: Matrix, task: Task, seed: int) -> Configuration:
        check_names("xgboost", config, _known())
        params = {
            "objective": OBJECTIVES[task.kind],
            "tree_method": "hist",
            "max_bin": SMALL_BINS if len(train.X) <= SMALL_ROWS else BINS,
            "nthread": 1,
            "verbosity": 0,
            "seed_per_iteration": True,
        }
        if task.kind == MULTICLASS:
            params["num_class"] = len(task.classes)
        if _has_many_categories(train):
            params["max_cat_to_onehot"] = ONE_AGAINST_THE_REST
        params |= {name: value for name, value in config.items() if name != XGBoostFamily.length}
        least = min(config.get("min_child_weight", 1.0), LARGEST_LEAF * _hessian(train, task))
        return {**params, "min_child_weight": least, "seed": seed % 2**31}


def _known_already(rows: QuantileDMatrix) -> None:
    """What these rows' columns are called, and of which types."""


@cache
def _known() -> frozenset[str]:
    """Names of training parameters: the estimators' and the trainer's own."""
    import xgboost

    return frozenset({*xgboost.XGBModel().get_params(), *CORE_NAMES})


def _hessian(rows: Matrix, task: Task) -> float:
    """What all rows weigh in leaves before the first tree: their weights, a quarter of them for even odds."""
    weight = float(len(rows.X) if rows.weight is None else rows.weight.sum())
    return 0.25 * weight if task.classification else weight


def _has_many_categories(rows: Matrix) -> bool:
    if "many categories" not in rows.cache:
        codes = rows.X[:, list(rows.categorical)]
        rows.cache["many categories"] = bool((codes >= MANY_CATEGORIES).any())
    return rows.cache["many categories"]


def feature_types(rows: Matrix) -> list[str]:
    """XGBoost's type of each column: a number or a category."""
    types = ["q"] * rows.X.shape[1]
    for column in rows.categorical:
        types[column] = "c"
    return types


def _training(rows: Matrix, bins: int) -> QuantileDMatrix:
    import xgboost

    if ("xgboost", bins) not in rows.cache:
        rows.cache["xgboost", bins] = xgboost.QuantileDMatrix(
            float32(rows),
            label=rows.y,
            weight=rows.weight,
            max_bin=bins,
            feature_types=feature_types(rows),
            enable_categorical=True,
            nthread=1,
        )
    return rows.cache["xgboost", bins]


def _validation(rows: Matrix, train: Matrix, bins: int) -> QuantileDMatrix:
    import xgboost

    if ("xgboost", bins) not in rows.cache:
        rows.cache["xgboost", bins] = xgboost.QuantileDMatrix(
            float32(rows),
            ref=_training(train, bins),
            max_bin=bins,
            feature_types=feature_types(rows),
            enable_categorical=True,
            nthread=1,
        )
    return rows.cache["xgboost", bins]


def prediction_of(raw: np.ndarray, task: Task) -> Prediction:
    """What a Booster's prediction means."""
    if task.kind == REGRESSION:
        return Prediction(values=raw.astype(np.float64))
    if task.kind == BINARY:
        raw = raw.astype(np.float64)
        proba = np.column_stack([1.0 - raw, raw])
    else:
        proba = raw.astype(np.float64).reshape(-1, len(task.classes))
        proba /= proba.sum(axis=1, keepdims=True)
    return Prediction(values=proba.argmax(axis=1), proba=proba)


FAMILY = XGBoostFamily()
