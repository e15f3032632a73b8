"""Hold-out rows and folds, by scikit-learn's own splitters."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from tuning.errors import CustomerError

AUTO, RANDOM, STRATIFIED, GROUP, TIME = "auto", "random", "stratified", "group", "time"

FoldRows = tuple[tuple["np.ndarray", "np.ndarray"], ...]


@dataclass(frozen=True)
class Split:
    """Row positions. test is never seen by the search; folds are (train, valid) positions within `search`."""

    search: np.ndarray
    test: np.ndarray
    folds: FoldRows


def split_rows(
    y: np.ndarray,
    *,
    classification: bool,
    test_size: float,
    folds: int,
    seed: int,
    kind: str = AUTO,
    along: np.ndarray | None = None,
) -> Split:
    """Hold out a share of the rows once, then make folds of the rest.

    kind: as `tuning.definition.options.SplitOptions.kind`; "auto" stratifies classes as far as their rows allow.
    along: (n,) group codes for "group", sortable moments for "time".

    With few rows there are fewer folds (never fewer than two); the hold-out has at least one row.
    """
    seed %= 2**32
    if kind == GROUP:
        assert along is not None
        return _by_group(y, along, classification, test_size, folds, seed)
    if kind == TIME:
        assert along is not None
        return _by_time(along, test_size, folds)
    return _shuffled(y, classification and kind != RANDOM, test_size, folds, seed)


def _shuffled(y: np.ndarray, stratified: bool, test_size: float, folds: int, seed: int) -> Split:
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

    held = max(1, round(len(y) * test_size))
    if len(y) - held < 2:
        raise CustomerError(f"{len(y) - held} rows are left for the search after the hold-out; at least 2 are needed.")
    counts = np.bincount(y)[np.unique(y)] if stratified else np.empty(0)
    fits = stratified and counts.min() >= 2 and held >= len(counts) and len(y) - held >= len(counts)
    if fits or not stratified:
        holder = (StratifiedShuffleSplit if fits else ShuffleSplit)(1, test_size=held, random_state=_seeded(seed))
        search, test = next(holder.split(y, y if fits else None))
    else:
        search, test = _spare_rows(y, held, seed)
    search, test = np.sort(search), np.sort(test)
    count = min(folds, len(search))
    if not stratified:
        return Split(search, test, _pairs(KFold(count, shuffle=True, random_state=_seeded(seed)).split(search)))
    count = min(count, max(2, _smallest(y[search])))
    splitter = StratifiedKFold(count, shuffle=True, random_state=_seeded(seed))
    return Split(search, test, _pairs(splitter.split(search, y[search])))


def _spare_rows(y: np.ndarray, held: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Too few rows to stratify: hold out random ones, of classes that have two others as long as there are such."""
    rows = _seeded(seed).permutation(len(y))
    left = np.bincount(y)
    spare: list[int] = []
    needed: list[int] = []
    for row in rows:
        if len(spare) < held and left[y[row]] > 2:
            left[y[row]] -= 1
            spare.append(row)
        else:
            needed.append(row)
    missing = held - len(spare)
    return np.array(needed[missing:]), np.array(spare + needed[:missing])


class _Random(threading.local):
    """numpy's old generator, one per thread: making one takes as long as ten small splits, seeding it anew nothing."""

    def __init__(self) -> None:
        self.state = np.random.RandomState(0)


_random = _Random()


def _seeded(seed: int) -> np.random.RandomState:
    """What draws as `np.random.RandomState(seed)` does, until the next call."""
    _random.state.seed(seed)
    return _random.state


def _smallest(y: np.ndarray) -> int:
    """Rows of the smallest class; too few to validate on is a `CustomerError`."""
    present = np.bincount(y)
    present = present[present > 0]
    smallest = int(present.min())
    if len(present) < 2:
        raise CustomerError("the rows of the search hold a single class; at least two are needed.")
    if smallest < 2 and len(present) == 2:
        raise CustomerError(
            f"one of the two classes has {smallest} row in the search; at least 2 are needed to validate on it."
        )
    return smallest


def _by_group(
    y: np.ndarray, groups: np.ndarray, classification: bool, test_size: float, folds: int, seed: int
) -> Split:
    from sklearn.model_selection import GroupKFold, GroupShuffleSplit, StratifiedGroupKFold

    total = len(np.unique(groups))
    if total < 3:
        raise CustomerError(f"{total} groups; at least 3 are needed, one for the hold-out and two for the folds.")
    parts = min(total, max(2, round(1 / test_size)))
    holder: StratifiedGroupKFold | GroupShuffleSplit
    if classification:  # of the parts that have the classes in about the same shares, one
        holder = StratifiedGroupKFold(parts, shuffle=True, random_state=seed)
    else:
        held = min(total - 2, max(1, round(total * test_size)))
        holder = GroupShuffleSplit(1, test_size=held, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class in fewer groups than parts
        search, test = next(holder.split(y, y, groups))
    left = len(np.unique(groups[search]))
    if left < 2:
        raise CustomerError(f"{left} group is left for the search after the hold-out; at least 2 are needed.")
    if classification:
        _smallest(y[search])
    splitter = (StratifiedGroupKFold if classification else GroupKFold)(
        min(folds, left), shuffle=True, random_state=seed
    )
    return Split(search, test, _pairs(splitter.split(search, y[search], groups[search])))


def _by_time(moments: np.ndarray, test_size: float, folds: int) -> Split:
    """The latest rows held out; expanding folds before them. Rows of one moment are never divided."""
    from sklearn.model_selection import TimeSeriesSplit

    order = np.argsort(moments, kind="stable")
    ordered = moments[order]
    cut = _boundary(ordered, len(order) - max(1, round(len(order) * test_size)))
    search, test = order[:cut], order[cut:]
    if not len(test) or len(np.unique(ordered[:cut])) < 2:
        raise CustomerError(
            f"{len(np.unique(moments))} different moments in {len(order)} rows; a split by time needs 3: to learn "
            "from, to validate on, and to hold out."
        )
    pairs = []
    splitter = TimeSeriesSplit(min(folds, cut - 1))
    starts = [_boundary(ordered[:cut], int(valid[0])) for _, valid in splitter.split(search)]
    starts = sorted({start for start in starts if 0 < start < cut})
    for start, end in zip(starts, [*starts[1:], cut], strict=True):
        pairs.append((np.arange(start), np.arange(start, end)))
    return Split(search, test, tuple(pairs))


def _boundary(ordered: np.ndarray, position: int) -> int:
    """The position moved to the beginning of its moment, or, where nothing would come before, to its end."""
    before = int(np.searchsorted(ordered, ordered[position], side="left"))
    return before or int(np.searchsorted(ordered, ordered[position], side="right"))


def _pairs(split: Iterable[tuple[np.ndarray, np.ndarray]]) -> FoldRows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class smaller than the number of folds
        return tuple((train, valid) for train, valid in split)
