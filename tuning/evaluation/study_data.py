"""One customer's data made ready once, and the scoring of a configuration on it, step by step."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import compress

import numpy as np
import pandas as pd

from tuning.basics.wording import separator_options
from tuning.definition.definition import Definition
from tuning.errors import CustomerError
from tuning.evaluation.metrics import Metric
from tuning.evaluation.out_of_fold import KeptPredictions, PooledAnswers
from tuning.evaluation.target_demands import demand_of, objection
from tuning.models.base import FRAME, EncodedRows, Family, State, SteppedFamily
from tuning.models.bounds import AUTO, Bounds, GivenBounds, bounds_of
from tuning.models.pooled import RunPool
from tuning.models.preparation import Preparation
from tuning.models.registry import family as find_family
from tuning.notes import DataCode, FileCode, Note
from tuning.preprocessing.classes import ClassWeights, Label, class_weights, find_label
from tuning.preprocessing.columns import Column, Features, RawColumns, all_columns, read_columns
from tuning.preprocessing.encoding import Encoder
from tuning.preprocessing.roles import (
    check_plain,
    encode_target,
    far_target_note,
    read_groups,
    read_moments,
    read_target,
    read_weights,
)
from tuning.preprocessing.row_hashes import row_hashes
from tuning.preprocessing.shapes import array_width
from tuning.preprocessing.splitting import GROUP, STABLE, Split, split_rows
from tuning.preprocessing.task import Prediction, Task
from tuning.records.schema import MODEL, Config
from tuning.steps import Step

EXAMPLE_ROWS = 5


@dataclass
class StudyData:
    """One customer's rows, split, with everything that trials share: built once, reused by every trial.

    Encodings are fitted inside each fold, once per (fold, preprocessing). weight: of rows, for fitting and scoring.
    class_weight: "balanced" or label to weight, for fitting. notes: what was left out, and why. own: the
    families of the user's own models, by name. example: a few rows as they came, to show with the model what it takes.
    preparation: what new rows have to go through, None without the user's `prepare`. kept: trials' predictions for an
    ensemble, None where there is to be none. bounds: what the definition says of them. above: what the metric asks
    predictions to be above. rows: the features as they came, for the run's pool; None where the run is to have none.
    pool: that one, as far as it is there. pooled: what each of its forms says of these rows. given: the user's own
    predictions of the target, where these are the baseline. without_target: how many rows are left out for lack of one.
    width: columns of the array that the rows were; 0 where they were none.
    """

    task: Task
    columns: tuple[Column, ...]
    raw: RawColumns
    y: np.ndarray
    split: Split
    weight: np.ndarray | None = None
    class_weight: ClassWeights | None = None
    notes: tuple[Note, ...] = ()
    own: Mapping[str, Family] = field(default_factory=dict)
    example: pd.DataFrame | None = None
    preparation: Preparation | None = None
    kept: KeptPredictions | None = None
    bounds: GivenBounds = AUTO
    above: float = -math.inf
    rows: pd.DataFrame | None = None
    pool: RunPool | None = None
    pooled: tuple[PooledAnswers, ...] = ()
    given: pd.Series | None = None
    without_target: int = 0
    width: int = 0
    _folds: dict[tuple[str, bool], list[tuple[EncodedRows, EncodedRows]]] = field(default_factory=dict)
    _whole: dict[tuple[str, bool], tuple[Encoder, EncodedRows, EncodedRows]] = field(default_factory=dict)
    _everything: dict[tuple[str, bool], tuple[Encoder, EncodedRows]] = field(default_factory=dict)

    def pooled_form(self, name: str) -> PooledAnswers | None:
        """What the pool's form of that name says; None where it says nothing."""
        return next((each for each in self.pooled if each.member.family == name), None)

    def family(self, name: str) -> Family:
        """Return an own model's family, or the built-in one of that name."""
        return self.own.get(name) or find_family(name)

    @property
    def rare_rows(self) -> int | None:
        """Hold-out rows of the rarest class; None of a regression."""
        if not self.task.classification:
            return None
        return int(np.bincount(self.y[self.split.test], minlength=len(self.task.classes)).min())

    @property
    def rarest_rows(self) -> int | None:
        """Search rows of the rarest class; None of a regression."""
        if not self.task.classification:
            return None
        return int(np.bincount(self.y[self.split.search], minlength=len(self.task.classes)).min())

    def bounds_of(self, rows: EncodedRows) -> Bounds | None:
        """Return between which numbers a model of these rows answers; None where it may answer anything."""
        return None if self.task.classification else bounds_of(rows, self.bounds, self.above)

    def columns_of(self, family: Family) -> tuple[Column, ...]:
        """Return the columns that a family's models look at."""
        if family.encoding == FRAME and self.raw.frame is not None:
            return all_columns(self.raw.frame)
        return self.columns

    def folds(self, family: Family) -> list[tuple[EncodedRows, EncodedRows]]:
        """Return (train, valid) of each fold, encoded as the family wants it."""
        key = family.preprocessing
        if key not in self._folds:
            search = self.split.search
            self._folds[key] = [
                self._encoded(key, search[train], search[valid])[1:] for train, valid in self.split.folds
            ]
        return self._folds[key]

    def whole(self, family: Family) -> tuple[Encoder, EncodedRows, EncodedRows]:
        """Return (encoder, search rows, hold-out rows) for the test score."""
        key = family.preprocessing
        if key not in self._whole:
            self._whole[key] = self._encoded(key, self.split.search, self.split.test)
        return self._whole[key]

    def everything(self, family: Family) -> tuple[Encoder, EncodedRows]:
        """Return (encoder, all rows) for the model that is kept."""
        key = family.preprocessing
        if key not in self._everything:
            rows = np.arange(len(self.y))
            self._everything[key] = self._encoded(key, rows, rows[:0])[:2]
        return self._everything[key]

    def _encoded(
        self, key: tuple[str, bool], train: np.ndarray, other: np.ndarray
    ) -> tuple[Encoder, EncodedRows, EncodedRows]:
        """Return rows to learn from and rows to score, encoded with what the former teach."""
        rows = self.raw.rows(train)
        encoder = Encoder(*key).fit(rows)
        categorical = encoder.categorical(self.raw)
        return (
            encoder,
            EncodedRows(encoder.transform(rows), self.y[train], self.fit_weight(train), categorical),
            EncodedRows(encoder.transform(self.raw.rows(other)), self.y[other], self.weight_of(other), categorical),
        )

    def weight_of(self, rows: np.ndarray) -> np.ndarray | None:
        """Return what some rows count in a score; None where all count alike."""
        return None if self.weight is None else self.weight[rows]

    def score(self, prediction: Prediction, rows: np.ndarray, metric: Metric) -> float:
        """Return the score of a prediction for some rows."""
        return metric.score(self.y[rows], prediction, self.weight_of(rows))

    @property
    def unseen(self) -> list[np.ndarray]:
        """The rows that each fold leaves out."""
        return [self.split.search[valid] for _, valid in self.split.folds]

    def fit_weight(self, rows: np.ndarray) -> np.ndarray | None:
        """Sample weights times class weights; what is balanced is the rows that are learned from."""
        weight = self.weight_of(rows)
        if self.class_weight is None or not self.task.classification:
            return weight
        by_class = class_weights(self.class_weight, self.y[rows], self.task.classes)[self.y[rows]]
        return by_class if weight is None else weight * by_class


