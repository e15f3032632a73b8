"""A model family: how it is built, how it trains step by step, how it is saved.

One family is one file in `tuning/models/families/` with a module-level `FAMILY`. Configurations hold plain Python
values under the estimator's own argument names. A family says how it moves through its budget:

- `Family`: no axis of its own. A trial's steps are the cross-validation folds, one fit each.
- `SteppedFamily`: boosting rounds, trees, epochs. A trial's steps are blocks of them, all folds in lockstep,
  and every prefix is scored, so the length is never a hyperparameter.
"""

from __future__ import annotations

import importlib.util
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

import numpy as np

from tuning.basics.documents import Config as Config
from tuning.models.skops_format import dump_skops, load_skops
from tuning.models.worker_group import GROUP_FIELDS, ActorGroup
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task, as_prediction

#: What a family's `fit` returns (a scikit-learn estimator, a Booster); only that family looks into it.
Model: TypeAlias = Any
#: What the training of a growing model continues from; only the family that made it looks into it.
State: TypeAlias = Any
#: After a step: the prediction for the validation rows, and a function that returns the state.
Grown: TypeAlias = tuple[Prediction, Callable[[], State]]
#: By parameter which values make the simpler model.
Simpler: TypeAlias = tuple[tuple[str, Literal["larger", "smaller"]], ...]

ANY_TASK = frozenset({REGRESSION, BINARY, MULTICLASS})
FRAME = "frame"
CLASSIFICATION = frozenset({BINARY, MULTICLASS})


class Estimator(Protocol):
    """What is used of scikit-learn's estimators, and of the user's own ones."""

    def fit(self, X: np.ndarray, y: np.ndarray, **fit_params: object) -> Self: ...

    def predict(self, X: np.ndarray) -> np.ndarray: ...

    def get_params(self, deep: bool = True) -> dict[str, object]: ...

    def set_params(self, **params: object) -> Self: ...


@dataclass
class EncodedRows:
    """Rows ready for a model.

    Attributes:
        X: (n, p) float64, C order.
        y: (n,) numbers or class codes.
        weight: (n,) or None.
        categorical: positions of columns that hold category codes (only with encoding "ordinal").
        cache: what a family builds once per matrix and reuses across trials (a DMatrix, say).
        offset: what raw predictions begin at while CatBoost or XGBoost is fitted: (n,), of several classes
            (n, classes); None for what the booster begins with.
    """

    X: np.ndarray
    y: np.ndarray
    weight: np.ndarray | None = None
    categorical: tuple[int, ...] = ()
    cache: dict[Hashable, Any] = field(default_factory=dict)
    offset: np.ndarray | None = None


