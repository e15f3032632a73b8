"""What somebody sees of an object in an editor or a notebook: the names for users, and an answer to others' names."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from inspect import isfunction
from typing import TYPE_CHECKING, ClassVar

from tuning.basics.wording import did_you_mean

SILENT_S = 2.0  # which nobody takes for a program that hangs


class Public:
    """Tab shows `public` only; a name that other tools have for a thing is answered with what it is here.

    public: the attributes for users; the others are for the program. elsewhere: other tools' names → what to type.
    """

    public: ClassVar[tuple[str, ...]] = ()
    elsewhere: ClassVar[Mapping[str, str]] = {}

    def __dir__(self) -> Iterable[str]:
        return [*self.public, *(name for name in object.__dir__(self) if name.startswith("__"))]

    if not TYPE_CHECKING:  # else mypy would know every name

        def __getattr__(self, name: str) -> object:
            if hasattr(type(self), name):  # a property has raised: once more, for its own words
                return object.__getattribute__(self, name)
            kind = type(self).__name__
            if name.startswith("_"):
                raise AttributeError(f"{kind!r} object has no attribute {name!r}")
            here = self.elsewhere.get(name)
            hint = f" Here it is {here}." if here else did_you_mean(name, self.public)
            raise AttributeError(f"a {kind} has no {name!r}.{hint}", name=name, obj=self)


def own_functions(module: Mapping[str, object]) -> list[str]:
    """The public functions that a module defines itself, by its globals: what Tab shows of it."""
    own = (name for name, value in module.items() if getattr(value, "__module__", "") == module["__name__"])
    return sorted(name for name in own if isfunction(module[name]) and not name.startswith("_"))


def is_interactive() -> bool:
    """Whether somebody types at Python's prompt, or in a notebook: both set `sys.ps1`."""
    return hasattr(sys, "ps1")


@contextlib.contextmanager
def wait_notice(what: str) -> Iterator[None]:
    """Where somebody watches, say what takes its time, once it takes longer than a moment."""
    stream = sys.stderr
    timer = threading.Timer(SILENT_S, lambda: stream.write(f"{what} …\n"))
    timer.daemon = True
    if stream.isatty():  # a notebook keeps all that is shown; `clear_output` would take all of the cell
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
