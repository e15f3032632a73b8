"""XGBoost; a step is ten boosting rounds, a full trial 200 (n_estimators sets another length).

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

A configuration that also holds `actors` (`tuning.models.worker_group`) is trained by several processes, where this one
has a place for them (`tuning.models.shards`); else, as while a plan is made or without Ray, by this process alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache, partial
from typing import TYPE_CHECKING

from tuning.models.base import Config, EncodedRows, Grown, State, SteppedFamily
from tuning.models.boosters import feature_types, load_booster, plain_matrix, prediction_of
from tuning.models.compute import on_gpu, threads
from tuning.models.estimators import check_names, float32
from tuning.models.group_training import GroupTraining, TrainingJob, grown_folds
from tuning.models.shards import GroupPlace, place_of_groups, shards_of
from tuning.models.worker_group import ActorGroup, without_group
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
    libraries = ("xgboost", "xgboost-cpu")  # the second is the first without what GPUs need
    length = "n_estimators"
    step_length = 10
    total_steps = 20
    frozen = frozenset({"booster"})
    worker_groups = True
    simpler = (("max_depth", "smaller"), ("min_child_weight", "larger"), ("reg_lambda", "larger"))

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Booster:
        import xgboost

        if (place := self._place(config)) is not None:
            length = {**config, self.length: self.units(config, steps)}
            with closing(self.train(place, length, [train], task, seed, [None])) as training:
                ((model,),) = deque(training, maxlen=1)
            return load_booster(model)
        params = self._params(config, train, task, seed)
        return xgboost.train(params, _binned(train, params["max_bin"]), num_boost_round=self.units(config, steps))

    def grow(
        self, config: Config, train: EncodedRows, valid: EncodedRows, task: Task, seed: int, state: State = None
    ) -> Iterator[Grown]:
        import xgboost

        params = self._params(config, train, task, seed)
        rows, unseen = _binned(train, params["max_bin"]), _binned(valid, params["max_bin"], train)
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

    def exact(self, config: Config) -> bool:
        # What draws columns and rows goes through all rounds, and is not in a model.
        return all(value == 1 for name, value in config.items() if name.startswith(("colsample_", "subsample")))

    def grow_folds(
        self,
        config: Config,
        folds: Sequence[tuple[EncodedRows, EncodedRows]],
        task: Task,
        seed: int,
        states: Sequence[State],
    ) -> Iterator[tuple[Grown, ...]]:
        if (place := self._place(config)) is None:
            return super().grow_folds(config, folds, task, seed, states)
        training = self.train(place, config, [rows for rows, _ in folds], task, seed, states)
        return grown_folds(training, folds, task, states, config)

    def _place(self, config: Config) -> GroupPlace | None:
        return None if self.worker_group(config) is None else place_of_groups()

    def train(
        self,
        place: GroupPlace,
        config: Config,
        rows: Sequence[EncodedRows],
        task: Task,
        seed: int,
        states: Sequence[State],
    ) -> GroupTraining:
        """Let the group of a configuration train a model on each of several rows. states: to go on from, or None."""
        worker_group = ActorGroup.of(config)
        works = [
            self._work(config, each, task, seed, shards_of(each, worker_group.actors, place), state)
            for each, state in zip(rows, states, strict=True)
        ]
        return place.train(works, worker_group, self.name)

    def _work(
        self, config: Config, rows: EncodedRows, task: Task, seed: int, shards: Sequence[str], state: State = None
    ) -> TrainingJob:
        """Return what a worker group is to train on rows. shards: their files. state: to go on from."""
        params = {name: value for name, value in self._params(config, rows, task, seed).items() if name != "nthread"}
        device = "cuda" if ActorGroup.of(config).gpus_per_actor else "cpu"
        return TrainingJob(
            shards=shards,
            weighted=rows.weight is not None,
            types=feature_types(rows),
            params={**params, "device": device},
            rounds=self.units(config),
            every=self.step_length,
            model=bytes(state) if state else None,
        )

    def fitted(self, state: State, train: EncodedRows, task: Task, seed: int) -> Booster:
        import xgboost

        return xgboost.Booster({"nthread": threads()}, model_file=state)

    def predict(self, model: Booster, rows: EncodedRows, task: Task) -> Prediction:
        return prediction_of(model.predict(plain_matrix(rows)), task)

    def save(self, model: Booster) -> tuple[str, bytes]:
        return self.file, bytes(model.save_raw("ubj"))

    def load(self, name: str, content: bytes) -> Booster:
        return load_booster(content)

    @staticmethod
    def _params(config: Config, train: EncodedRows, task: Task, seed: int) -> Config:
        config = without_group(config)
        check_names(FAMILY, config, _known())
        params = {
            "objective": OBJECTIVES[task.kind],
            "tree_method": "hist",
            "max_bin": SMALL_BINS if len(train.X) <= SMALL_ROWS else BINS,
            "nthread": threads(),
            "verbosity": 0,
            "seed_per_iteration": True,
        }
        if on_gpu():
            params["device"] = "cuda"
        if task.kind == MULTICLASS:
            params["num_class"] = len(task.classes)
        if _has_many_categories(train):
            params["max_cat_to_onehot"] = ONE_AGAINST_THE_REST
        if train.offset is not None:
            params["base_score"] = 0.5  # no offset of its own beside the rows'
        params |= {name: value for name, value in config.items() if name != XGBoostFamily.length}
        least = min(config.get("min_child_weight", 1.0), LARGEST_LEAF * _hessian(train, task))
        return {**params, "min_child_weight": least, "seed": seed % 2**31}


def _known_already(rows: QuantileDMatrix) -> None:
    """What these rows' columns are called, and of which types."""


@cache
def _known() -> frozenset[str]:
    """Return names of training parameters: the estimators' and the trainer's own."""
    import xgboost

    return frozenset({*xgboost.XGBModel().get_params(), *CORE_NAMES})


def _hessian(rows: EncodedRows, task: Task) -> float:
    """Return what all rows weigh in leaves before the first tree: their weights, a quarter of them for even odds."""
    weight = float(len(rows.X) if rows.weight is None else rows.weight.sum())
    return 0.25 * weight if task.classification else weight


def _has_many_categories(rows: EncodedRows) -> bool:
    if "many categories" not in rows.cache:
        codes = rows.X[:, list(rows.categorical)]
        rows.cache["many categories"] = bool((codes >= MANY_CATEGORIES).any())
    return rows.cache["many categories"]


def _binned(rows: EncodedRows, bins: int, train: EncodedRows | None = None) -> QuantileDMatrix:
    """Return rows as XGBoost trains on them. train: those that set the bins of rows to be predicted."""
    import xgboost

    if ("xgboost", bins) not in rows.cache:
        of_training = {"label": rows.y, "weight": rows.weight, "base_margin": rows.offset}
        rows.cache["xgboost", bins] = xgboost.QuantileDMatrix(
            float32(rows),
            **(of_training if train is None else {"ref": _binned(train, bins)}),
            max_bin=bins,
            feature_types=feature_types(rows),
            enable_categorical=True,
            nthread=threads(),
        )
    return rows.cache["xgboost", bins]


FAMILY = XGBoostFamily()
