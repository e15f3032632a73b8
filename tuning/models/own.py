"""A family made of the user's own estimator: a scikit-learn estimator, pipeline, class or factory.

Steps are the folds, as with every model that has no axis of its own. The estimator gets the same encoded rows as
the built-in families (missing values filled, numbers standardised, text as indicator columns), or, when it brings
its own preprocessing by column names, the customer's columns as a DataFrame.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TypeGuard

import cloudpickle
import numpy as np

from tuning.basics.wording import amount, did_you_mean, shorten
from tuning.errors import DefinitionError, RunError, UntrustedCodeError
from tuning.models.base import ANY_TASK, CLASSIFICATION, FRAME, Config, EncodedRows, Estimator, Family, Model
from tuning.models.compute import limited_threads, threads
from tuning.models.estimators import constant, single_class, sklearn_seed, with_own_classes
from tuning.models.skops_format import dump_skops
from tuning.preprocessing.task import REGRESSION, Prediction, Task
from tuning.user_code import dump_pickle, signature_of

BY_COLUMN_NAME = ("ColumnTransformer", "TableVectorizer")
THREADS = ("n_jobs", "nthread", "num_threads", "thread_count")
TAKE_ALL_CORES = {"lightgbm": "n_jobs", "catboost": "thread_count"}  # where nobody says how many; by package


class OwnFamily(Family):
    """The family of one estimator.

    Args:
        name: the value of `model` in configurations.
        source: an unfitted estimator, which is cloned for each fit, or a class or function that makes one and is
            given those parameters of a configuration that its signature names; the others are set on what it makes.
        params: fixed ones beside the configuration's.
        input: "encoded", "frame", or "auto": a frame where a ColumnTransformer is found inside.
        allow_code: fitted models that the safe format does not cover are written with cloudpickle.
    """

    scale = True

    def __init__(
        self,
        name: str,
        source: object = None,
        params: Config | None = None,
        input: str = "auto",
        allow_code: bool = False,
    ) -> None:
        self.name = name  # type: ignore[misc]  # one per instance here
        self.source = source
        self.params = dict(params or {})
        self.allow_code = allow_code
        if input == "frame" or (input == "auto" and source is not None and _names_columns(self.build({}))):
            self.encoding = FRAME  # type: ignore[misc]  # one per instance, as above
            self.scale = False  # type: ignore[misc]  # one per instance, as above

    def build(self, config: Config, seed: int = 0) -> Estimator:
        """The unfitted estimator: on no more threads than there are, and with the seed where it draws and has none."""
        from search_spaces.values import own_copy  # a served model is not fitted, and does not bring this package

        params = own_copy({**self.params, **config})  # whoever fits may change what it is given
        if is_factory(self.source):
            taken = {name: params.pop(name) for name in list(params) if _takes(self.source, name)}
            try:
                estimator = self.source(**taken)
            except SystemExit as error:  # else a command would end with the code that it names
                raise DefinitionError(f"models: {self.name!r} cannot be built: SystemExit: {error}") from error
        else:
            from sklearn.base import clone

            estimator = clone(self.source)
        if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
            raise DefinitionError(
                f"models: {self.name!r} makes {shorten(repr(estimator), 40)}, which is no estimator: it has no fit and "
                "predict. Name a scikit-learn estimator, or a function that returns one."
            )
        if hasattr(estimator, "get_params"):
            _configure(estimator, params, seed)
        elif params:
            raise DefinitionError(
                f"models: {self.name!r} has no set_params, so {', '.join(map(repr, params))} cannot be set on it."
            )
        return estimator

    def fit(self, config: Config, train: EncodedRows, task: Task, seed: int, steps: int | None = None) -> Model:
        if single_class(train, task):
            return constant(train)
        estimator = self.build(config, sklearn_seed(seed))
        with limited_threads():
            # Copies: an estimator may write into what it gets (`copy_X=False`), from which other trials learn.
            estimator.fit(train.X.copy(), train.y.copy(), **_weights(estimator, train))
        return estimator

    def predict(self, model: Model, rows: EncodedRows, task: Task) -> Prediction:
        with limited_threads():
            careful = _Careful(model)
            prediction = with_own_classes(careful, rows, super().predict(careful, rows, task))
        values = np.asarray(prediction.values)
        if values.size != len(rows.y):  # numpy would stretch it to a score of something else
            raise ValueError(
                f"{self.name!r} predicts an array of shape {values.shape} for {amount(len(rows.y), 'row')}"
            )
        return replace(prediction, values=values.reshape(-1))

    def probabilities(self, config: Config) -> bool:
        return hasattr(self.build(config), "predict_proba")

    def able(self) -> frozenset[str]:
        """Return the tasks that the estimator is for; all when it does not say."""
        from sklearn.base import BaseEstimator, is_classifier, is_regressor

        estimator = self.build({})
        if not isinstance(estimator, BaseEstimator):
            return CLASSIFICATION if hasattr(estimator, "predict_proba") else ANY_TASK
        if is_classifier(estimator):
            return CLASSIFICATION
        return frozenset({REGRESSION}) if is_regressor(estimator) else frozenset()

    @property
    def surely_savable(self) -> bool:
        """Whether it is scikit-learn's through and through, which skops knows."""
        estimator = self.build({})
        values = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
        return all(_root(value) in ("sklearn", "builtins", "numpy") for value in (estimator, *values))

    def save(self, model: Model) -> tuple[str, bytes]:
        try:
            return "model.skops", dump_skops(model)
        except RunError as refused:
            if not self.allow_code:
                raise RunError(
                    f"the model {self.name!r} cannot be saved safely: {refused} Set `allow_code: true` to save it "
                    "with cloudpickle (who loads it runs its code), or `save_models: false`."
                ) from refused
        return "model.pkl", dump_pickle(model)

    def load(self, name: str, content: bytes) -> Model:
        if not name.endswith(".pkl"):
            return super().load(name, content)
        if not self.allow_code:
            raise UntrustedCodeError(
                f"the model {self.name!r} was saved with cloudpickle, and loading it runs the code in it: "
                "load it with --allow-code, in Python allow_code=True, if you trust whoever made the run."
            )
        return cloudpickle.loads(content)


