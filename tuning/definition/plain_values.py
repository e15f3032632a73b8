"""Checked values as YAML and JSON can hold them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

IN_MEMORY = "(in memory)"  # in place of a function or a frame, which no text can hold


def plain_value(value: object) -> object:
    """Return a value as the user would write it: text, numbers, lists and mappings.

    A specification is asked for its `to_dict`, a function is named by its import path. A DataFrame, which no text can
    hold, stays one.
    """
    if hasattr(value, "columns"):
        return value
    if hasattr(value, "to_dict") and not isinstance(value, type):
        return plain_value(value.to_dict())
    if isinstance(value, Mapping):
        return {key: plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Callable) and not isinstance(value, type):  # type: ignore[arg-type]  # mypy: not a class
        # An object that can be called, a partial for instance, is named by its class.
        return f"{value.__module__}:{getattr(value, '__qualname__', type(value).__qualname__)}"
    return value
