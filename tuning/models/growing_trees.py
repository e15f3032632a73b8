"""What random forests and extra trees share: growing by trees, scoring every prefix once."""

from __future__ import annotations

import copy
import io
import zipfile
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from tuning.errors import RunError
from tuning.models.base import Config, EncodedRows, Family, Grown, Model, SteppedFamily, full_proba
from tuning.models.compute import threads
from tuning.models.estimators import constant, float32, lean, single_class, sklearn_seed
from tuning.models.skops_format import dump_skops, load_skops
from tuning.models.skops_pattern import npy, packed
from tuning.preprocessing.task import Prediction, Task, as_prediction

if TYPE_CHECKING:
    from sklearn.ensemble import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )

    Forest: TypeAlias = ExtraTreesClassifier | ExtraTreesRegressor | RandomForestClassifier | RandomForestRegressor

#: The forest as it was, and the sum of its trees' predictions of the validation rows.
ForestState: TypeAlias = "tuple[Forest, np.ndarray]"


SHELL = "forest.skops"  # in a forest's file the forest with its first tree
JOINED, COUNTED = ("nodes", "values"), ("max_depth", "node_count")  # of the state of a tree: by node, and of the tree


class ForestFamily(SteppedFamily):
    """Trees by warm start, ten a step; text columns as codes, missing values as they are.

    The trees of a prefix are the same as those of one long fit. Each tree predicts once: its answer is added
    to the sum of the earlier ones. Parameters: scikit-learn's own; n_estimators sets the length.
    """

    encoding = "ordinal"
    scale = False
    file = "trees.zip"
    length = "n_estimators"
    step_length = 10
    total_steps = 10

    @abstractmethod
    def build(self, params: Config, task: Task) -> Forest:
        """Return the unfitted estimator."""

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        if single_class(train, task):
            return constant(train)
        forest = self.build(self._params(config, seed, self.units(config, steps)), task)
        with lean(self.name, config):
            forest.fit(float32(train), train.y, sample_weight=train.weight)
        return forest.set_params(n_jobs=1)  # threads would add what trees say in any order

    def grow(
        self,
        config: Config,
        train: EncodedRows,
        valid: EncodedRows,
        task: Task,
        seed: int,
        state: ForestState | None = None,
    ) -> Iterator[Grown]:
        if single_class(train, task):
            yield from self.repeat(constant(train), config, valid, task, state)
            return
        X, unseen = float32(train), float32(valid)
        forest, total = (_copied(state[0]), state[1]) if state else (None, np.zeros(()))
        done = len(forest.estimators_) if forest is not None else 0
        while done < self.units(config):
            wanted = min(done + self.step_length, self.units(config))
            params = self._params(config, seed, wanted)
            forest = self.build({**params, "warm_start": True}, task) if forest is None else forest.set_params(**params)
            with lean(self.name, config):
                forest.fit(X, train.y, sample_weight=train.weight)
            for tree in forest.estimators_[done:]:
                predict = tree.predict_proba if task.classification else tree.predict
                total = total + predict(unseen, check_input=False)
            done = wanted
            yield _prediction(total / done, forest, task), partial(_frozen, forest, total)

    def fitted(self, state: ForestState, train: EncodedRows, task: Task, seed: int) -> Model:
        if single_class(train, task):
            return constant(train)
        return _copied(state[0]).set_params(warm_start=False, n_jobs=1)

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        return super().predict(model, EncodedRows(float32(rows), rows.y), task)

    def save(self, model: Model) -> tuple[str, bytes]:
        """Its trees as a few arrays: skops would take longer for them than their training took."""
        return (self.file, _packed(model)) if hasattr(model, "estimators_") else (Family.file, super().save(model)[1])

    def load(self, name: str, content: bytes) -> Model:
        return _unpacked(content) if name == self.file else super().load(name, content)

    @staticmethod
    def _params(config: Config, seed: int, trees: int) -> Config:
        fixed = {"n_estimators": trees, "n_jobs": threads(), "random_state": sklearn_seed(seed)}
        return {**config, **fixed}


def _packed(forest: Forest) -> bytes:
    """Return a forest as the file of one with its first tree alone, and what the trees differ in."""
    shell = copy.copy(forest)
    shell.estimators_ = forest.estimators_[:1]
    states = [tree.tree_.__getstate__() for tree in forest.estimators_]
    arrays = {name: np.concatenate([state[name] for state in states]) for name in JOINED}
    arrays |= {name: np.array([state[name] for state in states]) for name in COUNTED}
    arrays["seeds"] = np.array([tree.random_state for tree in forest.estimators_])
    return packed([(SHELL, dump_skops(shell)), *((name, npy(values)) for name, values in arrays.items())])


def _unpacked(content: bytes) -> Forest:
    """Return the forest of such a file; `RunError` where it is none."""
    names = (*JOINED, *COUNTED, "seeds")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            forest = cast("Forest", load_skops(archive.read(SHELL)))
            arrays = {name: np.load(io.BytesIO(archive.read(name)), allow_pickle=False) for name in names}
        first = forest.estimators_[0]
        kind, given, state = first.tree_.__reduce__()
        ends = np.cumsum(arrays["node_count"])
        trees = []
        for place, (end, count) in enumerate(zip(ends.tolist(), arrays["node_count"].tolist(), strict=True)):
            tree = copy.copy(first)
            tree.random_state, tree.tree_ = int(arrays["seeds"][place]), kind(*given)
            own = {name: arrays[name][end - count : end] for name in JOINED}
            own |= {name: int(arrays[name][place]) for name in COUNTED}
            tree.tree_.__setstate__({**state, **own})
            trees.append(tree)
    except (zipfile.BadZipFile, KeyError, ValueError, AttributeError) as error:
        raise RunError(f"a model file was not written by this program: {type(error).__name__}: {error}") from error
    forest.estimators_ = trees
    return forest


def _frozen(forest: Forest, total: np.ndarray) -> ForestState:
    return _copied(forest), total


def _copied(forest: Forest) -> Forest:
    """Return the forest as it is now: a later warm start appends to the list of trees in place."""
    same = copy.copy(forest)
    same.estimators_ = list(forest.estimators_)
    return same


def _prediction(mean: np.ndarray, forest: Forest, task: Task) -> Prediction:
    return as_prediction(full_proba(mean, forest.classes_, task) if task.classification else mean, task)
