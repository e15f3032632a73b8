"""Every search algorithm behind one door: `parse` a name or a mapping, `build` a Ray Tune `Searcher`.

The registry is the folder: each module that defines subclasses of `Algorithm` adds them by existing, and the
contract tests and the table in docs/algorithms.md follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from pydantic import ValidationError

from search_spaces.algorithms.base import Algorithm
from search_spaces.errors import SpaceError, did_you_mean, rule

__all__ = ["Algorithm", "names", "parse", "registry", "unlearning"]


@cache
def registry() -> dict[str, type[Algorithm]]:
    """Name -> specification class, by name."""
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    found: dict[str, type[Algorithm]] = {}
    unseen = Algorithm.__subclasses__()
    while unseen:
        kind = unseen.pop()
        unseen += kind.__subclasses__()
        name = kind.model_fields["name"].default
        if name:
            found[name] = kind
    return dict(sorted(found.items()))


def names() -> list[str]:
    """Return all algorithms, also those without their library on this machine."""
    return list(registry())


def unlearning() -> list[str]:
    """Return the algorithms that learn nothing from trials."""
    return [name for name, kind in registry().items() if kind.learns.startswith("nothing")]


def parse(definition: object) -> Algorithm:
    """Return a validated specification from a name, from a mapping with `name` and options, or itself.

    Raises:
        SpaceError: an unknown algorithm or option (naming the nearest valid one), or an option's wrong value.
    """
    if isinstance(definition, Algorithm):
        return definition
    given = {"name": definition} if isinstance(definition, str) else definition
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise SpaceError(f"{definition!r} is not an algorithm; write its name, or a mapping with name and options")
    name = str(given["name"])
    kind = registry().get(name)
    if kind is None:
        gone = _GONE.get(name.lower())
        if gone is not None:
            raise SpaceError(gone)
        raise SpaceError(
            f"there is no algorithm {name!r}{did_you_mean(name, names())}; it is one of {', '.join(names())}"
        )
    try:
        return kind(**{str(option): value for option, value in given.items()})
    except ValidationError as error:
        raise _first(error, kind, name) from None


_GONE = {
    "tpe": "there is no algorithm 'tpe'; the tree-structured Parzen estimator is optuna's default sampler: optuna",
    "dragonfly": "Ray Tune dropped its Dragonfly wrapper (not in 2.60); use optuna with sampler: gp",
    "skopt": "Ray Tune dropped its scikit-optimize wrapper (not in 2.60); use optuna with sampler: gp",
    "sigopt": "Ray Tune dropped its SigOpt wrapper (not in 2.60; the service itself closed); use optuna",
}


def _first(error: ValidationError, kind: type[Algorithm], name: str) -> SpaceError:
    """Pydantic's first complaint in this package's words."""
    first, *others = error.errors()
    # Every member of a union complains; the one that got furthest is meant. Its own name in the path is left out.
    same_option = [first, *(other for other in others if other["loc"][:1] == first["loc"][:1])]
    complaint = max(same_option, key=lambda complaint: len(complaint["loc"]))
    option = ".".join(str(part) for part in complaint["loc"] if not set("-[") & set(str(part)))
    value = complaint.get("input")
    options = [option for option in kind.model_fields if option != "name"]
    if complaint["type"] == "extra_forbidden":
        has = f"its options are {', '.join(options)}" if options else "it has no options"
        return SpaceError(f"{name} has no option {option!r}{did_you_mean(option, options)}; {has}", path=option)
    explained = complaint["type"] == "value_error"
    return SpaceError(rule(complaint) if explained else f"{value!r} {rule(complaint)}", path=option)
