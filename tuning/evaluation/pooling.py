"""The pool of a run: fitted on the rows of many customers, and asked about the rows that one customer's folds left out.

It has two forms, a booster and a linear model (`linear_pool`), each of which may be a member of a customer's model.
Fold k of a form is fitted without fold k of every customer, and no row of a hold-out is ever in it. A customer's
level is that of the rows of its own that the fit may see. So what the pool says of left-out rows is as honest as what a
trial says.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tuning.basics.seeds import derive
from tuning.errors import CustomerError
from tuning.evaluation.linear_pool import fit_linear, linear_pool
from tuning.evaluation.metrics import Metric
from tuning.evaluation.out_of_fold import PooledAnswers
from tuning.evaluation.study_data import StudyData
from tuning.models.base import EncodedRows
from tuning.models.pooled import (
    BOOSTERS,
    POOL,
    FittedForm,
    PooledMember,
    PooledModel,
    RunPool,
    TargetScale,
    booster_here,
)
from tuning.models.registry import family as find_family
from tuning.notes import Note, PoolCode
from tuning.preprocessing.columns import RawColumns, to_raw
from tuning.preprocessing.encoding import ORDINAL, Encoder, TextColumn
from tuning.preprocessing.kinds import Column
from tuning.preprocessing.task import Prediction, Task, as_prediction, average

MOST_ROWS_EACH, MOST_ROWS = 1_000, 200_000  # of a customer, of all; search rows
LEAST_CUSTOMERS = 2  # who could learn from another one
FINAL = -1  # in place of a fold: all rows


@dataclass(frozen=True)
class PoolRows:
    """What the pool takes of a customer.

    Attributes:
        task: of the customer.
        columns: that are of use to it.
        frame: its features as they came. y: its target. Of all rows.
        search: positions of its search rows. train, unseen: which of these each fold is fitted on, and leaves out.
        weight: of all rows, 1 on average; None where they weigh alike.
        digest: of its target and folds.
    """

    task: Task
    columns: tuple[Column, ...]
    frame: pd.DataFrame
    y: np.ndarray
    search: np.ndarray
    train: tuple[np.ndarray, ...]
    unseen: tuple[np.ndarray, ...]
    weight: np.ndarray | None
    digest: str

    @classmethod
    def of(cls, data: StudyData) -> PoolRows:
        """What it takes of a customer's data, which has kept its rows."""
        assert data.rows is not None
        weight = data.fit_weight(np.arange(len(data.y)))
        if weight is not None and weight.mean() > 0:
            weight = weight / weight.mean()
        train, unseen = zip(*data.split.folds, strict=True)
        search = data.split.search
        return cls(data.task, data.columns, data.rows, data.y, search, train, unseen, weight, digest_of(data))

    def given(self, fold: int) -> np.ndarray:
        """Positions of the rows that a fold of the pool is fitted on; beyond the customer's folds all search rows."""
        if fold == FINAL:
            return np.arange(len(self.y))
        return self.search[self.train[fold]] if fold < len(self.train) else self.search


def digest_of(data: StudyData) -> str:
    """Of what the pool must not see again: other rows, or the same in other folds, have another one."""
    found = hashlib.sha256(np.ascontiguousarray(data.y).tobytes())
    for rows in (data.split.search, *(unseen for _, unseen in data.split.folds)):
        found.update(np.ascontiguousarray(rows, dtype=np.int64).tobytes() + b"|")
    return found.hexdigest()[:32]


def fitted_pool(
    customers: Mapping[str, PoolRows],
    left_out: Mapping[str, Note],
    seed: int,
    metric: Metric | None = None,
    least: int = LEAST_CUSTOMERS,
) -> RunPool:
    """A pool of these customers.

    left_out: others, and why they are not among them. metric: scores each fold; without one none is scored. least: with
    fewer customers that have the same columns and classes there is no pool.
    """
    reasons = dict(left_out)
    task = Counter(rows.task for rows in customers.values()).most_common(1)[0][0] if customers else Task("")
    columns = _common_columns([rows.columns for rows in customers.values()])
    raws: dict[str, RawColumns] = {}
    for name, rows in customers.items():
        try:
            raws[name] = _checked(rows, task, columns)
        except CustomerError as error:
            reasons[name] = error.note
    if len(raws) < least or not columns:
        why = PoolCode.POOL_FEW_CUSTOMERS(customers=len(raws) if columns else 0, least=least)
        return RunPool(why, left_out=reasons)
    levels = [TargetScale.of(customers[name].y[customers[name].search], task) for name in raws]
    parts = [_Part.of(name, customers[name], raw, derive(seed, "pool", name)) for name, raw in raws.items()]
    booster = PooledModel(task, columns, _encoder(list(raws.values())), booster_here())
    folds = max(len(part.rows.train) for part in parts)
    forms = [_fitted_form(booster, parts, folds, seed)]
    with suppress(ValueError):  # numbers so large that no linear model takes them
        linear = linear_pool(task, columns, [part.raw.rows(part.chosen) for part in parts], levels)
        forms.append(_fitted_form(linear, parts, folds, seed))
    unseen = [[_left_out(model, parts, fold) for fold, model in enumerate(form.folds)] for form in forms]
    if metric is not None:
        forms = [
            replace(form, scores=tuple(_score(each.values(), task, metric) for each in found))
            for form, found in zip(forms, unseen, strict=True)
        ]
    seen = {name: customers[name].digest for name in raws}
    distance = None if task.classification else _typical_distance(unseen[0])
    return RunPool(None, tuple(forms), seen, reasons, TargetScale.typical(levels), distance)