class Family(ABC):
    """One family of models.

    Attributes:
        name: the value of the search space's `model` parameter.
        tasks: kinds of task that it can do.
        encoding: "onehot" (missing values filled, text as indicator columns), "ordinal" (missing values left as
            NaN, text as codes) or "frame" (the columns as they are, in a DataFrame; own models only).
        scale: numeric columns are standardised.
        simpler: which values make the simpler model, the parameter that matters most first: "larger" ones, such as
            of a penalty, or "smaller" ones, such as of a depth. Every family with a preset names one of its
            parameters.
        requires: an optional package, which is also the name of the extra that brings it.
        file: name of the fitted model's file.
        libraries: the package that reads the file, where that is not scikit-learn; of several names the one installed.
        opens: parameters that name files or addresses, which the library opens by itself, by all of their names.
        worker_groups: whether several processes can train a trial; a configuration may then hold an `ActorGroup`.
        groups_read_files: whether those can read their rows from a folder only, not from object storage.
    """

    name: ClassVar[str]
    tasks: ClassVar[frozenset[str]] = ANY_TASK
    encoding: ClassVar[str] = "onehot"
    scale: ClassVar[bool] = True
    simpler: ClassVar[Simpler] = ()
    requires: ClassVar[str] = ""
    file: ClassVar[str] = "model.skops"
    libraries: ClassVar[tuple[str, ...]] = ()
    opens: ClassVar[frozenset[str]] = frozenset()
    worker_groups: ClassVar[bool] = False
    groups_read_files: ClassVar[bool] = False

    @property
    def preprocessing(self) -> tuple[str, bool]:
        """The key under which prepared folds are shared between families."""
        return (self.encoding, self.scale)

    def missing(self) -> str:
        """Return what has to be installed before this family can be used, as a sentence; empty when nothing."""
        if not self.requires or importlib.util.find_spec(self.requires) is not None:
            return ""
        return (
            f"{self.name!r} needs the optional package {self.requires}: pip install 'tuning-service[{self.requires}]'."
        )

    def untrainable(self) -> str:
        """Why it cannot be trained here, as a sentence; empty when it can. `missing`: why it cannot even predict."""
        return self.missing()

    def probabilities(self, config: Config) -> bool:
        """Return whether a classifier with this configuration has probabilities (log loss needs them)."""
        return True

    def worker_group(self, config: Config) -> ActorGroup | None:
        """Return the actors that train a trial of this configuration; None where its own process does."""
        return ActorGroup.of(config) if self.worker_groups and any(name in config for name in GROUP_FIELDS) else None

    def at_step(self, config: Config, steps: int) -> Config:
        """Return the configuration that says by itself what a refit up to a step gives."""
        return config

    @abstractmethod
    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        """Return a fitted model; `steps` is the number of steps for stepped families (None: the whole budget).

        Also of a handful of rows, of a single class, of classes that the rows lack, and of values up to 1e39. A
        value of a parameter that it cannot take is a `TypeError` or `ValueError` of the library.
        """

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        """Return what a fitted model says about rows; `rows.y` is not looked at."""
        if not task.classification:
            return Prediction(values=model.predict(rows.X))
        decision = None
        if hasattr(model, "decision_function") and len(model.classes_) == len(task.classes):
            decision = full_decision(model.decision_function(rows.X), task)
        if hasattr(model, "predict_proba"):
            proba = full_proba(model.predict_proba(rows.X), model.classes_, task)
            return replace(as_prediction(proba, task), decision=decision)
        return Prediction(values=model.predict(rows.X), decision=decision)

    def save(self, model: Model) -> tuple[str, bytes]:
        """Return (file name, content) of a fitted model; scikit-learn estimators go through skops."""
        return self.file, dump_skops(model)

    def load(self, name: str, content: bytes) -> Model:
        """Return the opposite of `save`, through the allow-list of types."""
        return load_skops(content)


@dataclass(frozen=True, slots=True)
class Stage:
    """A stretch of a trial's training: with this configuration and seed until `steps` steps are done in all."""

    config: Config
    seed: int
    steps: int


