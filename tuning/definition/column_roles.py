"""Which columns of the data a definition names, by the key that names them; only one role each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tuning.definition.complaints import KeyedError

#: Key -> the columns that it names; none of a key that names none.
NamedColumns: TypeAlias = Mapping[str, Sequence[str]]
#: The keys whose columns describe rows and are not predicted from, beside the target.
NOT_FEATURES = ("drop", "by", "weight", "split.group", "split.by", "baseline.column")


def some(*names: str | None) -> tuple[str, ...]:
    """The names that there are."""
    return tuple(name for name in names if name is not None)


def not_features(named: NamedColumns) -> tuple[str, ...]:
    """Columns that are not predicted from, beside the target."""
    return tuple(name for key in NOT_FEATURES for name in named[key])


def check_roles(named: NamedColumns) -> None:
    """`ValueError` for a column that is named under two keys, since it would do nothing under one of them."""
    for key, names in named.items():
        both = [name for name in named["target"] if key != "target" and name in names]
        if both:
            raise KeyedError("target", f"{both[0]!r} is the column to predict, so it cannot be under `{key}` too")
    for key in NOT_FEATURES:
        both = [name for name in named["features"] if name in named[key]]
        if both:
            raise KeyedError(
                "features", f"{both[0]!r} is also under `{key}`, and such a column is not predicted from; keep one"
            )
