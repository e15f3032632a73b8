"""Constraints are Python functions: their names in a file, and a digest of what they do for fingerprints."""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, TypeAlias

from search_spaces.errors import SpaceError
from search_spaces.values import Configuration

Constraint: TypeAlias = Callable[[Configuration], bool]

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def constraint_name(constraint: Callable[..., object]) -> str:
    """`module:function`."""
    while isinstance(constraint, functools.partial):
        constraint = constraint.func
    name = getattr(constraint, "__qualname__", type(constraint).__qualname__)
    return f"{getattr(constraint, '__module__', '')}:{name}"


def importable(constraint: Constraint) -> bool:
    """Return whether the name alone brings the function back in another process."""
    module, _, name = constraint_name(constraint).partition(":")
    return module != "__main__" and getattr(sys.modules.get(module), name, None) is constraint


def load_constraint(text: object, path: str) -> Constraint:
    """Return the function that a file names.

    Raises:
        SpaceError: no such name, or the name of something that is not a function.
    """
    if not isinstance(text, str) or text.count(":") != 1:
        raise SpaceError(f"{text!r} must name a function as package.module:function", path=path)
    if "#" in text:
        return LostConstraint(text, path)
    module, _, name = text.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (Exception, SystemExit) as error:  # also what the module's own code raises
        said = f"{type(error).__name__}: {error}"
        raise SpaceError(f"{text!r} cannot be imported ({said}); check the name and PYTHONPATH", path=path) from error
    if not callable(found):
        raise SpaceError(f"{text!r} is not a function", path=path)
    result: Constraint = found
    return result


class LostConstraint:
    """A function of a script or a lambda, in a space that is read from a file: it has a name and cannot be asked."""

    def __init__(self, text: str, path: str) -> None:
        name, _, self.digest = text.partition("#")
        self.__module__, _, self.__qualname__ = name.partition(":")
        self.path = path

    def __call__(self, config: Configuration) -> bool:
        """`SpaceError`, since nobody can ask it."""
        text = f"{constraint_name(self)}#{self.digest}"
        raise SpaceError(
            f"{text!r} was a function without a name of its own, which no file can bring back; pass the same "
            "SearchSpace in Python, or move the function to a module and name it as package.module:function",
            path=self.path,
        )


def code_digest(constraint: Constraint) -> str:
    """8 hexadecimal digits of what a function does and was made with, without its place in a file or in memory.

    The same in every process: sets are sorted, addresses left out. What it reads from its module is not followed.
    """
    if isinstance(constraint, LostConstraint):
        return constraint.digest
    return hashlib.sha256("\n".join(_parts(constraint, frozenset())).encode()).hexdigest()[:8]


def _parts(value: object, above: frozenset[int]) -> Iterator[str]:
    """Yield a value as lines of text: a function's code, defaults and closure, an object's class and fields."""
    if value is None or isinstance(value, str | bytes | int | float | complex):
        yield repr(value)
    elif id(value) in above:
        yield "itself"  # a function that calls itself, an object that holds itself
    elif isinstance(value, set | frozenset):
        yield from sorted("\n".join(_parts(item, above)) for item in value)
    elif isinstance(value, type):
        yield constraint_name(value)
    else:
        inside = _inside(value)
        if inside is None:
            yield _ADDRESS.sub("", repr(value))
        else:
            for item in inside:
                yield from _parts(item, above | {id(value)})


def _inside(value: Any) -> list[object] | None:
    """Return what a value consists of; None where nothing is known."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, Mapping):
        return [part for item in value.items() for part in item]
    if isinstance(value, functools.partial):
        return [value.func, value.args, value.keywords]
    if hasattr(value, "__func__"):  # a method, with its object
        return [value.__func__, value.__self__]
    if hasattr(value, "co_code"):
        return [value.co_code, value.co_names, value.co_varnames, *value.co_consts]
    if hasattr(value, "__code__"):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        return [value.__code__, cells, value.__defaults__, value.__kwdefaults__]
    return [type(value), vars(value)] if hasattr(value, "__dict__") else None
