"""The model families by name, found by their files: each module of `tuning.models.families` is one."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from tuning.basics.wording import did_you_mean
from tuning.errors import DefinitionError
from tuning.models import families as folder
from tuning.models.base import Config, Family
from tuning.models.worker_group import ActorGroup


@cache
def families() -> dict[str, Family]:
    """All built-in families by name."""
    found = {}
    for module in pkgutil.iter_modules(folder.__path__):
        loaded = importlib.import_module(f"{folder.__name__}.{module.name}")
        found[loaded.FAMILY.name] = loaded.FAMILY
    return found


def family(name: str) -> Family:
    """Return the family of that name; an unknown one is an error that names the nearest."""
    known = families()
    if name not in known:
        hint = did_you_mean(name, known)
        raise DefinitionError(f"{name!r} is not a model family.{hint} Known: {', '.join(sorted(known))}.")
    return known[name]


def group_of(config: Config) -> ActorGroup | None:
    """The actors that train a trial of a configuration; None where its own process does, as with a user's own model."""
    found = families().get(str(config.get("model")))
    return None if found is None else found.worker_group(config)
