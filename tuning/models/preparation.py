"""The user's `prepare` as a model keeps it: new rows become what the rows of the search were when they were fitted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

import numpy as np
import pandas as pd

from tuning.basics.documents import Json
from tuning.errors import CustomerError
from tuning.notes import FileCode, Note
from tuning.preprocessing.task import is_comparable
from tuning.user_code import apply_prepare, loaded_function

PreparationFunction: TypeAlias = Callable[..., object]
FramePair: TypeAlias = tuple[pd.DataFrame, pd.DataFrame]
TRIED_ROWS = 5
TEXT_TYPES = ("str", "string", "object", "category")


@dataclass(frozen=True)
class Preparation:
    """What new rows go through before a model looks at them.

    Attributes:
        name: of the function, `file.py:function` or `package.module:function`.
        source: the file's content; None for a function of a module.
        inputs: name and pandas' type of each column that rows had before.
        example: a few of these rows.
    """

    name: str
    source: str | None
    inputs: tuple[tuple[str, str], ...]
    example: pd.DataFrame = field(compare=False)

    def to_json(self) -> dict[str, object]:
        """As a saved model has it; the example is the model's own."""
        return {"name": self.name, "source": self.source, "inputs": [list(pair) for pair in self.inputs]}

    @classmethod
    def from_json(cls, given: Json | None, example: pd.DataFrame | None) -> Preparation | None:
        """Return the opposite of `to_json`; None of a model without one."""
        if given is None or example is None:
            return None
        return cls(given["name"], given["source"], tuple((name, kind) for name, kind in given["inputs"]), example)

    @cached_property
    def function(self) -> PreparationFunction:
        return loaded_function(self.name, self.source)

    @property
    def text(self) -> list[str]:
        """The columns that held text."""
        return [name for name, kind in self.inputs if kind in TEXT_TYPES]

    def rows(self, frame: pd.DataFrame, features: Sequence[str]) -> pd.DataFrame:
        """Return the rows as `prepare` gives them back, each of them, in order; else a `CustomerError`.

        Columns that only the target needs may be absent: `prepare` then gets them empty. It is tried on the example
        whether the features are the same without them.
        """
        absent = [name for name, _ in self.inputs if name not in frame.columns]
        if absent:
            self._check_spare(absent, features)
        given = self._with_empty(frame, absent).set_axis(_numbered(len(frame)))
        prepared = apply_prepare(self.function, given)
        if len(prepared) != len(frame):
            raise CustomerError(FileCode.PREPARE_DROPS_ROWS(rows=len(prepared), given=len(frame)))
        if isinstance(prepared.index, pd.RangeIndex):
            self._check_order(given, prepared, features)
        elif not prepared.index.equals(given.index) and set(prepared.index) == set(given.index):
            prepared = prepared.loc[given.index]  # it has sorted them
        return prepared.set_axis(frame.index)

    def _check_order(self, given: pd.DataFrame, prepared: pd.DataFrame, features: Sequence[str]) -> None:
        """`CustomerError` where rows with a new index may have been sorted, and nothing tells which is which.

        They are in order when columns that were not changed tell each row, or when rows that are given in the
        opposite order come back in the opposite order.
        """
        fresh = prepared.set_axis(given.index)
        same = [
            name for name in fresh if name in given and fresh[name].equals(given[name]) and is_comparable(given[name])
        ]
        if len(given) < 2 or (same and not given[same].duplicated().any()):
            return
        backwards = apply_prepare(self.function, given[::-1].set_axis(given.index))[::-1]
        names = [name for name in features if name in prepared and name in backwards]
        try:
            pd.testing.assert_frame_equal(
                fresh[names], backwards[names].set_axis(given.index), check_dtype=False, check_categorical=False
            )
        except (AssertionError, ValueError):
            raise CustomerError(FileCode.PREPARE_REORDERS()) from None

    def _check_spare(self, absent: Sequence[str], features: Sequence[str]) -> None:
        """`CustomerError` when `prepare` makes features of columns that are not there."""
        if (together := self._needed(absent, features)) is None:
            return
        needed = {name: found for name in absent if (found := self._needed([name], features))}
        why = next(iter(needed.values()), together)
        raise CustomerError(FileCode.PREPARE_NEEDS(columns=[*needed] or [*absent], why=why))

    def _needed(self, absent: Sequence[str], features: Sequence[str]) -> Note | None:
        """Return what goes wrong with the example when some columns are empty; None when features are as with them."""
        whole = apply_prepare(self.function, self._example)
        try:
            without = apply_prepare(self.function, self._with_empty(self._example, absent))
        except CustomerError as error:
            return error.note
        if len(without) != len(whole):
            return None  # `rows` counts them
        changed = [
            name
            for name in features
            if name in whole and (name not in without or not whole[name].equals(without[name]))
        ]
        return FileCode.PREPARE_MAKES_OTHERS(columns=changed) if changed else None

    @cached_property
    def _example(self) -> pd.DataFrame:
        """The example with the types that its columns had; JSON knows fewer."""
        columns = {name: _as_type(self.example[name], kind) for name, kind in self.inputs if name in self.example}
        return pd.DataFrame(columns)

    def _with_empty(self, frame: pd.DataFrame, absent: Sequence[str]) -> pd.DataFrame:
        kinds: Mapping[str, str] = dict(self.inputs)
        return pd.DataFrame({**frame, **{name: _empty(kinds[name], frame.index) for name in absent}}, index=frame.index)


