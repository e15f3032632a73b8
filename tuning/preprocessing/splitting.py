"""Hold-out rows and folds, by scikit-learn's own splitters, or by hashes of rows."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, compress

import numpy as np

from tuning.errors import CustomerError
from tuning.notes import DataCode, Note
from tuning.preprocessing.row_hashes import mixed

AUTO, RANDOM, STRATIFIED, GROUP, TIME, STABLE = "auto", "random", "stratified", "group", "time", "stable"

HOLD_OUT, FOLD = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)  # a hash says both, independently

FoldRows = tuple[tuple["np.ndarray", "np.ndarray"], ...]


@dataclass(frozen=True)
class Split:
    """Row positions. test is never seen by the search; folds are (train, valid) positions within `search`.

    notes: what a user has to know of these parts.
    """

    search: np.ndarray
    test: np.ndarray
    folds: FoldRows
    notes: tuple[Note, ...] = ()


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
    along: (n,) group codes for "group", sortable moments for "time", hashes of rows or of their keys for "stable".

    With few rows there are fewer folds (never fewer than two); the hold-out has at least one row.
    """
    made = _divided(y, classification, test_size, folds, seed % 2**32, kind, along)
    filled = [len(train) > 0 and len(valid) > 0 for train, valid in made.folds]
    return made if all(filled) else replace(made, folds=tuple(compress(made.folds, filled)))


def _divided(
    y: np.ndarray, classification: bool, test_size: float, folds: int, seed: int, kind: str, along: np.ndarray | None
) -> Split:
    if along is None:
        return _shuffled(y, classification and kind != RANDOM, test_size, folds, seed)
    if kind == GROUP:
        return _by_group(y, along, classification, test_size, folds, seed)
    if kind == TIME:
        return _by_time(along, test_size, folds)
    return _stable(y, along, classification, test_size, folds)


def _shuffled(y: np.ndarray, stratified: bool, test_size: float, folds: int, seed: int) -> Split:
    from sklearn.model_selection import KFold, ShuffleSplit, StratifiedKFold, StratifiedShuffleSplit

    held = max(1, round(len(y) * test_size))
    if len(y) - held < 2:
        raise CustomerError(DataCode.HOLD_OUT_LEAVES("rows", left=len(y) - held))
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
    """Hold out random rows where there are too few to stratify: first of classes that keep two others."""
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
    """Return a generator that draws as `np.random.RandomState(seed)` does, until the next call."""
    _random.state.seed(seed)
    return _random.state


def _smallest(y: np.ndarray) -> int:
    """Return the rows of the smallest class; `CustomerError` where they are too few to validate on."""
    present = np.bincount(y)
    present = present[present > 0]
    smallest = int(present.min())
    if len(present) < 2:
        raise CustomerError(DataCode.ONE_CLASS())
    _largest(y)
    if smallest < 2 and len(present) == 2:
        raise CustomerError(DataCode.CLASS_OF_ONE_ROW())
    return smallest


def _largest(y: np.ndarray) -> int:
    """Return the rows of the largest class, a limit of stratified parts; `CustomerError` where it is 1."""
    largest = int(np.bincount(y).max())
    if largest < 2:
        raise CustomerError(DataCode.CLASS_OF_ONE_ROW())
    return largest


