"""The linear form of the pool: ridge or logistic regression on the rows of all customers, with an effect of each one.

Targets that are numbers are measured in one unit for all customers where they are about as wide: in that unit a slope
may hold for all. Missing numbers are filled and all are scaled, texts are indicators, of which rare ones share one. A
customer's effect is a coefficient of its own, so the penalty draws it to what holds for all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tuning.models.base import EncodedRows
from tuning.models.compute import limited_threads
from tuning.models.pooled import LINEAR_POOL, PooledModel, TargetScale
from tuning.preprocessing.columns import Column, RawColumns
from tuning.preprocessing.encoding import ONEHOT, Encoder, TextColumn
from tuning.preprocessing.task import Task
from tuning.records.schema import Config

LINEAR: Mapping[str, Config] = {"ridge": {"alpha": 10.0}, "logistic": {"C": 0.1, "max_iter": 1000}}
LEAST_ROWS, MOST_TEXTS = 3, 200  # with a text that has an indicator of its own; such texts of a column
ONE_UNIT = 10.0  # of the tenth of customers with the widest targets to the tenth with the narrowest, at most


def linear_pool(
    task: Task, columns: tuple[Column, ...], raws: Sequence[RawColumns], levels: Sequence[TargetScale]
) -> PooledModel:
    """Return the form before its fit. raws, levels: the search rows of each customer, and what measures its targets."""
    encoder = Encoder(ONEHOT, scale=True)
    encoder.learn_numbers(np.vstack([raw.numbers for raw in raws]))
    encoder.texts = tuple(_texts(raws, position) for position in range(len(raws[0].categories)))
    family, spread = "logistic" if task.classification else "ridge", None
    if not task.classification:
        low, typical, high = np.percentile([level.spread for level in levels], [10.0, 50.0, 90.0]).tolist()
        spread = typical if high <= ONE_UNIT * low else None
    return PooledModel(task, columns, encoder, family, form=LINEAR_POOL, spread=spread)


def _texts(raws: Sequence[RawColumns], position: int) -> TextColumn:
    counts = Counter[str]()
    for raw in raws:
        names = raw.categories[position]
        counts.update(dict(zip(names, np.bincount(raw.codes[:, position], minlength=len(names)).tolist(), strict=True)))
    frequent = sorted(counts, key=lambda text: (-counts[text], text))[:MOST_TEXTS]
    return TextColumn(tuple(sorted(text for text in frequent if counts[text] >= LEAST_ROWS)), rare=True)


def fit_linear(pool: PooledModel, rows: Mapping[str, EncodedRows]) -> PooledModel:
    """Return the form fitted on the encoded rows of each customer. `ValueError` where no linear model takes them."""
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression, Ridge

    found = list(rows.values())
    together = EncodedRows(
        np.vstack([each.X for each in found]),
        np.concatenate([each.y for each in found]),
        np.concatenate([np.ones(len(each.y)) if each.weight is None else each.weight for each in found]),
    )
    owner = np.repeat(np.arange(len(found)), [len(each.y) for each in found])
    indicators = sparse.csr_array((np.ones(len(owner)), (np.arange(len(owner)), owner)), shape=(len(owner), len(found)))
    with limited_threads():
        model = (LogisticRegression if pool.task.classification else Ridge)(**LINEAR[pool.family])
        model.fit(sparse.hstack([sparse.csr_array(together.X), indicators]).tocsr(), together.y, together.weight)
    width = together.X.shape[1]
    effects = np.zeros((len(found), len(pool.task.classes) or 1))
    own = np.atleast_2d(model.coef_[..., width:])
    known = model.classes_[-len(own) :] if pool.task.classification else [0]
    effects[:, known] = own.T
    model.coef_, model.n_features_in_ = np.ascontiguousarray(model.coef_[..., :width]), width
    return replace(pool, fitted=model, effects=dict(zip(rows, effects.tolist(), strict=True)))