def _fitted_form(form: PooledModel, parts: Sequence[_Part], folds: int, seed: int) -> FittedForm:
    *left_out, whole, final = [_fit(form, parts, fold, seed) for fold in (*range(folds + 1), FINAL)]
    return FittedForm(whole, final, tuple(left_out))


def pooled_answers(pool: RunPool, data: StudyData, customer: str) -> tuple[PooledAnswers, ...]:
    """What each form of the pool says of a customer's rows; empty without a pool. `CustomerError` says why it has no
    say here."""
    whole = pool.whole
    if whole is None:
        return ()
    assert data.rows is not None
    seen = pool.customers.get(customer)
    if customer in pool.left_out:
        raise CustomerError(pool.left_out[customer])
    if seen is not None and seen != digest_of(data):
        raise CustomerError(PoolCode.POOL_OTHER_ROWS())
    rows = PoolRows.of(data)
    raw = _checked(rows, whole.task, whole.columns)
    found = []
    for form in pool.forms:
        folds = []
        for fold, (_, unseen) in enumerate(data.split.folds):
            model = form.whole if seen is None else form.folds[fold]  # who is not in it at all can ask all of it
            member = _member(model, data, customer, rows.given(fold))
            folds.append(member.prediction(member.encoded(raw.rows(data.split.search[unseen])), data.task))
        member = _member(form.whole, data, customer, data.split.search)
        prediction = member.prediction(member.encoded(raw.rows(data.split.test)), data.task)
        answers = [each.proba if data.task.classification else each.values for each in folds]
        final = final_member(pool, member.family, data, customer)
        found.append(PooledAnswers(member, final, tuple(each for each in answers if each is not None), prediction))
    return tuple(found)


def final_member(pool: RunPool, form: str, data: StudyData, customer: str) -> PooledMember:
    """Return a form of the pool that was fitted on all rows, for a customer that is known by all of its rows."""
    model = next(each.final for each in pool.forms if each.whole.form == form)
    return _member(model, data, customer, np.arange(len(data.y)))


def pool_alone(
    pool: RunPool, found: Sequence[PooledAnswers], task: Task
) -> tuple[tuple[PooledMember, ...], Prediction]:
    """Return the pool's forms without a customer's own models, with the weights that the fleet gives them, and their
    mean of the hold-out rows. found: of `pooled_answers`."""
    shares = pool.alone()
    members = tuple(replace(each.final, weight=shares[each.member.family]) for each in found)
    mean = average([each.prediction for each in found], [member.weight for member in members], task)
    return tuple(member for member in members if member.weight), mean


def _member(model: PooledModel, data: StudyData, customer: str, given: np.ndarray) -> PooledMember:
    """A form of the pool for a customer that is known by some of its rows."""
    y = data.y[given]
    level = model.level_of(customer, TargetScale.of(y, data.task))
    return model.member(level, data.bounds_of(EncodedRows(np.empty((len(y), 0)), y)))


def _common_columns(found: Sequence[tuple[Column, ...]]) -> tuple[Column, ...]:
    """The columns that are of use to most customers, each of the kind that most see in it, in the order of names."""
    counts = Counter(column for columns in found for column in columns)
    names = Counter(column.name for columns in found for column in columns)
    by_name = {column.name: column for column, _ in reversed(counts.most_common())}
    return tuple(by_name[name] for name in sorted(names) if 2 * names[name] > len(found))


def _checked(rows: PoolRows, task: Task, columns: tuple[Column, ...]) -> RawColumns:
    """A customer's rows as the pool takes them; `CustomerError` where it is not one of the pool's customers."""
    if rows.task != task:
        raise CustomerError(PoolCode.POOL_OTHER_TARGET())
    for fold in (*range(len(rows.train) + 1), FINAL):
        TargetScale.of(rows.y[rows.given(fold)], task)
    try:
        return to_raw(rows.frame, columns)
    except CustomerError as error:
        raise CustomerError(PoolCode.POOL_OTHER_COLUMNS(why=error.note)) from error


def _encoder(raws: Sequence[RawColumns]) -> Encoder:
    """With a code for every text of any customer."""
    encoder = Encoder(ORDINAL, scale=False)
    texts = zip(*(raw.categories for raw in raws), strict=True)
    encoder.texts = tuple(TextColumn(tuple(sorted({text for one in column for text in one}))) for column in texts)
    return encoder