class SteppedFamily(Family):
    """A family with an axis of its own.

    Attributes:
        length: the estimator's own name for it (`n_estimators`, `max_iter`); a configuration that holds it sets
            the length of its full trial, otherwise this is total_steps * step_length.
        step_length: rounds, trees or epochs per step.
        total_steps: steps of a full trial.
        frozen: parameters that cannot change while a model grows; a trial that continues from another one's state
            must take these over from it.
    """

    length: ClassVar[str]
    step_length: ClassVar[int]
    total_steps: ClassVar[int]
    frozen: ClassVar[frozenset[str]] = frozenset()

    def units(self, config: Config, steps: int | None = None) -> int:
        """Rounds, trees or epochs after `steps` steps (None: of a full trial)."""
        full = int(config.get(self.length, self.total_steps * self.step_length))
        return full if steps is None else min(full, steps * self.step_length)

    def at_step(self, config: Config, steps: int) -> Config:
        return {**config, self.length: self.units(config, steps)}

    def steps(self, config: Config) -> int:
        """Steps of a full trial with this configuration; the last one may be shorter."""
        return math.ceil(self.units(config) / self.step_length)

    def exact(self, config: Config) -> bool:
        """Return whether `grow` continues from a state to the last digit as if it had never stopped."""
        return True

    @abstractmethod
    def grow(
        self, config: Config, train: EncodedRows, valid: EncodedRows, task: Task, seed: int, state: State = None
    ) -> Iterator[Grown]:
        """After each step: the prediction for `valid` and a function that returns the state to continue from.

        The function is called before the next step or not at all; what it returns does not change any more.
        `state` is such a value, from training on the same rows; training continues after it, possibly with another
        configuration. With the same configuration and seed it continues as if it had never stopped, to the last digit
        where `exact` says so.
        """

    def grow_folds(
        self,
        config: Config,
        folds: Sequence[tuple[EncodedRows, EncodedRows]],
        task: Task,
        seed: int,
        states: Sequence[State],
    ) -> Iterator[tuple[Grown, ...]]:
        """`grow` of all folds of a trial, step by step together. folds: (train, valid). states: of each, or None."""
        growing = [
            self.grow(config, train, valid, task, seed, state)
            for (train, valid), state in zip(folds, states, strict=True)
        ]
        return zip(*growing, strict=True)

    @abstractmethod
    def fitted(self, state: State, train: EncodedRows, task: Task, seed: int) -> Model:
        """Return the model in a state that `grow` returned for these rows, as `fit` would have returned it."""

    def fit_stages(self, stages: Sequence[Stage], train: EncodedRows, task: Task) -> Model:
        """Return the model of a trial whose configuration changed on its way, trained by the same way on these rows.

        stages: in order, at least one, each longer than the one before it.
        """
        one = EncodedRows(train.X[:1], train.y[:1], None, train.categorical)  # predictions that nobody looks at
        state, done = None, 0
        for stage in stages:
            grown = self.grow(stage.config, train, one, task, stage.seed, state)
            for _, get_state in islice(grown, stage.steps - done - 1, stage.steps - done):
                state = get_state()
            done = stage.steps
        return self.fitted(state, train, task, stages[-1].seed)

    def repeat(self, model: Model, config: Config, valid: EncodedRows, task: Task, state: State) -> Iterator[Grown]:
        """Yield the steps of a model that does not grow: one class in the training rows, and nothing to learn."""
        prediction = Family.predict(self, model, valid, task)
        for step in range((state or 0) + 1, self.steps(config) + 1):
            yield prediction, partial(int, step)


def full_decision(decision: np.ndarray, task: Task) -> np.ndarray | None:
    """Decision values of all classes: (n,) of two, (n, classes) of more; None where they are of something else."""
    values = decision.reshape(len(decision), -1)
    if values.shape[1] == 1 and len(task.classes) == 2:
        return values[:, 0]
    return values if values.shape[1] == len(task.classes) > 2 else None


def full_proba(proba: np.ndarray, seen: np.ndarray, task: Task) -> np.ndarray:
    """Return probabilities over all classes of the task, also those that were missing in the training rows."""
    if proba.shape[1] == len(task.classes):
        return proba
    full = np.zeros((len(proba), len(task.classes)))
    full[:, np.asarray(seen, dtype=int)] = proba
    return full


def raw_prediction(raw: np.ndarray, task: Task) -> Prediction:
    """Return what sums of trees say: numbers, log odds of the positive class, or (n, classes) logits."""
    from scipy.special import expit, softmax

    if task.kind == REGRESSION:
        return Prediction(values=raw)
    return as_prediction(of_positive(expit(raw)) if task.kind == BINARY else softmax(raw, axis=1), task)


def of_positive(positive: np.ndarray) -> np.ndarray:
    """Return (n, 2) the probabilities of two classes, from those of the positive one."""
    return np.column_stack([1.0 - positive, positive])
