"""The pool as the model of a customer that has none of its own: too few rows, one class, a broken search, or unseen.

What its target is measured by is learned from its own rows, where there are enough; else it is that of the typical
customer of the pool.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from tuning.definition.definition import Definition
from tuning.errors import CustomerError
from tuning.evaluation.study_data import EXAMPLE_ROWS
from tuning.models.base import EncodedRows
from tuning.models.bounds import bounds_of
from tuning.models.customer_model import CustomerModel
from tuning.models.pooled import MOST_IQR, PooledMember, PooledModel, RunPool, TargetScale
from tuning.models.preparation import Preparation
from tuning.notes import PoolCode
from tuning.preprocessing.classes import find_label, read_classes
from tuning.preprocessing.columns import to_raw
from tuning.preprocessing.roles import check_plain, read_target
from tuning.preprocessing.task import Task

LEAST_ROWS = 4  # with a target, to measure a customer by them


def stand_in(
    pool: RunPool,
    customer: str,
    definition: Definition,
    frame: pd.DataFrame | None = None,
    preparation: Preparation | None = None,
) -> CustomerModel | None:
    """Return the model of a customer without one; None where the run has no pool that can be asked.

    `CustomerError` says why it cannot answer this one. frame: the customer's rows after `prepare`, where there are any.
    preparation: what new rows go through.
    """
    whole, typical = pool.whole, pool.typical
    if whole is None or typical is None:
        return None
    y = np.empty(0)
    if frame is not None:
        to_raw(frame, whole.columns)
        y = _targets(frame, definition, whole.task)
    level = TargetScale.of(y, whole.task) if len(y) >= LEAST_ROWS else typical
    bounds = None
    if not whole.task.classification:
        beyond = MOST_IQR * level.spread
        ends = y if len(y) >= LEAST_ROWS else np.array([level.center - beyond, level.center + beyond])
        bounds = bounds_of(EncodedRows(np.empty((len(ends), 0)), ends), definition.bounds)
    shares = pool.alone()
    members = tuple(
        replace(form.final.member(form.final.level_of(customer, level), bounds), weight=shares[form.whole.form])
        for form in pool.forms
        if shares[form.whole.form]
    )
    example = None if frame is None else frame[:EXAMPLE_ROWS][_names(whole)]
    if preparation is not None:
        example = preparation.example
    return CustomerModel(customer, whole.task, members, example, preparation)


def is_typical(model: CustomerModel, pool: RunPool) -> bool:
    """Return whether the numbers of a model are in the typical customer's unit, as its own is not known."""
    centers = [member.level.center for member in model.members if isinstance(member, PooledMember)]
    return not model.task.classification and pool.typical is not None and pool.typical.center in centers


def _names(pool: PooledModel) -> list[str]:
    return [column.name for column in pool.columns]


def _targets(frame: pd.DataFrame, definition: Definition, task: Task) -> np.ndarray:
    """Return (n,) the targets that are there: numbers, or codes of the pool's classes."""
    if definition.target not in frame.columns:
        return np.empty(0)
    check_plain(frame[definition.target])
    values = read_target(frame[definition.target], task.kind)[0].dropna()
    if not task.classification:
        numbers = values.to_numpy(dtype=np.float64)
        return numbers[np.isfinite(numbers)]
    codes, labels = read_classes(values) if len(values) else (np.empty(0, np.int64), ())
    known = [find_label(label, task.classes) for label in labels]
    if None in known:
        raise CustomerError(PoolCode.POOL_OTHER_CLASSES(classes=list(task.classes)))
    return np.array([task.classes.index(label) for label in known if label is not None], dtype=np.int64)[codes]
