"""Models of the rows of many customers, as members of one customer's model: a booster and a linear model.

A customer's target is measured by its own level: a number as its distance from the customer's median in interquartile
ranges, a class by the shares that classes have with the customer. So one customer's units and odd values are
not another's. The booster also sees a number's level in two more columns; the linear model has an effect of each
customer, which moves the customer's level.

The models lie once in the run (`pool/`). A customer's own model refers to them, with their digests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from tuning.basics.documents import Json
from tuning.errors import CustomerError, RunError
from tuning.models.base import Config, EncodedRows, Family, Model
from tuning.models.bounds import Bounds
from tuning.models.member import Member
from tuning.models.registry import family as find_family
from tuning.notes import Note, PoolCode
from tuning.preprocessing.columns import RawColumns
from tuning.preprocessing.dates import ISO
from tuning.preprocessing.encoding import Encoder
from tuning.preprocessing.kinds import Column
from tuning.preprocessing.task import Prediction, Task, as_prediction

POOL, LINEAR_POOL = "pool", "pool_linear"  # in place of a family's name: the booster, the linear model
POOL_FORMS = (POOL, LINEAR_POOL)
OWN = "own"  # in `RunPool.weights`: the customer's own models together
MOST_IQR = 6.0  # beyond which targets are clipped while the pool is fitted
LARGEST = 1e30  # what a booster's 32 bits hold, and their squares in 64


@dataclass(frozen=True)
class TargetScale:
    """What a customer's target is measured by.

    center, spread: the median and the interquartile range of a number. shares: of the classes, none of them 0.
    """

    center: float = 0.0
    spread: float = 1.0
    shares: tuple[float, ...] = ()

    @classmethod
    def of(cls, y: np.ndarray, task: Task) -> TargetScale:
        """That of some rows; `CustomerError` where these have none."""
        if task.classification:
            counts = np.bincount(y, minlength=len(task.classes)) + 1.0  # a class that is not there is rare
            return cls(shares=tuple((counts / counts.sum()).tolist()))
        low, center, high = np.percentile(y, [25.0, 50.0, 75.0])
        spread = float(high - low)
        if not 0.0 < spread < LARGEST or not abs(center) < LARGEST:
            raise CustomerError(PoolCode.POOL_NO_SPREAD(spread=spread))
        return cls(float(center), spread)

    def measured(self, y: np.ndarray) -> np.ndarray:
        """(n,) targets in the pool's units."""
        return y if self.shares else np.clip((y - self.center) / self.spread, -MOST_IQR, MOST_IQR)

    def moved(self, effect: Sequence[float]) -> TargetScale:
        """Return the level of a customer with such an effect: one of a number, in spreads, or one for each class."""
        if not self.shares:
            return replace(self, center=self.center + self.spread * effect[0])
        odds = np.exp(np.asarray(effect) - max(effect))
        return TargetScale(shares=tuple((odds / odds.sum()).tolist()))

    def offset(self, rows: int) -> np.ndarray | None:
        """What raw predictions of classes begin at: the log odds of two classes (n,), else logarithms (n, classes)."""
        if not self.shares:
            return None
        logs = np.log(self.shares)
        return np.full(rows, logs[1] - logs[0]) if len(logs) == 2 else np.tile(logs, (rows, 1))

    def columns(self, rows: int) -> np.ndarray:
        """(n, 2) the columns beside the features; (n, 0) of classes, whose offset is there already."""
        return np.tile([] if self.shares else [self.center, self.spread], (rows, 1))

    def restored(self, prediction: Prediction, task: Task) -> Prediction:
        """What the pool says, which begins at no offset, in the customer's own units."""
        if prediction.proba is None:
            return Prediction(self.center + self.spread * prediction.values)
        proba = prediction.proba * np.asarray(self.shares)
        return as_prediction(proba / proba.sum(axis=1, keepdims=True), task)

    @classmethod
    def typical(cls, levels: Sequence[TargetScale]) -> TargetScale:
        """The median of numbers' levels, the mean of the shares of classes."""
        if levels[0].shares:
            return cls(shares=tuple(np.mean([level.shares for level in levels], axis=0).tolist()))
        center, spread = np.median([(level.center, level.spread) for level in levels], axis=0).tolist()
        return cls(center, spread)

    def to_dict(self) -> dict[str, object]:
        """As a saved model holds it."""
        return {"shares": list(self.shares)} if self.shares else {"center": self.center, "spread": self.spread}

    @classmethod
    def from_dict(cls, values: Json) -> TargetScale:
        return cls(values.get("center", 0.0), values.get("spread", 1.0), tuple(values.get("shares", ())))


