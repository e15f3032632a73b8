"""Losses of single rows, and the metrics of which they do not say all."""

from __future__ import annotations

import numpy as np
import pytest

from tuning.champions.losses import MetricSoFar, RowLoss, block_means, row_loss
from tuning.evaluation.metrics import Metric
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task

TASKS = {REGRESSION: Task(REGRESSION), BINARY: Task(BINARY, ("no", "yes")), MULTICLASS: Task(MULTICLASS, (0, 1, 2))}
NUMBERS = np.array([1.0, 2.0, 4.0, 8.0])
CLASSES = np.array([0, 1, 1, 0])


def prediction_of(task: str, right: float) -> Prediction:
    if task == REGRESSION:
        return Prediction(NUMBERS + np.array([1, -1, 2, 0]) * (1 - right))
    proba = np.full((4, 2 if task == BINARY else 3), (1 - right) / (1 if task == BINARY else 2))
    proba[np.arange(4), CLASSES] = right
    return Prediction(proba.argmax(axis=1), proba)


@pytest.mark.parametrize(
    ("metric", "task", "loss", "of_rows"),
    [
        ("rmse", REGRESSION, "squared error", True),
        ("r2", REGRESSION, "squared error", True),
        ("max_error", REGRESSION, "squared error", False),
        ("mae", REGRESSION, "absolute error", True),
        ("median_absolute_error", REGRESSION, "absolute error", False),
        ("mape", REGRESSION, "absolute error", False),
        ("log_loss", MULTICLASS, "log loss", True),
        ("roc_auc", BINARY, "log loss", False),
        ("accuracy", BINARY, "0/1", True),
        ("f1_macro", MULTICLASS, "0/1", False),
        ("balanced_accuracy", BINARY, "0/1", False),
    ],
)
def test_each_metric_has_a_loss_of_rows(metric: str, task: str, loss: str, of_rows: bool) -> None:
    found = row_loss(Metric(metric, TASKS[task]))
    assert found == RowLoss(loss, of_rows)
    y = NUMBERS if task == REGRESSION else CLASSES
    better, worse = (found.of(y, prediction_of(task, right)).mean() for right in (0.9, 0.3))
    assert better < worse


@pytest.mark.parametrize(
    ("metric", "task"),
    [
        ("mse", REGRESSION),
        ("mae", REGRESSION),
        ("log_loss", BINARY),
        ("accuracy", BINARY),
    ],
)
def test_the_mean_of_the_losses_is_the_metric(metric: str, task: str) -> None:
    one = Metric(metric, TASKS[task])
    y = NUMBERS if task == REGRESSION else CLASSES
    given = prediction_of(task, 0.3)
    score = one.score(y, given)
    mean = row_loss(one).of(y, given).mean()
    assert mean == pytest.approx(score if one.mode == "min" else 1 - score)


def test_classifiers_without_probabilities_are_right_or_wrong() -> None:
    assert row_loss(Metric("roc_auc", TASKS[BINARY]), probabilities=False) == RowLoss("0/1", of_rows=False)
    assert row_loss(Metric("accuracy", TASKS[BINARY])).bound == 1
    assert row_loss(Metric("log_loss", TASKS[BINARY])).bound == np.inf


def test_a_wrong_certainty_costs_no_more_than_the_least_chance_where_the_metric_does_not_see_it() -> None:
    certain = Prediction(np.array([1]), np.array([[0.0, 1.0]]))
    y = np.array([0])
    assert row_loss(Metric("roc_auc", TASKS[BINARY])).of(y, certain) == pytest.approx(-np.log(0.001))
    assert row_loss(Metric("log_loss", TASKS[BINARY])).of(y, certain) > 30


def test_a_users_own_metric_says_by_what_it_is_given_which_loss_is_like_it() -> None:
    def of_classes(y_true: np.ndarray, y_pred: np.ndarray) -> float:
        return float((y_true == y_pred).mean())

    class OfChances:
        needs_proba = True

        def __call__(self, y_true: np.ndarray, y_pred: np.ndarray) -> float:
            return float(y_pred.mean())

    losses = [row_loss(Metric("mine:score", TASKS[BINARY], function)).name for function in (of_classes, OfChances())]
    assert losses == ["0/1", "log loss"]
    assert row_loss(Metric("mine:score", TASKS[REGRESSION], of_classes)) == RowLoss("squared error", of_rows=False)


def test_rows_of_one_block_count_as_one() -> None:
    losses = np.array([1.0, 3.0, 10.0, 2.0])
    assert block_means(losses, np.array(["b", "b", "a", "c"])).tolist() == [10.0, 2.0, 2.0]
    assert block_means(losses, None) is losses


def test_a_metric_that_is_none_of_rows_is_the_mean_of_weeks_by_rows() -> None:
    auc = Metric("roc_auc", TASKS[BINARY])
    y = np.array([0, 0, 1, 1])
    chances = np.stack([1 - y, y], axis=1) * 0.8 + 0.1
    ranked, turned = Prediction(y, chances), Prediction(1 - y, chances[:, ::-1])
    first = MetricSoFar().after(auc, y, turned, ranked)
    assert (first.rows, first.champion, first.challenger) == (4, 0.0, 1.0)
    one_class = first.after(auc, np.ones(4, int), turned, ranked)
    assert one_class == first
    thrice = Prediction(np.tile(y, 3), np.tile(chances, (3, 1)))
    second = first.after(auc, np.tile(y, 3), thrice, thrice)
    assert (second.rows, second.champion, second.challenger) == (16, 0.75, 1.0)