@dataclass(frozen=True)
class _Part:
    """A customer's rows on their way into the pool. chosen: positions of the search rows that go; final: of all."""

    customer: str
    rows: PoolRows
    raw: RawColumns
    chosen: np.ndarray
    final: np.ndarray

    @classmethod
    def of(cls, customer: str, rows: PoolRows, raw: RawColumns, seed: int) -> _Part:
        chosen, rng = rows.search, np.random.default_rng(seed)
        if len(chosen) > MOST_ROWS_EACH:
            chosen = rng.choice(chosen, MOST_ROWS_EACH, replace=False)
        held_out = np.setdiff1d(np.arange(len(rows.y)), rows.search)
        most = round(MOST_ROWS_EACH * len(held_out) / max(1, len(rows.search)))
        if len(held_out) > most:
            held_out = rng.choice(held_out, most, replace=False)
        return cls(customer, rows, raw, chosen, np.concatenate([chosen, held_out]))

    def matrix(self, pool: PooledModel, fold: int) -> EncodedRows:
        """What a fold of the pool is fitted on, the target in the pool's units."""
        rows = self.rows
        given = rows.given(fold)
        level = TargetScale.of(rows.y[given], rows.task)
        given = given[np.isin(given, self.final if fold == FINAL else self.chosen)]
        found = pool.rows(self.raw.rows(given), level)
        weight = np.ones(len(given)) if rows.weight is None else rows.weight[given]
        y = pool.unit(level).measured(rows.y[given])
        return replace(found, y=y, weight=weight, offset=level.offset(len(given)))


@dataclass(frozen=True)
class _LeftOut:
    """What a fold of the pool says of the rows of one customer that it has left out.

    said, y: predictions and targets, numbers in the units of the customer's level. weight: of these rows.
    """

    said: Prediction
    y: np.ndarray
    weight: np.ndarray
    distances: np.ndarray  # of targets, as they are, from predictions; none of classes

    @classmethod
    def of(cls, pool: PooledModel, part: _Part, fold: int) -> _LeftOut:
        rows = part.rows
        unseen, level = rows.search[rows.unseen[fold]], TargetScale.of(rows.y[rows.given(fold)], rows.task)
        member = pool.member(pool.level_of(part.customer, level))
        said = member.prediction(member.encoded(part.raw.rows(unseen)), pool.task)
        y, weight = rows.y[unseen], np.ones(len(unseen)) if rows.weight is None else rows.weight[unseen]
        if rows.task.classification:
            return cls(said, y, weight, np.empty(0))
        values = (said.values - level.center) / level.spread
        distances = np.abs((y - level.center) / level.spread - values)
        return cls(Prediction(values), level.measured(y), weight, distances)


def _typical_distance(folds: Sequence[Mapping[int, _LeftOut]]) -> float:
    """The median of customers' mean distances. folds: of each customer in it, by its place."""
    of_each: dict[int, list[np.ndarray]] = {}
    for found in folds:
        for place, each in found.items():
            of_each.setdefault(place, []).append(each.distances)
    return float(np.median([np.concatenate(each).mean() for each in of_each.values()]))


def _score(found: Collection[_LeftOut], task: Task, metric: Metric) -> float:
    """Of the rows of all customers together."""
    answers = [each.said.values if each.said.proba is None else each.said.proba for each in found]
    weight = np.concatenate([each.weight for each in found])
    said = as_prediction(np.concatenate(answers), task)
    return metric.score(np.concatenate([each.y for each in found]), said, None if (weight == 1.0).all() else weight)


def _left_out(model: PooledModel, parts: Sequence[_Part], fold: int) -> dict[int, _LeftOut]:
    """By the customer's place."""
    return {place: _LeftOut.of(model, part, fold) for place, part in enumerate(parts) if fold < len(part.rows.unseen)}


def _fit(pool: PooledModel, parts: Sequence[_Part], fold: int, seed: int) -> PooledModel:
    matrices = [part.matrix(pool, fold) for part in parts]
    if pool.form != POOL:
        return fit_linear(pool, dict(zip((part.customer for part in parts), matrices, strict=True)))
    offsets = [each.offset for each in matrices if each.offset is not None]
    weights = np.concatenate([each.weight for each in matrices if each.weight is not None])
    together = EncodedRows(
        np.vstack([each.X for each in matrices]),
        np.concatenate([each.y for each in matrices]),
        None if (weights == 1.0).all() else weights,
        matrices[0].categorical,
        offset=np.concatenate(offsets) if offsets else None,
    )
    family = find_family(pool.family)
    seed = derive(seed, "pool", fold if fold != FINAL else "final") % 2**31
    return replace(pool, fitted=family.fit(BOOSTERS[pool.family], together, pool.task, seed))
