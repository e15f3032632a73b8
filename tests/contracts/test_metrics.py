"""Metrics and targets that they are undefined for: a model with figures that mean something, or a sentence of ours."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import get_scorer_names
from trained import trained

from tuning.definition.definition import define
from tuning.errors import CustomerError, DefinitionError, PlanError
from tuning.evaluation.conclusion import conclude
from tuning.evaluation.metrics import Metric, is_of_classes, resolve_metric
from tuning.evaluation.study_data import train
from tuning.evaluation.winner import StudyOutcome
from tuning.notes import PlanCode, texts
from tuning.planning.plan import make_plan
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION
from tuning.study.customer_data import CustomerData, OwnCode

ROWS = 90
RNG = np.random.default_rng(0)
A = RNG.normal(size=ROWS)
SIZE = np.exp(0.5 * A + 2)
EARLY = np.arange(ROWS) < 40
NUMBERS = {
    "usual": SIZE,
    "counts": RNG.poisson(SIZE / 4),
    "mostly zeros": np.where(A > 1, SIZE, 0.0),
    "a single zero": np.where(np.arange(ROWS) == 5, 0.0, SIZE),
    "nearly zero": np.where(np.arange(ROWS) == 5, 1e-14, SIZE),
    "some negative": 3 * A,
    "just below zero": 0.3 * np.tanh(A),
    "all negative": -SIZE,
    "very large": SIZE * 1e60,
    "very small": SIZE * 1e-60,
    "constant": np.full(ROWS, 7.0),
    "zeros": np.zeros(ROWS),
    "constant early": np.where(EARLY, 3.0, SIZE),
    "zero early": np.where(EARLY, 0.0, SIZE),
    "constant but for one": np.where(np.arange(ROWS) == 5, 8.0, 7.0),
    "four rows": SIZE[:4],
    "six rows": SIZE[:6],
    "one row": SIZE[:1],
    "infinite": np.where(np.arange(ROWS) == 5, np.inf, SIZE),
}
TWO = np.where(A + RNG.normal(size=ROWS) > 0, "yes", "no")
THREE = np.array(["a", "b", "c"])[np.digitize(A + 0.3 * RNG.normal(size=ROWS), [-0.5, 0.5])]
CLASSES = {
    "two": TWO,
    "three": THREE,
    "one": np.full(ROWS, "yes"),
    "one early": np.where(EARLY, "no", TWO),
    "one late": np.where(EARLY, TWO, "no"),
    "one row of the other": np.where(np.arange(ROWS) == 5, "yes", "no"),
    "three rows of the other": np.where(np.arange(ROWS) % 30 == 5, "yes", "no"),
    "two of three early": np.where(EARLY & (THREE == "c"), "a", THREE),
    "a class of one row": np.where(np.arange(ROWS) == 5, "d", THREE),
    "a class per row": np.arange(ROWS).astype(str),
    "six rows of two": TWO[:6],
    "six rows of three": np.array([*"abcabc"]),
    "one row": TWO[:1],
}
# Averages over classes as those of F1, which has all targets.
AVERAGES = re.compile("(precision|recall|jaccard)_(macro|micro|weighted)")
OF_AVERAGES = ("three", "one early", "a class of one row")
RAW = re.compile(
    r"\by_(true|pred|score)\b|n_splits|sklearn|Tweedie|pos_label|\barray|Traceback|Error\b|\bnan\b|\bneg_",
    re.IGNORECASE,
)
FAMILY = {REGRESSION: "ridge", "classes": "logistic"}
OF_TREES = ("r2", "neg_mean_gamma_deviance")  # a tree predicts nothing beyond the targets that it has seen


def outcomes(task: str, y: np.ndarray, metric: str, split: dict[str, Any]) -> Iterator[StudyOutcome]:
    """From the plan to the model, as a run does it."""
    frame = pd.DataFrame({"a": A[: len(y)], "day": np.arange(len(y)), "y": y})
    named = REGRESSION if task == REGRESSION else BINARY if len(np.unique(y)) == 2 else MULTICLASS
    made = define({"data": frame, "target": "y", "task": named, "metric": metric, "split": split, "drop": ["day"]})
    plan = make_plan(made)
    data = CustomerData(plan.spec, OwnCode(made), lambda _: frame).prepared(plan.studies[0].customer)
    known = Metric(plan.spec.metric, data.task)
    for family in (FAMILY[task], *["extra_trees"] * (metric in OF_TREES)):
        config = {"model": family, **({"n_estimators": 10} if family == "extra_trees" else {})}
        yield conclude([trained(config, data, known)], replace(data, kept=None), known, "acme")


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "metric"),
    [("classes" if is_of_classes(name) else REGRESSION, name) for name in sorted(get_scorer_names())],
)
def test_a_metric_scores_each_target_or_says_why_it_cannot(task: str, metric: str) -> None:
    sentences = {}
    targets = NUMBERS if task == REGRESSION else CLASSES
    for name in OF_AVERAGES if AVERAGES.fullmatch(metric) else targets:
        y, by_time = targets[name], re.search("early|late|rows", name)
        split: dict[str, Any] = {"type": "time", "column": "day"} if by_time else {"type": "random", "folds": 2}
        try:
            with warnings.catch_warnings(action="ignore"):
                found = list(outcomes(task, y, metric, split))
        except (CustomerError, PlanError, DefinitionError) as error:
            sentences[name] = str(error)
            continue
        size = max(float(np.abs(y).max()) ** 2, 1.0) if task == REGRESSION else 1.0
        for outcome in found:
            assert outcome.winner is not None, name
            for figure in (outcome.winner.score, outcome.test_score):
                assert figure is None or abs(figure) < 1e4 * size, (name, figure)  # NaN is not
            sentences[name] = texts(outcome.notes)
    assert not {name: said for name, said in sentences.items() if RAW.search(said)}


@pytest.mark.parametrize("task", [REGRESSION, BINARY, MULTICLASS])
def test_a_metric_by_which_a_mistake_makes_a_model_better_is_refused(task: str) -> None:
    with pytest.raises(DefinitionError, match=f"does not fit {task}: a model without a mistake is not the best in it"):
        resolve_metric("positive_likelihood_ratio", task)


def refused(metric: str, y: np.ndarray, **fields: object) -> str:
    """What the plan says before the run; a refusal, or the notes."""
    frames = {f"c{number}": pd.DataFrame({"a": A[: len(each)], "y": each}) for number, each in enumerate((y, SIZE))}
    data = frames if fields.pop("others", None) else {"c0": frames["c0"]}
    try:
        plan = make_plan(define({"data": data, "target": "y", "task": REGRESSION, "metric": metric, **fields}))
    except PlanError as error:
        return str(error)
    return "; ".join(str(note) for note in plan.notes if note.code is PlanCode.METRIC_UNDEFINED)


@pytest.mark.parametrize(
    ("metric", "name", "said"),
    [
        ("mape", "counts", "mape divides by the target, which is 0 or nearly 0 in 14 of 90 rows: take mae or rmse."),
        ("mape", "mostly zeros", "mape divides by the target, which is 0 or nearly 0 in 72 of 90 rows"),
        ("mape", "a single zero", "in 1 of 90 rows"),
        ("neg_mean_absolute_percentage_error", "nearly zero", "mape divides by the target"),
        ("mape", "some negative", ""),
        ("mape", "very small", ""),
        ("rmsle", "some negative", "rmsle takes the logarithm of 1 + the target, which is -1 or less in 31 of 90 rows"),
        ("msle", "all negative", "msle takes the logarithm of 1 + the target, which is -1 or less in 90 of 90 rows"),
        ("rmsle", "just below zero", ""),
        ("rmsle", "counts", ""),
        ("mean_poisson_deviance", "mostly zeros", ""),
        ("mean_poisson_deviance", "some negative", "is for targets of at least 0, and the target is less in 41 of 90"),
        ("mean_gamma_deviance", "counts", "is for targets above 0, and the target is 0 or less in 14 of 90 rows: take"),
        ("mean_gamma_deviance", "usual", ""),
        *(
            (metric, name, "")
            for metric in ("rmse", "mae", "r2")
            for name in ("counts", "some negative", "nearly zero")
        ),
    ],
)
def test_a_target_that_a_metric_cannot_score_is_said_before_the_run(metric: str, name: str, said: str) -> None:
    found = refused(metric, NUMBERS[name])
    assert (said in found and found.startswith("metric: ")) if said else found == ""
    other = refused(metric, NUMBERS[name], others=True)  # which gets its model
    assert said in other
    assert other.startswith("metric, of 1 of the 2 customers looked at ('c0'): ") is bool(said)


def test_rows_without_weight_are_not_scored_and_so_may_have_any_target() -> None:
    y = NUMBERS["a single zero"]
    frame = pd.DataFrame({"a": A, "w": (y > 0).astype(float), "y": y})
    made = define({"data": frame, "target": "y", "task": REGRESSION, "metric": "mape", "weight": "w"})
    plan = make_plan(made)
    CustomerData(plan.spec, OwnCode(made), lambda _: frame).prepared(plan.studies[0].customer)


@pytest.mark.parametrize("bounds", ["auto", [0, None], [0.001, None]])
@pytest.mark.parametrize("name", ["mostly zeros", "counts", "zero early"])
def test_a_deviance_gives_a_model_whose_predictions_are_above_zero(name: str, bounds: object) -> None:
    frame = pd.DataFrame({"a": A, "y": NUMBERS[name]})
    keys = {"data": frame, "target": "y", "task": REGRESSION, "metric": "mean_poisson_deviance", "bounds": bounds}
    plan = make_plan(define(keys))
    data = CustomerData(plan.spec, OwnCode(plan.spec.definition), lambda _: frame).prepared(plan.studies[0].customer)
    metric = Metric(plan.spec.metric, data.task)
    for config in ({"model": "ridge"}, {"model": "extra_trees", "n_estimators": 5}):
        *_, last = train(config, data, metric, 0)
        assert 0 < last.score < 1e4
        rows = data.everything(data.family(config["model"]))[1]
        within = data.bounds_of(rows)
        assert within is not None
        assert within.low > 0