class _Careful:
    """A fitted estimator that predicts from copies: one such as `StandardScaler(copy=False)` writes into its rows."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def __getattr__(self, name: str) -> object:
        found = getattr(self._model, name)
        if name not in ("predict", "predict_proba", "decision_function"):
            return found
        return lambda rows: found(rows.copy())


def is_factory(source: object) -> TypeGuard[Callable[..., Estimator]]:
    """Return whether it is a class or a function; an object with `fit` is an estimator, even if it can be called."""
    return isinstance(source, type) or (callable(source) and not hasattr(source, "fit"))


def _configure(estimator: Estimator, params: Config, seed: int) -> None:
    known = estimator.get_params(deep=True)
    for name in params:
        if name not in known:
            hint = did_you_mean(name, known)
            raise DefinitionError(f"models: {type(estimator).__name__} has no parameter {name!r}.{hint}")
    estimator.set_params(**params)
    known = estimator.get_params(deep=True)
    settings: dict[str, object] = {}
    for name, value in known.items():
        last = name.rpartition("__")[2]
        if last == "random_state" and value is None:
            settings[name] = seed
        elif last in THREADS and value not in (None, 1):
            settings[name] = min(value, threads()) if isinstance(value, int) and value > 0 else threads()
    for prefix, part in (("", estimator), *((f"{name}__", value) for name, value in known.items())):
        name = f"{prefix}{TAKE_ALL_CORES.get(_root(part))}"
        if hasattr(part, "get_params") and _root(part) in TAKE_ALL_CORES and known.get(name) is None:
            settings[name] = threads()
    estimator.set_params(**settings)


def _root(value: object) -> str:
    kind = value if isinstance(value, type) or hasattr(value, "__qualname__") else type(value)
    return str(getattr(kind, "__module__", "")).partition(".")[0]


def _takes(function: Callable[..., object], name: str) -> bool:
    parameters = signature_of(function) or {}
    return name in parameters or any(item.kind is inspect.Parameter.VAR_KEYWORD for item in parameters.values())


def _weights(estimator: Estimator, train: EncodedRows) -> dict[str, object]:
    """The argument of `fit` for sample weights, for a pipeline that of its last step; none where it takes none."""
    if train.weight is None:
        return {}
    steps = getattr(estimator, "steps", None)
    fit = steps[-1][1].fit if steps else estimator.fit
    if "sample_weight" not in inspect.signature(fit).parameters:
        return {}
    return {f"{steps[-1][0]}__sample_weight" if steps else "sample_weight": train.weight.copy()}


def _names_columns(estimator: Estimator) -> bool:
    values = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return any(type(value).__name__ in BY_COLUMN_NAME for value in (estimator, *values))
