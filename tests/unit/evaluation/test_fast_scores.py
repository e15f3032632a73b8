"""The quick scores are scikit-learn's scores: compared on made-up predictions, easy, tied, extreme and undefined."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from sklearn.metrics import get_scorer

from tuning.evaluation.fast_scores import CLASSIFICATION, REGRESSION, quick_score
from tuning.evaluation.metrics import Metric, _ScoredRows, _shim_classes
from tuning.preprocessing.task import BINARY, MULTICLASS, Prediction, Task
from tuning.preprocessing.task import REGRESSION as NUMBERS
from tuning.records.gains import ERRORS


def by_scikit_learn(name: str, y: np.ndarray, prediction: Prediction, task: Task) -> float:
    shim = _shim_classes()[task.classification](prediction, len(task.classes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (-1 if name in ERRORS else 1) * float(get_scorer(ERRORS.get(name, name))(shim, _ScoredRows(len(y)), y))


def agree(name: str, y: np.ndarray, prediction: Prediction, task: Task) -> bool:
    quick = quick_score(name, y, prediction, task)
    expected = by_scikit_learn(name, y, prediction, task)
    return quick is not None and math.isclose(quick, expected, rel_tol=1e-12, abs_tol=1e-15)


@pytest.mark.parametrize("name", sorted(REGRESSION))
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e9])
def test_numbers(name: str, scale: float) -> None:
    rng = np.random.default_rng(1)
    for rows in (2, 3, 17, 500, 5000):
        y = scale * (rng.normal(size=rows) + 3)
        assert agree(name, y, Prediction(y + scale * rng.normal(size=rows)), Task(NUMBERS))
        assert agree(name, y, Prediction(y), Task(NUMBERS))


@pytest.mark.parametrize("name", sorted(REGRESSION))
def test_several_answers_have_the_scores_that_each_has_alone(name: str) -> None:
    rng = np.random.default_rng(1)
    for rows in (1, 3, 8, 9, 130, 1001):
        y, answers = rng.normal(size=rows), rng.normal(size=(7, rows))
        alone = [quick_score(name, y, Prediction(answer), Task(NUMBERS)) for answer in answers]
        together = Metric(name, Task(NUMBERS)).scores(y, answers)
        assert (alone == [None] * 7) if together is None else (together.tolist() == alone)


@pytest.mark.parametrize("name", sorted(CLASSIFICATION))
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_classes(name: str, classes: int) -> None:
    task = Task(BINARY if classes == 2 else MULTICLASS, tuple(range(classes)))
    rng = np.random.default_rng(classes)
    compared = 0
    for rows in (8, 40, 41, 500):
        for spread in (0.0, 0.3, 3.0, 100.0):  # from all tied to probabilities of 0 and 1
            y = np.concatenate([np.arange(classes), rng.integers(0, classes, rows)])
            logits = np.round(spread * rng.normal(size=(len(y), classes)), 1)
            proba = np.exp(logits - logits.max(axis=1, keepdims=True))
            proba /= proba.sum(axis=1, keepdims=True)
            answers = [Prediction(proba.argmax(axis=1), proba), Prediction(np.zeros(len(y), dtype=int), proba)]
            if classes == 2:
                answers.append(Prediction(proba.argmax(axis=1), decision=logits[:, 1] - logits[:, 0]))
            for answer in answers:
                if quick_score(name, y, answer, task) is not None:
                    assert agree(name, y, answer, task)
                    compared += 1
    assert compared > 20 or (classes > 2 and name in ("f1", "roc_auc"))


@pytest.mark.parametrize("name", ["accuracy", "balanced_accuracy", "f1_macro", "f1_weighted"])
def test_rows_that_lack_a_class(name: str) -> None:
    task = Task(MULTICLASS, ("a", "b", "c", "d"))
    y = np.array([0, 0, 2, 2, 2])
    for values in ([0, 2, 2, 2, 2], [1, 1, 1, 1, 1], [0, 0, 2, 2, 2]):
        assert agree(name, y, Prediction(np.array(values)), task)


def test_log_loss_of_rows_that_lack_a_class_is_defined() -> None:
    task = Task(MULTICLASS, ("a", "b", "c"))
    proba = np.array([[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]])
    score = Metric("log_loss", task).score(np.array([0, 2]), Prediction(proba.argmax(axis=1), proba))
    assert score == pytest.approx(-(math.log(0.5) + math.log(0.8)) / 2)


@pytest.mark.parametrize(
    ("name", "y", "prediction", "kind"),
    [
        ("r2", [3.0, 3.0], Prediction(np.array([3.0, 3.0])), NUMBERS),
        ("r2", [3.0, 3.0], Prediction(np.array([3.0, 4.0])), NUMBERS),
        ("f1", [0, 0], Prediction(np.array([0, 0])), BINARY),
    ],
)
def test_undefined_scores_are_scikit_learns(name: str, y: list[float], prediction: Prediction, kind: str) -> None:
    task = Task(kind, () if kind == NUMBERS else ("no", "yes"))
    assert quick_score(name, np.array(y), prediction, task) is None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        score = Metric(name, task).score(np.array(y), prediction)
    assert score == by_scikit_learn(name, np.array(y), prediction, task)


def test_a_prediction_that_is_not_a_number_is_refused_as_scikit_learn_refuses_it() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Metric("mae", Task(NUMBERS)).score(np.array([1.0, 2.0]), Prediction(np.array([1.0, np.nan])))
    missing = Prediction(np.array([0, 1]), np.array([[np.nan, np.nan], [0.5, 0.5]]))
    with pytest.raises(ValueError, match="NaN"):
        Metric("roc_auc", Task(BINARY, (0, 1))).score(np.array([0, 1]), missing)