@dataclass(frozen=True)
class SharedFile:
    """A file that lies once in a run. path: there. sha256: its digest."""

    path: str
    sha256: str


@dataclass(frozen=True)
class PooledModel:
    """A fitted form of the pool.

    Attributes:
        task: with the classes of all its customers.
        columns: what it looks at.
        encoder: of all its customers' rows.
        family: of the booster, or of the linear model.
        fitted: that model.
        effects: of each customer of a linear model, as of `TargetScale.moved`; an unknown customer has none.
        form: `POOL` or `LINEAR_POOL`.
        spread: of all customers' targets, where these have one unit; None where each has its own.
        files: those that a customer's model refers to, by their names in its folder; none while nothing is saved.
    """

    task: Task
    columns: tuple[Column, ...]
    encoder: Encoder
    family: str
    fitted: Model = None
    effects: Mapping[str, Sequence[float]] = field(default_factory=dict)
    form: str = POOL
    spread: float | None = None
    files: Mapping[str, SharedFile] = field(default_factory=dict)

    @property
    def description(self) -> str:
        """The name of the file of `described` in a model's own folder."""
        return f"{self.form}.json"

    def unit(self, level: TargetScale) -> TargetScale:
        """Return in what the targets of a customer of that level are measured for the fit."""
        return level if self.spread is None else replace(level, spread=self.spread)

    def level_of(self, customer: str, level: TargetScale) -> TargetScale:
        """Return by what this form measures a customer. level: of the customer's own rows."""
        if self.form == POOL:
            return level
        return self.unit(level).moved(self.effects.get(customer, (0.0,) * (len(self.task.classes) or 1)))

    def rows(self, raw: RawColumns, level: TargetScale) -> EncodedRows:
        """A customer's rows as the model takes them."""
        beside = level.columns(len(raw)) if self.form == POOL else np.empty((len(raw), 0))
        X = np.hstack([beside, self.encoder.transform(raw)])
        categorical = tuple(place + beside.shape[1] for place in self.encoder.categorical(raw))
        return EncodedRows(X, np.zeros(len(X)), categorical=categorical)

    def member(self, level: TargetScale, bounds: Bounds | None = None) -> PooledMember:
        """Return this form as a member of a customer's model. level: of `level_of`. bounds: as of `Member`."""
        return PooledMember(self.form, self.columns, self.encoder, self.fitted, bounds=bounds, level=level, pool=self)

    def described(self) -> bytes:
        """All but the fitted model and the customers' effects, as it is saved."""
        description = {
            "form": self.form,
            "task": self.task.kind,
            "classes": list(self.task.classes),
            "columns": [[column.name, column.kind, column.format] for column in self.columns],
            "encoder": self.encoder.to_dict(),
            "family": self.family,
            "spread": self.spread,
        }
        return json.dumps(description, ensure_ascii=False).encode()

    @classmethod
    def read(cls, content: bytes) -> PooledModel:
        """What `described` gave."""
        values: Json = json.loads(content)
        return cls(
            task=Task(values["task"], tuple(values["classes"])),
            columns=tuple(Column(name, kind, written or ISO) for name, kind, written in values["columns"]),
            encoder=Encoder.from_dict(values["encoder"]),
            family=values["family"],
            form=values["form"],
            spread=values["spread"],
        )

    def with_model(self, name: str, content: bytes) -> PooledModel:
        """With a saved model. name: of its file; its end says of which kind it is."""
        if reason := find_family(self.family).missing():
            raise RunError(f"the pool cannot be loaded: {reason}")
        return replace(self, fitted=find_family(self.family).load(name.rpartition("-")[2], content))


