"""Finds the schedulers: every module of this package that defines a `SchedulerSpec`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from schedulers.errors import SchedulerError, did_you_mean
from schedulers.spec import SchedulerSpec


@cache
def specs() -> dict[str, type[SchedulerSpec]]:
    """Spec classes by name, in alphabetical order."""
    found: dict[str, type[SchedulerSpec]] = {}
    for module_info in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module_info.ispkg:
            continue
        module = importlib.import_module(f"{__package__}.{module_info.name}")
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, SchedulerSpec) and value.__module__ == module.__name__:
                name = getattr(value, "name", None)
                if name is not None:
                    found[name] = value
    return dict(sorted(found.items()))


#: What other tools call our schedulers.
_OF_OTHERS = {"successive_halving": "asha", "sha": "asha", "none": "fifo", "pruner": "asha", "medianpruner": "median"}


def names() -> list[str]:
    """The names of all schedulers, in alphabetical order."""
    return list(specs())


def parse(value: object) -> SchedulerSpec:
    """The spec for a name (`"asha"`), a mapping with `name` and options, or a spec (returned as it is).

    Raises:
        SchedulerError: an unknown name or option (naming the nearest valid one), or a bad value.
    """
    if isinstance(value, SchedulerSpec):
        return value
    options = {"name": value} if isinstance(value, str) else dict(value) if isinstance(value, Mapping) else None
    if options is None or not isinstance(options.get("name"), str):
        raise SchedulerError(
            f"scheduler {value!r}: give a name ({', '.join(names())}) or a mapping of `name` and its options"
        )
    name = str(options.pop("name"))
    if name not in specs():
        known = _OF_OTHERS.get(name.lower().replace("-", "_").replace(" ", "_"))
        hint = f"here it is {known!r}; " if known else ""
        raise SchedulerError(f"unknown scheduler {name!r}; {hint}{did_you_mean(name, names())}")
    return specs()[name].from_options(options)
