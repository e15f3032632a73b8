"""What somebody sees of an object in an editor or a notebook: the names for users, and an answer to others' names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from tuning.basics.wording import did_you_mean


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


def typing() -> bool:
    """Whether somebody types at Python's prompt, or in a notebook: both set `sys.ps1`."""
    return hasattr(sys, "ps1")