def study_data(
    frame: pd.DataFrame,
    definition: Definition,
    task: str,
    seed: int,
    own: Mapping[str, Family] | None = None,
    positive: Label | None = None,
) -> StudyData:
    """One customer's rows checked and split as the definition wants it; `CustomerError` says what is wrong with them.

    Rows without a target are left out.

    seed: of the split. positive: the run's positive class; a customer must have only one that the definition names.
    """
    target, weight, features, wanted = definition.target, definition.weight, definition.features, definition.split
    assert target is not None
    along = wanted.group if wanted.kind == GROUP else wanted.column
    split_columns = (along, *wanted.by)
    positive = positive if definition.positive is None else definition.positive
    there, said = dict.fromkeys(frame.columns.tolist()), definition.baseline_column
    left_out = (target, *definition.not_features)
    roles = [("target", target), *(("split column", name) for name in split_columns), ("weight", weight)]
    roles += [("baseline's column", said), *(("feature", name) for name in features or () if name not in left_out)]
    for role, name in roles:
        if name is not None and name not in there:
            raise CustomerError(
                FileCode.COLUMN_ABSENT(name, role=role, columns=[*there][:11], csv=separator_options(there))
            )
    values = frame[target]
    check_plain(values)
    values, note = read_target(values, task)
    known = pd.notna(values.to_numpy())
    if not known.all():
        frame, values = frame[known], values[known]
    without_target = len(known) - len(frame)
    if len(frame) < (least := definition.min_rows):
        raise CustomerError(DataCode.TOO_FEW_ROWS(rows=len(frame), least=least, without=without_target))
    y, found = encode_target(values, task, positive, required=definition.positive is not None)
    names = [name for name in (there if features is None else features) if name not in left_out]
    parts = None
    if along is not None:
        parts = read_groups(frame[along]) if wanted.kind == GROUP else read_moments(frame[along], definition.dates)
    if wanted.kind == STABLE:
        parts = row_hashes(frame[[*(wanted.by or dict.fromkeys((*names, target)))]])
    split = split_rows(
        y,
        classification=found.classification,
        test_size=wanted.test,
        folds=wanted.folds,
        seed=seed,
        kind=wanted.kind,
        along=parts,
    )
    usable = read_columns(frame, names, split.search, chosen=features is not None, dates=definition.dates)
    raw, unusable = usable.raw, usable.left_out
    if not usable.columns:
        raise CustomerError(DataCode.NO_FEATURE(columns=unusable[:5]) if unusable else DataCode.NO_COLUMN())
    if any(family.encoding == FRAME for family in (own or {}).values()):
        raw = replace(raw, frame=frame[names])
    far = None if found.classification else far_target_note(y)
    notes = [note, far, _bounds_note(y, definition.bounds, found)]
    notes += _label_notes(found, positive, definition.class_weight)
    if unusable:
        notes.append(DataCode.LEFT_OUT(columns=unusable))
    notes += [*usable.notes, *split.notes]
    if (count := len(split.folds)) < wanted.folds:
        notes.append(DataCode.FEWER_FOLDS(folds=count, wanted=wanted.folds))
    return StudyData(
        task=found,
        columns=usable.columns,
        raw=raw,
        y=np.asarray(y),
        split=split,
        weight=None if weight is None else read_weights(frame[weight]),
        class_weight=definition.class_weight,
        notes=tuple(note for note in notes if note is not None),
        own=own or {},
        example=_example(frame, usable),
        bounds=definition.bounds,
        above=-math.inf if (demand := demand_of(definition.metric)) is None else demand.above,
        rows=None if definition.pool == "off" else frame[names],
        given=None if said is None else frame[said],
        without_target=without_target,
        width=array_width([name for name in there if name != target]),
    )


