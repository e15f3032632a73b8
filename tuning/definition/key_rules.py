"""What the keys of a definition have to be to each other: which belong together, and which rule each other out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from tuning.definition.complaints import KeyedError
from tuning.definition.options import Options
from tuning.models.entries import parse_models
from tuning.user_code import check_form

#: Key -> the columns that it names; none of a key that names none.
NamedColumns: TypeAlias = Mapping[str, Sequence[str]]
#: The keys with columns other than the target that describe rows and are not predicted from.
NOT_FEATURES = ("drop", "by", "weight", "split.group", "split.by", "baseline.column")
#: Keys of models; an objective is tuned without them.
OF_MODELS = (
    *("models", "features", "drop", "weight", "class_weight", "positive", "dates", "min_rows", "task", "bounds"),
    *("split", "winner", "ensemble", "pool", "final_fit", "allow_code"),
)
#: Keys of rows; without data there are none.
OF_DATA = ("by", "prepare", "encoding", "csv")


def some(*names: str | None) -> tuple[str, ...]:
    """Return the names that are not None."""
    return tuple(name for name in names if name is not None)


def check_roles(named: NamedColumns) -> None:
    """Raise `KeyedError` for a column under two keys, since it would do nothing under one of them."""
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


def check_form_of(key: str, code: str) -> None:
    """Raise `ValueError` under a key for what is no place of code."""
    try:
        check_form(code)
    except ValueError as error:
        raise KeyedError(key, f"{error}") from error


def set_keys(given: Options, keys: Iterable[str]) -> list[str]:
    """Return those of the keys with another value than the default."""
    fields = type(given).model_fields
    return [key for key in keys if getattr(given, key) != fields[key].get_default(call_default_factory=True)]


def with_models(values: Mapping[str, object]) -> dict[str, object]:
    """Return keys with their `models` parsed; an error in it is a value that its validator raises.

    Models without anything to vary are a list, not a search: each of them is tried once.
    """
    if values["models"] is None or values["models"] == ():
        return {**values, "models": ()}
    try:
        entries = parse_models(values["models"])
    except ValueError as error:
        return {**values, "models": error}
    fixed = not any(entry.built_in or entry.search_space is not None for entry in entries)
    once = {"algorithm": "grid", "trials": len(entries)} if fixed and values.get("search_space") is None else {}
    return {**once, **values, "models": entries}