@dataclass(frozen=True, repr=False)
class PooledMember(Member):
    """A pool as one customer's member. level: of the customer's target. pool: what it shares with the others."""

    level: TargetScale = TargetScale()
    pool: PooledModel | None = None

    @property
    def kind(self) -> Family:
        assert self.pool is not None
        return find_family(self.pool.family)

    def encoded(self, raw: RawColumns) -> EncodedRows:
        assert self.pool is not None
        return self.pool.rows(raw, self.level)

    def prediction(self, rows: EncodedRows, task: Task) -> Prediction:
        found = self.level.restored(self.kind.predict(self.fitted, rows, task), task)
        return found if self.bounds is None else self.bounds.hold(found)

    def described(self) -> dict[str, object]:
        assert self.pool is not None
        model = next(name for name in self.pool.files if name != self.pool.description)
        return {**super().described(), "level": self.level.to_dict(), "pooled": self.pool.family, "model": model}


def read_pooled(values: Json, read: Callable[[str], bytes]) -> PooledMember:
    """A member from what `PooledMember.described` said, and from its files. read: as of `read_member`."""
    pool = PooledModel.read(read(f"{values['family']}.json")).with_model(values["model"], read(values["model"]))
    member = pool.member(TargetScale.from_dict(values["level"]), Bounds.from_json(values["bounds"]))
    return replace(member, weight=values["weight"])


@dataclass(frozen=True)
class FittedForm:
    """A form of the pool, fitted several times.

    whole: on the search rows of its customers. final: on all of their rows. folds: without those of each fold. scores:
    of each of `folds`, for the rows that it has left out; empty where they have none.
    """

    whole: PooledModel
    final: PooledModel
    folds: tuple[PooledModel, ...] = ()
    scores: tuple[float, ...] = ()


@dataclass(frozen=True)
class RunPool:
    """A run's pool.

    Attributes:
        without: why there is none; None where there is one.
        forms: the booster, and the linear model where there is one.
        customers: those whose rows it has seen, each with the digest of these rows and folds.
        left_out: those that could have been among them, and why they are not.
        typical: the level of the typical one of its customers; None where there is no pool.
        typical_distance: of left-out rows' targets from what the booster says, in each customer's interquartile
            ranges: the median of customers' means; None of classes.
        weights: the mean weights of customers' own models (`OWN`) and of each form in what answers best; empty where
            they are not known.
    """

    without: Note | None = None
    forms: tuple[FittedForm, ...] = ()
    customers: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, Note] = field(default_factory=dict)
    typical: TargetScale | None = None
    typical_distance: float | None = None
    weights: Mapping[str, float] = field(default_factory=dict)

    @property
    def whole(self) -> PooledModel | None:
        """Its booster, fitted on the search rows of all its customers; None without a pool."""
        return self.forms[0].whole if self.forms else None

    def alone(self) -> dict[str, float]:
        """Return the weight of each form where no model of the customer's own is a member; the booster's is 1 where the
        fleet says nothing."""
        found = {each.whole.form: self.weights.get(each.whole.form, 0.0) for each in self.forms}
        total = sum(found.values())
        return {form: (weight / total if total else float(form == POOL)) for form, weight in found.items()}


#: How the booster is trained, by the family; the first one that is installed is taken.
BOOSTERS: Mapping[str, Config] = {
    "catboost": {"iterations": 600, "learning_rate": 0.1, "depth": 6},
    "xgboost": {"n_estimators": 300, "learning_rate": 0.1, "max_depth": 6, "min_child_weight": 5, "reg_lambda": 5.0},
}


def booster_here() -> str:
    """The family of the best booster that is installed."""
    return next(name for name in BOOSTERS if not find_family(name).missing())
