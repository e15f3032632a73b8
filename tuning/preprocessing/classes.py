"""The classes of a target: their labels as the user knows them, the positive one, and their weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import numpy as np
import pandas as pd

from tuning.errors import CustomerError
from tuning.notes import DataCode, Note

Label: TypeAlias = str | int | float | bool  # of a class
ClassWeights: TypeAlias = Mapping[Label, float] | Literal["balanced"]  # a weight per class label

TRUE = frozenset({"true", "yes"})  # positive whatever the other class is called
FALSE_AND_TRUE = frozenset({("0", "1"), ("-1", "1"), ("n", "y"), ("f", "t")})  # positive in these pairs only


def read_classes(values: pd.Series) -> tuple[np.ndarray, tuple[Label, ...]]:
    """Return (n,) class codes and the labels in order; `CustomerError` for a target that cannot be compared.

    values: without missing ones. Whole numbers are ints, also where a gap has made floats of the column.
    """
    try:
        codes, found = pd.factorize(values, sort=True)
    except TypeError as error:
        raise CustomerError(DataCode.LISTS(str(values.name))) from error
    labels = [_plain(value) for value in found]
    if all(_is_whole(label) for label in labels if isinstance(label, float)):
        labels = [int(label) if isinstance(label, float) else label for label in labels]
    return codes.astype(np.int64), tuple(labels)


def _is_whole(label: Label) -> bool:
    """Return whether a float stands for a whole number; from 2^63 on all do, because they are large."""
    return isinstance(label, float) and label.is_integer() and abs(label) < 2.0**63


def _plain(value: object) -> Label:
    """Return a class label as a plain value that a model file can hold; dates and the like as text."""
    plain = value.item() if hasattr(value, "item") else value
    return plain if isinstance(plain, str | int | float | bool) else str(value)


def find_label(wanted: Label, labels: Iterable[Label]) -> Label | None:
    """Return the label that a definition means, which may be of another type there; None when there is none."""
    by_text = {str(label): label for label in labels}
    found = by_text.get(str(int(wanted) if _is_whole(wanted) else wanted))
    if found is None and isinstance(wanted, bool):
        found = next((label for text, label in by_text.items() if text.casefold() == str(wanted).casefold()), None)
    return found


def guess_positive(targets: Iterable[pd.Series]) -> tuple[Label, Note] | None:
    """Guess the positive class of a binary task, and say why; None when no customer has two classes.

    It is the one that is called true, yes or 1, else the rarer one of all customers. These may have classes of other
    names: the pair with most rows counts.
    """
    rows: Counter[tuple[Label, ...]] = Counter()  # by the labels of a customer
    by_label: Counter[tuple[tuple[Label, ...], Label]] = Counter()
    for values in targets:
        codes, labels = read_classes(values.dropna())
        rows[labels] += len(codes)
        by_label.update({(labels, label): int(count) for label, count in zip(labels, np.bincount(codes), strict=True)})
    pairs = [labels for labels in rows if len(labels) == 2]
    if not pairs:
        return None
    labels = max(pairs, key=lambda pair: rows[pair])
    texts = tuple(str(label).casefold() for label in labels)
    named = [label for label, text in zip(labels, texts, strict=True) if text in TRUE]
    if texts in FALSE_AND_TRUE:
        named = [labels[1]]
    if len(named) == 1:
        other = labels[0] if named[0] == labels[1] else labels[1]
        return named[0], DataCode.POSITIVE_BY_NAME(other=other)
    counts = [sum(by_label[some, label] for some in (labels, (label,))) for label in labels]
    rarer = 0 if counts[0] < counts[1] else 1
    share = 100 * counts[rarer] / sum(counts)
    return labels[rarer], DataCode.POSITIVE_BY_RARITY(share=share, rows=sum(counts), other=labels[1 - rarer])


def class_weights(given: ClassWeights, y: np.ndarray, classes: tuple[Label, ...]) -> np.ndarray:
    """Return (classes,) weights: as given by label (1 for a class not named), or n / (classes * rows of it)."""
    if given == "balanced":
        counts = np.bincount(y, minlength=len(classes))
        return np.where(counts > 0, len(y) / (np.count_nonzero(counts) * np.maximum(counts, 1)), 1.0)
    named = {find_label(label, classes): float(weight) for label, weight in given.items()}
    return np.array([named.get(label, 1.0) for label in classes])
