"""Filling, scaling and encoding, learned from a fold's training rows only.

The same figures as scikit-learn's `SimpleImputer(strategy="median")`, `StandardScaler`, `OneHotEncoder` and
`OrdinalEncoder` (a test compares them) at a twentieth of their time: they check and convert their input for several
milliseconds per fold, which is more than a small fit takes, and every customer pays it for every fold. What is learned
is a few plain numbers and names, and is saved as such.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tuning.basics.documents import Json
from tuning.preprocessing.columns import RawColumns
from tuning.preprocessing.notations import MISSING

ONEHOT, ORDINAL, FRAME = "onehot", "ordinal", "frame"
MAX_CATEGORIES = 20  # indicator columns per text column; rarer texts share the last one


@dataclass(frozen=True)
class TextColumn:
    """names: the texts with a column (or code) of their own, in that order. rare: one more column for known others.

    Unknown texts count as rare; without that column they are all zeros (one-hot) or missing (ordinal).
    """

    names: tuple[str, ...]
    rare: bool = False

    @property
    def width(self) -> int:
        return len(self.names) + self.rare


class Encoder:
    """Fills, scales and encodes.

    encoding: "onehot" (missing numbers filled with the median, text as indicators), "ordinal" (missing numbers stay
    NaN, text as codes) or "frame" (rows as they came). scale: numbers have mean 0 and variance 1.
    """

    def __init__(self, encoding: str, scale: bool) -> None:
        self.encoding = encoding
        self.scale = scale
        self.fill: np.ndarray | None = None
        self.mean: np.ndarray | None = None
        self.spread: np.ndarray | None = None
        self.texts: tuple[TextColumn, ...] = ()

    def fit(self, raw: RawColumns) -> Encoder:
        """Learn from training rows."""
        if self.encoding == FRAME:
            return self
        self.learn_numbers(raw.numbers)
        limit = MAX_CATEGORIES if self.encoding == ONEHOT else None
        self.texts = tuple(
            _learn(raw.codes[:, position], names, limit) for position, names in enumerate(raw.categories)
        )
        return self

    def learn_numbers(self, numbers: np.ndarray) -> None:
        """Learn by what missing numbers are filled, and how numbers are scaled. numbers: (n, columns)."""
        if self.encoding == ONEHOT:
            self.fill = medians(numbers)
            numbers = _filled(numbers, self.fill)
        if self.scale:
            self.mean, self.spread = _moments(numbers)

    def transform(self, raw: RawColumns) -> np.ndarray | pd.DataFrame:
        """(n, p) float64 in C order: numbers first, then encoded text; with "frame" the frame itself."""
        if self.encoding == FRAME:
            return raw.frame
        width = raw.numbers.shape[1]
        total = width + (sum(text.width for text in self.texts) if self.encoding == ONEHOT else len(self.texts))
        numbers = raw.numbers if self.fill is None else _filled(raw.numbers, self.fill)
        if self.mean is not None and self.spread is not None:
            numbers = (numbers - self.mean) / self.spread
        out = np.zeros((len(raw), total))
        out[:, :width] = numbers
        rows, at = np.arange(len(raw)), width
        for position, text in enumerate(self.texts):
            places = _places(raw.categories[position], text)[raw.codes[:, position]]
            if self.encoding == ONEHOT:
                known = places >= 0
                out[rows[known], at + places[known]] = 1.0
                at += text.width
            else:
                out[:, at] = np.where(places >= 0, places, np.nan)
                at += 1
        return out

    def unseen(self, raw: RawColumns) -> dict[int, np.ndarray]:
        """(n,) by the position of each text column which rows hold a text that no training row had, where one does.

        Of a column whose rare texts share one place nothing is known: their names are not kept.
        """
        found = dict[int, np.ndarray]()
        for position, text in enumerate(self.texts):
            known = {*text.names, MISSING}
            new = np.array([not text.rare and name not in known for name in raw.categories[position]] or [False])
            if new.any():
                found[position] = new[raw.codes[:, position]]
        return found

    def categorical(self, raw: RawColumns) -> tuple[int, ...]:
        """Positions of category codes in the transformed array."""
        if self.encoding != ORDINAL:
            return ()
        width = raw.numbers.shape[1]
        return tuple(range(width, width + len(self.texts)))

    def to_dict(self) -> dict[str, object]:
        """What was learned, as plain values."""
        arrays = {"fill": self.fill, "mean": self.mean, "spread": self.spread}
        return {
            "encoding": self.encoding,
            "scale": self.scale,
            **{name: array.tolist() for name, array in arrays.items() if array is not None},
            "texts": [{"names": list(text.names), "rare": text.rare} for text in self.texts],
        }

    @classmethod
    def from_dict(cls, values: Json) -> Encoder:
        encoder = cls(values["encoding"], values["scale"])
        for name in ("fill", "mean", "spread"):
            if name in values:
                setattr(encoder, name, np.array(values[name], dtype=np.float64))
        encoder.texts = tuple(TextColumn(tuple(text["names"]), text["rare"]) for text in values["texts"])
        return encoder


def medians(numbers: np.ndarray) -> np.ndarray:
    """Per column, over what is there; 0 for an empty column."""
    if not len(numbers):
        return np.zeros(numbers.shape[1])
    # NaN sorts behind all numbers, so the median stands in the middle of the first `count`.
    ordered = np.sort(numbers, axis=0)
    if not np.isnan(ordered[-1]).any():
        low, high = (len(numbers) - 1) // 2, len(numbers) // 2
        return ordered[low] if low == high else (ordered[low] + ordered[high]) / 2.0
    count = len(numbers) - np.isnan(numbers).sum(axis=0)
    columns = np.arange(numbers.shape[1])
    low, high = np.maximum(count - 1, 0) // 2, np.maximum(count, 1) // 2
    return np.where(count > 0, (ordered[low, columns] + ordered[high, columns]) / 2.0, 0.0)


def _filled(numbers: np.ndarray, fill: np.ndarray) -> np.ndarray:
    holes = np.isnan(numbers)
    return np.where(holes, fill, numbers) if holes.any() else numbers


def _moments(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(mean, standard deviation) per column, over what is there; 1 where nothing varies."""
    there = ~np.isnan(numbers)
    if there.all():
        count = max(len(numbers), 1)
        mean = np.add.reduce(numbers) / count
        centred = numbers - mean
    else:
        count = np.maximum(there.sum(axis=0), 1)
        mean = np.where(there, numbers, 0.0).sum(axis=0) / count
        centred = np.where(there, numbers - mean, 0.0)
    spread = np.sqrt(np.add.reduce(centred * centred) / count)
    # A constant's deviation is rounding noise of its own size; divided by that it would be noise of size 1.
    noise = 10.0 * np.finfo(np.float64).eps * np.abs(mean)
    return mean, np.where(spread > noise, spread, 1.0)


def _learn(codes: np.ndarray, names: tuple[str, ...], limit: int | None) -> TextColumn:
    counts = np.bincount(codes, minlength=len(names))
    present = np.flatnonzero(counts)
    if limit is None or len(present) <= limit:
        return TextColumn(tuple(names[position] for position in present))
    frequent = present[np.argsort(-counts[present], kind="stable")][: limit - 1]
    return TextColumn(tuple(names[position] for position in np.sort(frequent)), rare=True)


def _places(names: tuple[str, ...], text: TextColumn) -> np.ndarray:
    """For each of a frame's texts its column (or code) in the encoding, -1 for none."""
    known = {name: position for position, name in enumerate(text.names)}
    other = len(text.names) if text.rare else -1
    return np.array([known.get(name, other) for name in names] or [0], dtype=np.int64)
