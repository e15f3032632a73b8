"""Finds the stopping rules: every module of this package that defines a `RuleSpec`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from schedulers.errors import SchedulerError, did_you_mean
from schedulers.stopping.rule import RuleSpec


@cache
def rules() -> dict[str, type[RuleSpec]]:
    """Spec classes by name, in alphabetical order."""
    found: dict[str, type[RuleSpec]] = {}
    for info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        module = importlib.import_module(f"{__package__}.{info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, RuleSpec) and value is not RuleSpec:
                found[value.name] = value
    return dict(sorted(found.items()))


def names() -> list[str]:
    """The names of all rules, in alphabetical order."""
    return list(rules())


def parse(value: object) -> tuple[RuleSpec, ...]:
    """The rules of a mapping from name to options (or to the one value a rule's short form takes); none of None.

    Raises:
        SchedulerError: an unknown name or option (naming the nearest valid one), or a bad value.
    """
    if value is None:
        return ()
    if not isinstance(value, Mapping):
        raise SchedulerError(f"stopping rules {value!r}: give a mapping of name: options ({', '.join(names())})")
    for name in value:
        if name not in rules():
            raise SchedulerError(f"unknown stopping rule {name!r}; {did_you_mean(str(name), names())}")
    return tuple(rules()[name].from_options(options) for name, options in value.items())
