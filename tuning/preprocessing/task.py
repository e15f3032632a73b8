"""What is predicted: regression, binary or multi-class classification, and what a model says about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

REGRESSION, BINARY, MULTICLASS = "regression", "binary", "multiclass"
TASKS = (REGRESSION, BINARY, MULTICLASS)

Label: TypeAlias = str | int | float | bool  # of a class


@dataclass(frozen=True)
class Task:
    """kind: one of TASKS; classes: the class labels in the order of their codes, empty for regression."""

    kind: str
    classes: tuple[Label, ...] = ()

    @property
    def classification(self) -> bool:
        return self.kind != REGRESSION


@dataclass(frozen=True)
class Prediction:
    """A model's answer for n rows.

    values: (n,) predicted numbers, or class codes.
    proba: (n, classes) probabilities, or None where the model has none.
    decision: (n,) or (n, classes) decision values, or None.
    """

    values: np.ndarray
    proba: np.ndarray | None = None
    decision: np.ndarray | None = None


def guess_task(target: pd.Series | Sequence[Label]) -> tuple[str, str]:
    """The task that a target column suggests, and why.

    Text, booleans and categories are classes; so are whole numbers with at most 20 different values when
    these are at most a tenth of the rows (or just two). Everything else is a number to predict.
    """
    values = pd.Series(target).dropna()
    distinct = values.nunique()
    numeric = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    kind = "text or classes"
    if numeric:
        whole = bool((values == values.round()).all()) if len(values) else False
        if not (whole and (distinct == 2 or (distinct <= 20 and distinct * 10 <= len(values)))):
            return REGRESSION, f"numbers, {distinct} different ones in {len(values)} rows"
        kind = "whole numbers"
    labels = sorted(map(str, values.unique()))
    shown = ", ".join(labels[:5]) + (", …" if len(labels) > 5 else "")
    return BINARY if distinct <= 2 else MULTICLASS, f"{kind} with {distinct} different values ({shown})"
