"""CatBoost, an optional extra (`pip install 'tuning-service[catboost]'`); a step is ten boosting rounds.

Missing values and text columns are handled natively, text by statistics of the target in which no row sees its own.
Parameters: learning_rate, depth, l2_leaf_reg, random_strength, bagging_temperature, rsm, one_hot_max_size, and
any other training parameter; iterations sets the rounds of a full trial (default 200).

What CatBoost derives from the number of rounds is fixed here, so that a long training begins with the shorter one. So a
trial is not continued, which costs more than ten rounds of a small table: it is trained anew, each time up to four
times as far, and the steps in between are read off its leaves. A trial that is stopped early has not paid for all
rounds, a full one pays a quarter more than for one training. A trial's state is the story of its rounds.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tuning.models.base import (
    Config,
    EncodedRows,
    Family,
    Grown,
    Model,
    SteppedFamily,
    full_proba,
    raw_prediction,
)
from tuning.models.compute import threads
from tuning.models.estimators import check_names, constant, float32, single_class
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task, as_prediction

if TYPE_CHECKING:
    from catboost import CatBoost, Pool

#: Stretches of a trial's training: parameters, and how many rounds were boosted with them.
CatBoostStory: TypeAlias = tuple[tuple[Config, int], ...]

OBJECTIVES = {REGRESSION: "RMSE", BINARY: "Logloss", MULTICLASS: "MultiClass"}
# Other names of the length, which would contradict it.
LENGTHS = frozenset({"n_estimators", "num_boost_round", "num_trees"})
AHEAD = 4  # times as many rounds as so far are trained at once


class CatBoostFamily(SteppedFamily):
    name = "catboost"
    encoding = "ordinal"
    scale = False
    requires = "catboost"
    libraries = ("catboost",)
    file = "model.cbm"
    length = "iterations"
    step_length = 10
    total_steps = 20
    frozen = frozenset({"boosting_type", "grow_policy"})
    opens = frozenset({"input_borders", "output_borders", "save_snapshot", "snapshot_file", "train_dir"})
    simpler = (("depth", "smaller"), ("l2_leaf_reg", "larger"), ("learning_rate", "smaller"))

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        params = self._params(config, task, seed)
        if _nothing_to_learn(train, task):
            return _constant(train, task)
        return _boosted(train, ((params, self.units(config, steps)),))

    def grow(
        self,
        config: Config,
        train: EncodedRows,
        valid: EncodedRows,
        task: Task,
        seed: int,
        state: CatBoostStory | int | None = None,
    ) -> Iterator[Grown]:
        params = self._params(config, task, seed)
        if _nothing_to_learn(train, task):
            yield from self.repeat(_constant(train, task), config, valid, task, state)
            return
        story = state if isinstance(state, tuple) else ()
        at_start, full = sum(rounds for _, rounds in story), self.units(config)
        done = trained = 0
        raw = np.zeros(())
        while max(done, at_start) < full:
            if done >= trained:
                trained = _next_end(max(done, at_start), self.step_length, full)
                model = _boosted(train, _longer(story, params, trained - at_start))
            before, done = done, min(done + self.step_length, full)
            raw = raw + _leaves(model, _pool(valid), before, done)
            if done > at_start:
                yield _prediction(model, raw, task), partial(_longer, story, params, done - at_start)

    def exact(self, config: Config) -> bool:
        return False  # a state is how it was trained, and what is drawn depends on where that was interrupted

    def fitted(self, state: CatBoostStory | int, train: EncodedRows, task: Task, seed: int) -> Model:
        return _boosted(train, state) if isinstance(state, tuple) else _constant(train, task)

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        from catboost import CatBoost

        if not isinstance(model, CatBoost):
            return super().predict(model, rows, task)
        raw = model.predict(_pool(rows), prediction_type="RawFormulaVal", thread_count=threads())
        return _prediction(model, raw, task)

    def save(self, model: Model) -> tuple[str, bytes]:
        from catboost import CatBoost

        if not isinstance(model, CatBoost):
            return Family.file, super().save(model)[1]
        metadata = model.get_metadata()
        for name in list(metadata.keys()):  # of the model, and of each that it was grown from
            if name.endswith(("train_finish_time", "model_guid")):
                metadata[name] = ""
        with tempfile.TemporaryDirectory() as folder:  # it saves to no other place
            path = Path(folder, self.file)
            model.save_model(str(path))
            return self.file, path.read_bytes()

    def load(self, name: str, content: bytes) -> Model:
        from catboost import CatBoost

        return super().load(name, content) if name == Family.file else CatBoost().load_model(blob=content)

    @staticmethod
    def _params(config: Config, task: Task, seed: int) -> Config:
        check_names(FAMILY, config, _known())
        return {
            "loss_function": OBJECTIVES[task.kind],
            "learning_rate": 0.1,  # by itself it depends on the number of rounds, as do the next two
            "boosting_type": "Plain",
            "max_ctr_complexity": 1,
            "border_count": 64,
            "allow_const_label": True,
            **{name: value for name, value in config.items() if name != CatBoostFamily.length},
            "random_seed": seed % 2**31,
            "thread_count": threads(),
            "allow_writing_files": False,
            "logging_level": "Silent",
        }


@cache
def _known() -> frozenset[str]:
    """Return names of training parameters, without those that say the length by another name."""
    import inspect

    from catboost import CatBoostClassifier, CatBoostRegressor

    makers = (CatBoostClassifier.__init__, CatBoostRegressor.__init__)
    return frozenset(name for maker in makers for name in inspect.signature(maker).parameters) - {"self", *LENGTHS}


def _next_end(done: int, step: int, full: int) -> int:
    """Return up to which round the next training goes: a step at first; all of it where little more would be left."""
    wanted = max(step, done * AHEAD)
    return full if full - wanted < wanted / 2 else wanted


def _longer(story: CatBoostStory, params: Config, rounds: int) -> CatBoostStory:
    if story and story[-1][0] == params:
        return (*story[:-1], (params, story[-1][1] + rounds))
    return (*story, (params, rounds))


def _boosted(train: EncodedRows, story: CatBoostStory) -> CatBoost:
    """Return a model that has trained these rounds, each stretch with its own parameters."""
    from catboost import CatBoost

    model = None
    for params, rounds in story:
        model = CatBoost({**params, "iterations": rounds, "metric_period": rounds}).fit(_pool(train), init_model=model)
    return model


def _leaves(model: CatBoost, rows: Pool, first: int, last: int) -> np.ndarray:
    """(n,) or (n, classes) what these rounds add to the raw predictions; with the first round, where they begin."""
    counts = np.asarray(model.get_tree_leaf_counts(), dtype=np.int64)
    begins = np.concatenate([[0], np.cumsum(counts)])
    places = begins[first:last] + model.calc_leaf_indexes(
        rows, ntree_start=first, ntree_end=last, thread_count=threads()
    )
    values = np.asarray(model.get_leaf_values()).reshape(begins[-1], -1)
    added = values[places].sum(axis=1) + (0.0 if first else model.get_scale_and_bias()[1])
    return added[:, 0] if added.shape[1] == 1 else added


def _prediction(model: CatBoost, raw: np.ndarray, task: Task) -> Prediction:
    """Over all classes of the task; a model has those of its training rows."""
    found = raw_prediction(raw, task)
    if task.kind != MULTICLASS or found.proba is None:
        return found
    return as_prediction(full_proba(found.proba, model.classes_, task), task)


def _nothing_to_learn(train: EncodedRows, task: Task) -> bool:
    """Return whether there is one class only, or no column with two values: CatBoost refuses both."""
    if "catboost constant" not in train.cache:
        X = float32(train)
        varies = bool(((X[:1] != X) & ~(np.isnan(X) & np.isnan(X[:1]))).any())
        train.cache["catboost constant"] = not varies or single_class(train, task)
    return train.cache["catboost constant"]


def _constant(train: EncodedRows, task: Task) -> Model:
    if task.classification:
        return constant(train)
    from sklearn.dummy import DummyRegressor

    return DummyRegressor().fit(train.X, train.y, train.weight)


def _pool(rows: EncodedRows) -> Pool:
    """Return rows as CatBoost takes them: category codes are names to it, and a missing one is a category."""
    from catboost import FeaturesData, Pool

    if "catboost" not in rows.cache:
        X, width = float32(rows), rows.X.shape[1] - len(rows.categorical)  # numbers come first
        names = np.nan_to_num(X[:, width:], nan=-1.0).astype(np.int64).astype("S").astype(object)
        features = FeaturesData(
            num_feature_data=np.ascontiguousarray(X[:, :width]) if width else None,
            cat_feature_data=names if rows.categorical else None,
        )
        rows.cache["catboost"] = Pool(
            features, rows.y, weight=rows.weight, baseline=rows.offset, thread_count=threads()
        )
    return rows.cache["catboost"]


FAMILY = CatBoostFamily()