def _example(frame: pd.DataFrame, usable: Features) -> pd.DataFrame:
    """The first rows of the usable columns as they came, but for infinite ones among numbers, which are missing."""
    names = tuple(column.name for column in usable.columns)
    if not usable.as_they_came:
        return frame[:EXAMPLE_ROWS][[*names]]
    # Selecting columns takes longer than all else that is done with a small frame.
    return pd.DataFrame(usable.raw.numbers[:EXAMPLE_ROWS].copy(), columns=_header(names), copy=False)


@lru_cache(maxsize=16)
def _header(names: tuple[str, ...]) -> pd.Index:
    return pd.Index(names)


def _bounds_note(y: np.ndarray, wanted: GivenBounds, task: Task) -> Note | None:
    """Return what was said about a target that goes beyond it."""
    if task.classification or isinstance(wanted, str):
        return None
    low, high = (end if value is None else value for value, end in zip(wanted, (-math.inf, math.inf), strict=True))
    beyond = int(((y < low) | (y > high)).sum())
    return DataCode.BEYOND_BOUNDS(count=beyond, rows=len(y)) if beyond else None


def _label_notes(task: Task, positive: Label | None, weights: ClassWeights | None) -> Iterator[Note]:
    """Yield what was said about classes that this customer does not have."""
    if task.positive is not None and positive is not None and find_label(positive, task.classes) is None:
        yield DataCode.OTHER_POSITIVE(positive=task.positive, wanted=positive)
    if isinstance(weights, Mapping) and task.classification:
        absent = [label for label in weights if find_label(label, task.classes) is None]
        if absent:
            yield DataCode.CLASSES_ABSENT(classes=absent)