def _by_group(
    y: np.ndarray, groups: np.ndarray, classification: bool, test_size: float, folds: int, seed: int
) -> Split:
    from sklearn.model_selection import GroupKFold, GroupShuffleSplit, StratifiedGroupKFold

    total = len(np.unique(groups))
    if total < 3:
        raise CustomerError(DataCode.TOO_FEW_PARTS("groups", count=total))
    holder: StratifiedGroupKFold | GroupShuffleSplit
    if classification:  # of the parts that have the classes in about the same shares, one
        parts = min(total, max(2, round(1 / test_size)), _largest(y))
        holder = StratifiedGroupKFold(parts, shuffle=True, random_state=seed)
    else:
        held = min(total - 2, max(1, round(total * test_size)))
        holder = GroupShuffleSplit(1, test_size=held, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class in fewer groups than parts
        divisions = holder.split(y, y, groups)
        first = next(divisions)
        usable = (each for each in chain((first,), divisions) if _is_searchable(y, groups, *each))
        search, test = next(usable, first)
    left = len(np.unique(groups[search]))
    if left < 2:
        raise CustomerError(DataCode.HOLD_OUT_LEAVES("groups", left=left))
    count = min(folds, left)
    if classification:
        _smallest(y[search])
        count = min(count, _largest(y[search]))
    splitter = (StratifiedGroupKFold if classification else GroupKFold)(count, shuffle=True, random_state=seed)
    return Split(search, test, _pairs(splitter.split(search, y[search], groups[search])))


def _is_searchable(y: np.ndarray, groups: np.ndarray, search: np.ndarray, test: np.ndarray) -> bool:
    return len(test) > 0 and len(np.unique(groups[search])) > 1 and len(np.unique(y[search])) > 1


def _by_time(moments: np.ndarray, test_size: float, folds: int) -> Split:
    """Hold out the latest rows, with expanding folds before them. Rows of one moment are never divided."""
    order = np.argsort(moments, kind="stable")
    ordered = moments[order]
    cut = _boundary(ordered, len(order) - max(1, round(len(order) * test_size)))
    search, test = order[:cut], order[cut:]
    if not len(test) or len(np.unique(ordered[:cut])) < 2:
        raise CustomerError(DataCode.TOO_FEW_PARTS("moments", count=len(np.unique(moments))))
    pairs = []
    count = min(folds, cut - 1)
    rows = cut // (count + 1)  # of a fold, as scikit-learn's `TimeSeriesSplit` has it
    starts = sorted({_boundary(ordered[:cut], start) for start in range(cut - count * rows, cut, rows)} - {cut})
    for start, end in zip(starts, [*starts[1:], cut], strict=True):
        pairs.append((np.arange(start), np.arange(start, end)))
    return Split(search, test, tuple(pairs))


def _boundary(ordered: np.ndarray, position: int) -> int:
    """Move a position to the beginning of its moment, or to its end where nothing would come before."""
    before = int(np.searchsorted(ordered, ordered[position], side="left"))
    return before or int(np.searchsorted(ordered, ordered[position], side="right"))


def _stable(y: np.ndarray, hashes: np.ndarray, classification: bool, test_size: float, folds: int) -> Split:
    """Choose each row's part by its hash alone, so that rows which come later move none of those that are there.

    Rows with one hash are never divided. Where a part would lack what the evaluation needs (a row to hold out, two of
    each class to learn from), as few as possible are put there against their hashes, and a note says so.
    """
    units, unit_of = np.unique(hashes, return_inverse=True)
    if len(units) < 3:
        raise CustomerError(DataCode.TOO_FEW_PARTS("rows or keys of `split.by`", count=len(units)))
    labels = y if classification else np.zeros(len(y), dtype=np.int64)
    rows_of = np.bincount(unit_of)
    has = np.zeros((len(units), int(labels.max()) + 1), dtype=bool)  # which units have rows of which class
    has[unit_of, labels] = True
    order = _spread(units ^ HOLD_OUT)
    meant = order < test_size
    held = _with_enough(meant, order, has)
    search, test = np.flatnonzero(~held[unit_of]), np.flatnonzero(held[unit_of])
    if classification:
        _smallest(y[search])
    left = np.flatnonzero(~held)
    fold_of = np.full(len(units), -1)
    fold_of[left], dealt = _stable_folds(_spread(units[left] ^ FOLD), has[left], folds)
    parts = fold_of[unit_of[search]]
    pairs = ((np.flatnonzero(parts != part), np.flatnonzero(parts == part)) for part in range(folds))
    whole = [(train, valid) for train, valid in pairs if len(valid) and _teaches(labels[search], train)]
    moved = int(rows_of[held != meant].sum()) + (len(search) if dealt else 0)
    return Split(search, test, tuple(whole), tuple(_stable_notes(len(test), len(y), test_size, moved)))


def _spread(hashes: np.ndarray) -> np.ndarray:
    """Return (n,) each hash as a number from 0 to below 1, all equally likely."""
    return (mixed(hashes) >> np.uint64(11)) / 2.0**53


def _with_enough(meant: np.ndarray, order: np.ndarray, has: np.ndarray) -> np.ndarray:
    """Return (units,) which are held out: those that are meant to be, unless the search or the hold-out lacks them."""
    held = meant.copy()
    needed = np.minimum(2, has.sum(axis=0))
    for label in range(has.shape[1]):
        back = np.flatnonzero(held & has[:, label])
        short = int(needed[label] - (~held & has[:, label]).sum())
        if short > 0:
            held[back[np.argsort(-order[back])][:short]] = False
    if not held.any():
        spare = (~has | (has.sum(axis=0) > needed)).all(axis=1)
        held[np.argmin(np.where(spare, order, order + 1))] = True
    return held


def _stable_folds(order: np.ndarray, has: np.ndarray, folds: int) -> tuple[np.ndarray, bool]:
    """Return (units,) the fold of each, and whether they were dealt in turn because hashes leave fewer than two."""
    found = (order * folds).astype(np.int64)
    labels = has.argmax(axis=1)
    usable = sum(bool((found == part).any()) and _teaches(labels, found != part) for part in range(folds))
    if usable >= 2:
        return found, False
    count = min(folds, max(2, int(np.bincount(labels)[np.unique(labels)].min())))
    dealt = np.empty(len(order), dtype=np.int64)
    dealt[np.lexsort((order, labels))] = np.arange(len(order)) % count
    return dealt, True


def _teaches(labels: np.ndarray, train: np.ndarray) -> bool:
    """Return whether some rows have every class that is there twice or more."""
    total = np.bincount(labels)
    return bool((np.bincount(labels[train], minlength=len(total))[total > 1] > 0).all())


def _stable_notes(held: int, rows: int, test_size: float, moved: int) -> Iterator[Note]:
    if not 0.5 <= held / (rows * test_size) <= 2:
        yield DataCode.STABLE_SHARE(held=held, rows=rows, share=test_size)
    if moved:
        yield DataCode.STABLE_MOVED(moved=moved, rows=rows)


def _pairs(split: Iterable[tuple[np.ndarray, np.ndarray]]) -> FoldRows:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class smaller than the number of folds
        return tuple((train, valid) for train, valid in split)