def made_of_several_rows(
    prepare: Callable[[pd.DataFrame], pd.DataFrame],
    rows: pd.DataFrame,
    prepared: pd.DataFrame,
    features: Sequence[str],
) -> list[str]:
    """The features that `prepare` makes otherwise of a few rows alone; none where the few rows cannot be found again.

    They are found by their index, or, where `prepare` has numbered rows anew, by the columns that it does not change.
    prepare: raises a `CustomerError` where it fails, as `apply_prepare` does. rows: as they were given to it.
    prepared: what it made of all of them.
    """
    if len(rows) <= TRIED_ROWS:
        return []
    some = rows.iloc[np.linspace(0, len(rows) - 1, TRIED_ROWS).astype(int)]
    try:
        alone = prepare(some)
    except CustomerError:
        return []
    pair = _by_index(some, prepared, alone) or _by_values(rows, some, prepared, alone)
    if pair is None:
        return []
    alone, whole = pair
    return [name for name in features if name not in alone or not _same(alone[name], whole[name])]


def _by_index(some: pd.DataFrame, prepared: pd.DataFrame, alone: pd.DataFrame) -> FramePair | None:
    """The rows that `prepare` made of a few alone, and the same ones of what it made of all; None where it has numbered
    them anew.
    """
    found = alone.index.isin(some.index) & alone.index.isin(prepared.index)
    if not (len(alone) and alone.index.is_unique and prepared.index.is_unique and found.all()):
        return None
    given, whole = some.reindex(alone.index), prepared.loc[alone.index]
    kept = [name for name in given if name in alone and _same(alone[name], given[name])]
    if not all(name in whole and _same(whole[name], given[name]) for name in kept):
        return None  # other rows have their index now
    return alone, whole


def _by_values(rows: pd.DataFrame, some: pd.DataFrame, prepared: pd.DataFrame, alone: pd.DataFrame) -> FramePair | None:
    """As `_by_index`, by the columns that `prepare` does not change, where these tell a row from all others."""
    matched = [
        name
        for name in rows
        if name in alone
        and name in prepared
        and is_comparable(rows[name])
        and np.isin(_hashes(alone[[name]]), _hashes(some[[name]])).all()
        and np.isin(_hashes(prepared[[name]]), _hashes(rows[[name]])).all()
    ]
    if not matched:
        return None
    here, there, before = (pd.Index(_hashes(frame[matched])) for frame in (alone, prepared, rows))
    once = here.isin(there[~there.duplicated(keep=False)]) & here.isin(before[~before.duplicated(keep=False)])
    once &= ~here.duplicated(keep=False)
    return (alone[once], prepared.iloc[there.get_indexer_for(here[once])]) if once.any() else None


def _hashes(frame: pd.DataFrame) -> np.ndarray:
    """Return a number for each row, the same where its values are, whatever their types."""
    columns = {
        name: values.to_numpy(dtype=np.float64, na_value=np.nan)
        if pd.api.types.is_numeric_dtype(values)
        else values.astype(str).to_numpy(dtype=object)
        for name, values in frame.items()
    }
    return pd.util.hash_pandas_object(pd.DataFrame(columns), index=False).to_numpy()


def _same(some: pd.Series, others: pd.Series) -> bool:
    """Return whether values are equal, numbers up to rounding, whatever their types."""
    if pd.api.types.is_numeric_dtype(some) and pd.api.types.is_numeric_dtype(others):
        one, other = (values.to_numpy(dtype=np.float64, na_value=np.nan) for values in (some, others))
        return np.allclose(one, other, equal_nan=True)
    one, other = (values.astype(object).where(values.notna(), None) for values in (some, others))
    return [str(value) for value in one] == [str(value) for value in other]


def _numbered(rows: int) -> pd.Index:
    """0, 1, 2, … as pandas never numbers rows by itself, so that a new index of `prepare` can be told from it."""
    return pd.Index(np.arange(rows))


def _empty(kind: str, index: pd.Index) -> pd.Series:
    """A column without values; of a type that has missing ones, so numbers with a decimal point for whole ones."""
    dtype = {"i": np.dtype("float64"), "u": np.dtype("float64"), "b": np.dtype(object)}
    try:
        plain = pd.api.types.pandas_dtype(kind)
    except TypeError:
        plain = np.dtype(object)
    wanted = dtype.get(plain.kind, plain) if isinstance(plain, np.dtype) else plain
    return pd.Series([None] * len(index), index=index, dtype=wanted)


def _as_type(values: pd.Series, kind: str) -> pd.Series:
    try:
        return values.astype(kind)
    except (TypeError, ValueError):
        return values