def parameters_of(config: Config) -> Config:
    """Return what a configuration's family is given: its parameters without its name."""
    return {name: value for name, value in config.items() if name != MODEL}


def keep_scorable_folds(data: StudyData, metric: Metric) -> StudyData:
    """Without the folds in which the metric says nothing whatever a model predicts; none left is a `CustomerError`.

    The ROC curve of rows of one class, for example: that says nothing about a configuration, and the other folds do.
    A target that the metric cannot score is a `CustomerError`, too.
    """
    counted = data.y if data.weight is None else data.y[data.weight > 0]
    if metric.function is None and (why := objection(metric.name, counted)):
        raise CustomerError(why)
    folds = data.split.folds
    defined = [metric.defined_for(data.y[rows], data.weight_of(rows)) for rows in data.unseen]
    kept = tuple(compress(folds, defined))
    if len(kept) == len(folds):
        return data
    name = metric.name
    if not kept:
        raise CustomerError(DataCode.UNDEFINED(metric=name, folds=len(folds)))
    note = DataCode.FOLDS_UNDEFINED(metric=name, count=len(folds) - len(kept), folds=len(folds))
    return replace(data, split=replace(data.split, folds=kept), notes=(*data.notes, note))


def train(config: Config, data: StudyData, metric: Metric, seed: int, state: State | None = None) -> Iterator[Step]:
    """Yield the steps of one trial.

    Stepped families advance all folds in lockstep and are scored at every step; for the others step k is
    fold k, and the score the mean of the folds so far.
    """
    family, params = data.family(config[MODEL]), parameters_of(config)
    folds = data.folds(family)
    bounds = [data.bounds_of(rows) for rows, _ in folds]
    # A trial that goes on from a state may have had its best step before.
    watch = data.kept.watch(config, seed) if data.kept is not None and state is None else None

    def scored(place: int, prediction: Prediction) -> tuple[Prediction, float]:
        unseen, within = folds[place][1], bounds[place]
        held = prediction if within is None else within.hold(prediction)
        return held, metric.score(unseen.y, held, unseen.weight)

    if isinstance(family, SteppedFamily):
        states, done = (state["folds"], state["step"]) if state else ([None] * len(folds), 0)
        for number, grown in enumerate(family.grow_folds(params, folds, data.task, seed, states), start=done + 1):
            said, scores = zip(*(scored(place, prediction) for place, (prediction, _) in enumerate(grown)), strict=True)
            score = math.fsum(scores) / len(scores)
            if watch is not None:
                watch(number, score, said)
            yield Step(number, score, scores, get_state=partial(_state, number, [get_state for _, get_state in grown]))
        return
    found: list[tuple[Prediction, float]] = []
    for place, (rows, unseen) in enumerate(folds):
        prediction = family.predict(family.fit(params, rows, data.task, seed), unseen, data.task)
        found.append(scored(place, prediction))
        said, scores = zip(*found, strict=True)
        score = math.fsum(scores) / len(scores)
        if watch is not None and len(found) == len(folds):
            watch(len(found), score, said)
        yield Step(len(found), score, scores)


def _state(step: int, getters: list[Callable[[], object]]) -> dict[str, object]:
    """Return what goes on from here; to be asked for before the next step is."""
    return {"step": step, "folds": [get() for get in getters]}


def full_steps(config: Config, data: StudyData) -> int:
    """Return how many steps a trial with this configuration has when nobody stops it."""
    family, params = data.family(config[MODEL]), parameters_of(config)
    return family.steps(params) if isinstance(family, SteppedFamily) else len(data.split.folds)
