"""The metric of a search: scikit-learn's scorers by name, or a user's own function."""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from schedulers.direction import Mode, worth_of
from tuning.basics.wording import amount, did_you_mean, shorten
from tuning.errors import DefinitionError
from tuning.evaluation.fast_scores import LOG_LOSS, log_loss, quick_score, quick_scores
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, TASKS, Prediction, Task
from tuning.records.gains import ERRORS, is_error
from tuning.user_code import signature_of

DEFAULT_METRIC = {
    REGRESSION: "rmse",
    BINARY: "roc_auc",
    MULTICLASS: "log_loss",
}
# What people write in place of a metric's name, such as that of scikit-learn's scorer.
ALIASES = {
    **{scorer.removeprefix("neg_"): name for name, scorer in ERRORS.items()},
    **{scorer: name for name, scorer in ERRORS.items()},
    "auc": "roc_auc",
}
BETWEEN_0_AND_1 = ("accuracy", "top_k_accuracy", "average_precision", "f1", "precision", "recall", "jaccard", "roc_auc")
UP_TO_1 = ("r2", "explained_variance", "d2_", "balanced_accuracy")

FEW = 10  # rows of a class


@dataclass(frozen=True)
class Metric:
    """A metric by name, with scores as users read them: those of an error are 0 or more, and smaller ones are better.

    name: `roc_auc`, `mae`, …, or what a user's function is called.
    function: the user's own, called as `function(y_true, y_pred)` with numbers or the data's class labels; with
    probabilities (of the positive class in binary classification, else (n, classes)) when it has an attribute
    `needs_proba = True`; with `sample_weight` when it takes that and rows are weighted. One that takes
    `(estimator, X, y)`, such as what `sklearn.metrics.make_scorer` returns, is called as a scorer.
    own_mode: which of its scores are better.
    """

    name: str
    task: Task
    function: Callable[..., float] | None = None
    own_mode: Mode = "max"

    @property
    def mode(self) -> Mode:
        """Which scores are better."""
        return mode_of(self.name) if self.function is None else self.own_mode

    def score(self, y: np.ndarray, prediction: Prediction, weight: np.ndarray | None = None) -> float:
        """Return the score of a prediction for true values (numbers, or class codes), rows counting by their weight."""
        if self.function is not None:
            return self._user_score(self.function, y, prediction, weight)
        if weight is None:
            quick = quick_score(self.name, y, prediction, self.task)
            if quick is not None:
                return quick
        _check_numbers(prediction)
        if weight is not None and self.name == LOG_LOSS and prediction.proba is not None:
            return log_loss(y, prediction, self.task, weight)
        shim = _shim_classes()[self.task.classification](prediction, len(self.task.classes))
        extra = {} if weight is None else {"sample_weight": weight}
        score = float(_scorer(self.name)(shim, _ScoredRows(len(y)), y, **extra))
        return 0.0 - score if is_error(self.name) else score

    def scores(self, y: np.ndarray, answers: np.ndarray) -> np.ndarray | None:
        """Return the scores of answers (k, n) to a regression at once; None where each has to be scored by itself."""
        if self.function is not None or self.task.classification:
            return None
        return quick_scores(self.name, y, answers)

    def _user_score(
        self, function: Callable[..., float], y: np.ndarray, prediction: Prediction, weight: np.ndarray | None
    ) -> float:
        # Copies: a function may write into what it gets (`y_true[y_true == 0] = 1`), which later scores are made of.
        y, prediction = y.copy(), prediction.copy()
        wanted = _parameters(function)
        extra = {"sample_weight": weight.copy()} if weight is not None and "sample_weight" in wanted else {}
        truth, values = y, prediction.values
        if self.task.classification:
            labels = np.asarray(self.task.classes)
            truth, values = labels[y], labels[values]
        if wanted[:1] == ("estimator",):
            if self.task.classification:
                prediction, labels = _sorted_by_label(prediction, labels)
                shim = _shim_classes()[True](prediction, len(labels), labels)
            else:
                shim = _shim_classes()[False](prediction, 0)
            return _as_score(function(shim, _ScoredRows(len(y)), truth, **extra), self.name)
        if getattr(function, "needs_proba", False):
            if prediction.proba is None:
                raise ValueError(f"this model has no probabilities, which {self.name} needs")
            values = prediction.proba[:, 1] if self.task.kind == BINARY else prediction.proba
        return _as_score(function(truth, values, **extra), self.name)

    def defined_for(self, y: np.ndarray, weight: np.ndarray | None = None) -> bool:
        """Whether the metric tells a perfect prediction for these rows from others; a user's function is taken to.

        It does not where no prediction has a score, or all have the same, as the F1 of rows without the positive class,
        or where one with a mistake is better, as for `positive_likelihood_ratio`, which divides by the mistakes.
        """
        if self.function is not None:
            return True
        if self.task.classification:
            last = len(self.task.classes) - 1
            wrong = (y + 1) % (last + 1)
            half_wrong = np.where(np.arange(len(y)) < len(y) // 2, y, wrong)
            one_wrong = np.where(np.arange(len(y)) == y.argmin(), wrong, y)
            best, *others = (
                worth_of(self._score_or_nan(y, sure_of(codes, self.task), weight), self.mode)
                for codes in (y, half_wrong, one_wrong, wrong, np.zeros_like(y), np.full_like(y, last))
            )
            return math.isfinite(best) and any(each != best for each in others) and not any(map(best.__lt__, others))
        if self.name.startswith(UP_TO_1) and (y == y[0]).all():
            return False  # compared with a constant, which is perfect there
        above_zero = np.maximum(y, np.finfo(np.float64).tiny) if (y >= 0.0).all() else y  # deviances ask for that
        return math.isfinite(self._score_or_nan(y, Prediction(above_zero), weight))

    def _score_or_nan(self, y: np.ndarray, prediction: Prediction, weight: np.ndarray | None) -> float:
        with contextlib.suppress(ValueError), warnings.catch_warnings(action="ignore"):
            return self.score(y, prediction, weight)
        return math.nan


def _check_numbers(prediction: Prediction) -> None:
    """Raise `ValueError` for a prediction of NaN, which a scorer would call its input."""
    for kind, found in (("", prediction.values), ("probabilities of ", prediction.proba)):
        if found is not None and (missing := np.isnan(found)).any():
            rows = int(missing.reshape(len(found), -1).any(axis=1).sum())
            raise ValueError(f"the model predicts {kind}NaN for {rows} of {amount(len(found), 'row')}")


def _as_score(value: object, name: str) -> float:
    """Return what a user's function says as a number; `TypeError` for anything but a single one."""
    if not (getattr(value, "shape", ()) or isinstance(value, complex | np.complexfloating)):
        with contextlib.suppress(TypeError, ValueError):
            return float(value)  # type: ignore[arg-type]  # whatever has `__float__`
    raise TypeError(f"the metric {name} returned {shorten(repr(value), 60)}; return a single number, such as a float")


def sure_of(codes: np.ndarray, task: Task) -> Prediction:
    """Return the prediction of these classes (n,), each with a probability of nearly 1."""
    proba = np.full((len(codes), len(task.classes)), 0.1 / len(task.classes))
    proba[np.arange(len(codes)), codes] += 0.9
    return Prediction(values=codes, proba=proba)


def _sorted_by_label(prediction: Prediction, labels: np.ndarray) -> tuple[Prediction, np.ndarray]:
    """A prediction with its classes in the order that a classifier of scikit-learn gives them, and the labels so."""
    ordered, order = np.unique(labels, return_index=True)
    if (order == np.arange(len(order))).all():
        return prediction, labels
    proba = None if prediction.proba is None else prediction.proba[:, order]
    decision = prediction.decision
    if decision is not None:
        decision = -decision if decision.ndim == 1 else decision[:, order]
    return Prediction(np.argsort(order)[prediction.values], proba, decision), ordered


@cache
def _parameters(function: Callable[..., float]) -> tuple[str, ...]:
    return tuple(signature_of(function) or ())


@cache
def _scorer(name: str) -> Callable[..., float]:
    from sklearn.metrics import get_scorer

    return get_scorer(ERRORS.get(name, name))


@cache
def _names() -> list[str]:
    """Return the metrics that scikit-learn has a scorer of."""
    from sklearn.metrics import get_scorer_names

    return sorted(ALIASES.get(name, name) for name in get_scorer_names())


def proper_metric(metric: Metric, rarest: int | None) -> Metric:
    """Return by what probabilities are compared: the log loss where a class has fewer than `FEW` rows, by which other
    metrics take few values. rarest: search rows of the rarest class; None of a regression."""
    if rarest is None or rarest >= FEW or metric.function is not None:
        return metric
    return Metric(LOG_LOSS, metric.task)


def mode_of(name: str) -> Mode:
    """Return which scores of one of scikit-learn's metrics are better."""
    return "min" if is_error(name) else "max"


def resolve_metric(name: str | None, task: str, weighted: bool = False) -> str:
    """Return the metric's name: the task's default when None, an alias resolved, an unknown or unfit one refused.

    weighted: it has to take sample weights.
    """
    if name is None:
        return DEFAULT_METRIC[task]
    resolved = ALIASES.get(name, name)
    known = _names()
    if resolved not in known:
        plain = name.lower().replace("-", "_").removesuffix("_score")  # as functions are named: f1_score
        hint = did_you_mean(plain if plain in known else name, [*known, *ALIASES])
        raise DefinitionError(
            f"metric: {name!r} is not a scikit-learn scorer.{hint} "
            "Any name of sklearn.metrics.get_scorer_names() or package.module:function is allowed."
        )
    _check_fits(resolved, task, weighted)
    return resolved


def is_of_classes(name: str | None) -> bool | None:
    """Return whether a metric, or an alias of one, is for classes and not for numbers; None where that is not known."""
    resolved = ALIASES.get(name or "", name)
    tasks = [task for task in TASKS if resolved in _names() and _scores(resolved, task)]
    return REGRESSION not in tasks if tasks else None


def _check_fits(name: str, task: str, weighted: bool) -> None:
    if not _scores(name, task):
        tasks = [other for other in TASKS if _scores(name, other)]
        no_use = (
            "it scores several labels per row"
            if name.endswith("_samples")
            else "a model without a mistake is not the best in it"
        )
        meant = f"it is for {' and '.join(tasks)}" if tasks else no_use
        kin = [other for other in _names() if other.startswith(f"{name}_") and _scores(other, task, weighted)]
        use = f" For {task} there are {', '.join(kin)}." if kin else ""
        raise DefinitionError(
            f"metric: {name!r} does not fit {task}: {meant}.{use} The default for {task} is {DEFAULT_METRIC[task]!r}."
        )
    if weighted and not _scores(name, task, weighted):
        raise DefinitionError(f"metric: {name!r} takes no sample weights; remove `weight`, or choose another metric.")


@cache
def _scores(name: str, task: str, weighted: bool = False) -> bool:
    """Try the scorer once on a tiny made-up example of the task; what it refuses there it refuses everywhere."""
    y, kind = _example(task)
    if _is_of_numbers(name) == kind.classification:
        return False  # one of numbers takes the codes of classes for numbers, one of classes takes numbers for classes
    try:
        return Metric(name, kind).defined_for(y, np.ones(len(y)) if weighted else None)
    except Exception:  # whatever a scorer says of it
        return False


def _example(task: str) -> tuple[np.ndarray, Task]:
    """Return a few targets of a task."""
    if task == REGRESSION:
        return np.array([1.0, 2.0, 3.0]), Task(REGRESSION)
    classes = 2 if task == BINARY else 3
    return np.arange(6) % classes, Task(task, tuple(range(classes)))


@cache
def _is_of_numbers(name: str) -> bool:
    """Whether a metric takes any numbers and no text; one of classes refuses numbers between them, or takes text."""
    return not _takes(name, np.array(["a", "b", "c"])) and _takes(name, np.array([1.5, 2.25, 3.5]))


def _takes(name: str, values: np.ndarray) -> bool:
    """Return whether a metric scores these values, which are both the true and the predicted ones."""
    shim = _shim_classes()[False](Prediction(values=values), 0)
    try:
        _scorer(name)(shim, _ScoredRows(len(values)), values)
    except Exception:  # whatever a scorer says of it
        return False
    return True


def score_range(name: str) -> tuple[float, float]:
    """Return the worst and the best score that one of scikit-learn's metrics can give, as far as its name tells."""
    if is_error(name):
        return math.inf, 0.0
    if name.startswith(BETWEEN_0_AND_1):
        return 0.0, 1.0
    if name == "matthews_corrcoef":
        return -1.0, 1.0
    return -math.inf, 1.0 if name.startswith(UP_TO_1) else math.inf


def needs_probabilities(name: str, task: str, function: Callable[..., float] | None = None) -> bool:
    """Whether a classifier without probabilities cannot be scored by a metric; function: where it is the user's own."""
    decision = np.arange(6) % 2 - 0.5 if task == BINARY else np.eye(3)[np.arange(6) % 3]
    return _refuses(name, task, function, decision)


def needs_scores(name: str, task: str, function: Callable[..., float] | None = None) -> bool:
    """Return whether predicted labels alone cannot be scored by a metric; function: as of `needs_probabilities`."""
    return _refuses(name, task, function, None)


def _refuses(name: str, task: str, function: Callable[..., float] | None, decision: np.ndarray | None) -> bool:
    """Return whether labels with such decision values cannot be scored."""
    if function is not None:
        return bool(getattr(function, "needs_proba", False))
    y, kind = _example(task)
    try:
        Metric(name, kind).score(y, Prediction(values=y, decision=decision))
    except ValueError:
        return True
    return False


class _ScoredRows:
    """Stands where a scorer expects X: only its length is ever looked at."""

    def __init__(self, rows: int) -> None:
        self.shape = (rows, 1)

    def __len__(self) -> int:
        return self.shape[0]


@cache
def _shim_classes() -> dict[bool, Callable[..., object]]:
    """Estimators that answer a scorer with predictions made earlier, so that scorers keep their public API."""
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

    class Predicted(BaseEstimator):
        def __init__(self, prediction: Prediction, classes: int, labels: Sequence[object] | None = None) -> None:
            self.prediction, self.classes, self.labels = prediction, classes, labels
            self.classes_ = np.arange(classes) if labels is None else np.asarray(labels)

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def predict(self, X: _ScoredRows) -> np.ndarray:
            values = self.prediction.values
            return values if self.labels is None or not self.classes else self.classes_[values]

    class PredictedNumbers(RegressorMixin, Predicted):
        pass

    class PredictedClasses(ClassifierMixin, Predicted):
        def predict_proba(self, X: _ScoredRows) -> np.ndarray:
            if self.prediction.proba is None:
                raise ValueError("this model has no probabilities; choose a metric of predicted classes")
            return self.prediction.proba

        def decision_function(self, X: _ScoredRows) -> np.ndarray:
            if self.prediction.decision is not None:
                return self.prediction.decision
            proba = self.predict_proba(X)
            return proba[:, 1] if self.classes == 2 else proba

    return {False: PredictedNumbers, True: PredictedClasses}
