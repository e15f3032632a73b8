"""What speaks against a model: hold-out rows that contradict the folds, and columns that tell the target.

A column that is known only after the target, or is made of it, makes models that are worth nothing later.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pandas as pd
import yaml

from schedulers.direction import worth_of
from tuning.evaluation.constant import ConstantPrediction
from tuning.evaluation.metrics import Metric, score_range
from tuning.evaluation.study_data import StudyData
from tuning.notes import FitCode, Note
from tuning.preprocessing.kinds import DATE, TEXT
from tuning.preprocessing.telling import tells
from tuning.records.gains import LEAST_OF_CLASS, is_error

KEPT = 0.5  # of what the folds promised over the constant; a model that keeps more of it is not much worse
SURE = 3.0  # standard errors of the difference
BELIEVABLE_ROWS = 50  # with fewer rows, folds without a single error are no surprise
STRONG = 0.9  # of what there is between a constant and a perfect model; weaker ones may well need a single column
MOST_COLUMNS = 50  # looked at
FEW_OTHERS = 20  # rows that are not of the largest class; with fewer, one column of many tells them by chance


def contradiction_note(
    score: float,
    fold_scores: Sequence[float],
    test_score: float | None,
    test_error: float | None,
    constant: ConstantPrediction | None,
    data: StudyData,
    metric: Metric,
) -> Note | None:
    """Return a note on a model that keeps less than half of what it promised over the constant, and not by chance.

    Not by chance: by more than three standard errors, those of the folds and of the hold-out together. Folds may agree
    by luck, so that theirs is at least the hold-out's, row for row. None of few rows of a class.

    score: of the model over the folds. fold_scores: of the winner.
    """
    if test_score is None or test_error is None or constant is None or constant.test_score is None:
        return None
    few = data.rare_rows is not None and data.rare_rows < LEAST_OF_CLASS
    promised = _gained(score, constant.score, metric)
    if few or not _gained(test_score, constant.test_score, metric) < KEPT * promised:
        return None
    short = worth_of(score, metric.mode) - worth_of(test_score, metric.mode)
    unseen = sum(len(valid) for _, valid in data.split.folds)
    spread = float(np.std(fold_scores)) / math.sqrt(max(1, len(fold_scores) - 1))
    folds_error = max(spread, test_error * math.sqrt(len(data.split.test) / unseen))
    if not short > SURE * math.hypot(test_error, folds_error):
        return None
    return FitCode.CONTRADICTED(metric=metric.name, test=test_score, cv=score, constant=constant.test_score)


def _gained(score: float, constant: float, metric: Metric) -> float:
    """Return how much better a score is than the constant's: of an error the share of it that is gone."""
    gain = worth_of(score, metric.mode) - worth_of(constant, metric.mode)
    return gain if not is_error(metric.name) else gain / abs(constant) if constant else 0.0


def leak_note(
    data: StudyData,
    metric: Metric,
    score: float | None,
    error: float | None,
    constant: float | None,
    test: float | None,
) -> Note | None:
    """Return a note on a model that is perfect, or nearly so with a column that tells the target; None of others.

    Perfect: on every fold and on the hold-out. With few rows of a class that is chance.

    score, error: of the winner over the folds. constant: the score of knowing nothing. test: the model's, on the
    hold-out.
    """
    if score is None or metric.function is not None or len(data.y) < BELIEVABLE_ROWS:
        return None
    if data.task.classification and len(data.y) - np.bincount(data.y).max() < FEW_OTHERS:
        return None
    best, rare = score_range(metric.name)[1], data.rare_rows
    perfect = score == best and error == 0.0 and test in (None, best) and (rare is None or rare >= LEAST_OF_CLASS)
    if not perfect and not _strong(score, constant, best):
        return None
    target, columns = pd.Series(data.y), dict(_columns(data)) if 2 <= len(data.columns) <= MOST_COLUMNS else {}
    if telling := [name for name, values in columns.items() if tells(values, target, data.task.kind)]:
        return FitCode.LEAK(", ".join(telling), columns=telling, drop=_drop_text(telling))
    return FitCode.TOO_GOOD(metric=metric.name, score=score + 0.0) if perfect else None


def _drop_text(columns: Iterable[str]) -> str:
    """Return what to type into a definition to leave columns out."""
    return f"`drop: [{', '.join(map(_yaml, columns))}]`"


def _yaml(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_]\w*", name) and yaml.safe_load(name) == name
    return name if plain else json.dumps(name, ensure_ascii=False)


def _strong(score: float, constant: float | None, best: float) -> bool:
    if constant is None or not math.isfinite(best) or best == constant:
        return False
    return (score - constant) / (best - constant) >= STRONG


def _columns(data: StudyData) -> Iterator[tuple[str, pd.Series]]:
    """Yield each column's name and its values: codes of a text as text, the day of a date."""
    number = code = 0
    for column in data.columns:
        if column.kind == TEXT:
            yield column.name, pd.Series(data.raw.codes[:, code].astype(str))
            code += 1
        else:
            yield column.name, pd.Series(data.raw.numbers[:, number])
            number += 4 if column.kind == DATE else 1
