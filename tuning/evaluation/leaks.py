"""Columns that tell the target: known only after it, or made of it, so that a model of them is worth nothing later."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import yaml

from schedulers.direction import worth_of
from tuning.evaluation.metrics import Metric, score_range
from tuning.evaluation.study_data import StudyData
from tuning.notes import FitCode, Note
from tuning.preprocessing.kinds import DATE, TEXT
from tuning.preprocessing.task import as_prediction
from tuning.preprocessing.telling import tells
from tuning.records.gains import LEAST_OF_CLASS

BELIEVABLE_ROWS = 50  # with fewer rows, folds without a single error are no surprise
STRONG = 0.9  # of what there is between a constant and a perfect model; a weaker one may well need a single column
AS_WELL = 0.98  # of what the model gains over a constant: trees and lines are rougher than models
MOST_COLUMNS, MOST_ROWS = 50, 5000  # looked at
FEW_OTHERS = 20  # rows that are not of the largest class; with fewer, one column of many is as good by chance


def is_too_good(
    metric: str, score: float | None, error: float | None, rows: int, test: float | None, rare_rows: int | None = None
) -> bool:
    """Whether a model is perfect on every fold and on the hold-out: on real rows, a sign of a column that tells the
    target.

    metric: a scorer's name; nothing is known of a user's own function. score, error, test: `cv_score`, `cv_error` and
    `test_score`, None without a hold-out. rare_rows: see `StudyData`; with few of them a perfect score is chance.
    """
    best = score_range(metric)[1]
    if rare_rows is not None and rare_rows < LEAST_OF_CLASS:
        return False
    return ":" not in metric and rows >= BELIEVABLE_ROWS and score == best and error == 0.0 and test in (None, best)


def leak_note(
    data: StudyData,
    metric: Metric,
    score: float | None,
    error: float | None,
    constant: float | None,
    test: float | None,
) -> Note | None:
    """What is said of a model that is perfect, or no better than a single column; None of others.

    score, error: of the winner over the folds. constant: the score of knowing nothing. test: the model's, on the
    hold-out.
    """
    if score is None or metric.function is not None or len(data.y) < BELIEVABLE_ROWS:
        return None
    if data.task.classification and len(data.y) - np.bincount(data.y).max() < FEW_OTHERS:
        return None
    perfect = is_too_good(metric.name, score, error, len(data.y), test, data.rare_rows)
    if not perfect and not _strong(score, constant, score_range(metric.name)[1]):
        return None
    worth = worth_of(score, metric.mode)
    least = worth - (error or 0.0)
    if constant is not None:
        nothing = worth_of(constant, metric.mode)
        least = min(least, nothing + AS_WELL * (worth - nothing))
    telling = _telling(data, metric, least)
    if telling:
        return FitCode.LEAK(columns=telling, drop=drop_text(telling))
    return FitCode.TOO_GOOD(metric=metric.name, score=score + 0.0) if perfect else None


def drop_text(columns: Iterable[str]) -> str:
    """What to type into a definition to leave columns out."""
    return f"`drop: [{', '.join(map(_yaml, columns))}]`"


def _yaml(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_]\w*", name) and yaml.safe_load(name) == name
    return name if plain else json.dumps(name, ensure_ascii=False)


def _strong(score: float, constant: float | None, best: float) -> bool:
    if constant is None or not math.isfinite(best) or best == constant:
        return False
    return (score - constant) / (best - constant) >= STRONG


def _telling(data: StudyData, metric: Metric, least: float) -> list[str]:
    """Return the columns that tell the target alone, or reach a score alone. least: that score; see `worth_of`."""
    columns = list(_columns(data))
    if len(columns) < 2 or len(columns) > MOST_COLUMNS:
        return []
    target = pd.Series(data.y)
    found = [name for name, values, is_text in columns if tells(_series(values, is_text), target, data.task.kind)]
    return found or [name for name, values, _ in columns if _alone(values, data, metric) >= least]


def _columns(data: StudyData) -> Iterator[tuple[str, np.ndarray, bool]]:
    """Each column's name, its values, and whether they are codes of text."""
    number = code = 0
    for column in data.columns:
        if column.kind == TEXT:
            yield column.name, data.raw.codes[:, code], True
            code += 1
        else:
            yield column.name, data.raw.numbers[:, number], False  # of a date its day
            number += 4 if column.kind == DATE else 1


def _series(values: np.ndarray, is_text: bool) -> pd.Series:
    return pd.Series(values.astype(str) if is_text else values)


def _alone(values: np.ndarray, data: StudyData, metric: Metric) -> float:
    """What one column alone is worth over the folds: by a tree, or by a straight line where that is better."""
    from sklearn.linear_model import LinearRegression
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    x = np.clip(np.nan_to_num(values.astype(float), nan=-1e30), -1e30, 1e30)[:, np.newaxis]
    leaf = max(1, len(data.split.search) // 200)
    if data.task.classification:
        return _worth(DecisionTreeClassifier(min_samples_leaf=leaf, random_state=0), x, data, metric)
    tree = DecisionTreeRegressor(min_samples_leaf=leaf, random_state=0)
    return max(_worth(each, x, data, metric) for each in (tree, LinearRegression()))


def _worth(model: Any, x: np.ndarray, data: StudyData, metric: Metric) -> float:
    scores = []
    for train, valid in data.split.folds:
        rows, unseen = (data.split.search[each[:: -(-len(each) // MOST_ROWS)]] for each in (train, valid))
        model.fit(x[rows], data.y[rows])
        if data.task.classification:
            answer = np.zeros((len(unseen), len(data.task.classes)))
            answer[:, model.classes_] = model.predict_proba(x[unseen])
        else:
            answer = model.predict(x[unseen])
        try:
            scores.append(metric.score(data.y[unseen], as_prediction(answer, data.task)))
        except ValueError:
            return -math.inf
    return worth_of(math.fsum(scores) / len(scores), metric.mode)
