"""What all kinds of parameters have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from search_spaces.errors import SpaceError
from search_spaces.values import When, check_name, check_when


@dataclass(frozen=True, kw_only=True)
class ParameterBase:
    """What every kind has: a condition, a sentence and its source, and a place in a nested configuration."""

    kind: ClassVar[str]
    when: When = field(default_factory=dict)
    why: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    nested: tuple[str, ...] = ()

    def _start(self, name: str) -> None:
        check_name(name)
        try:
            object.__setattr__(self, "when", check_when(self.when))
        except SpaceError as error:
            raise error.under(name) from None
        if isinstance(self.nested, str) or not isinstance(self.nested, Sequence):
            raise SpaceError(f"{self.nested!r} must be a list of keys", path=f"{name}.nested")
        for key in self.nested:
            if not isinstance(key, str):
                raise SpaceError(f"{key!r} is not a key; write text", path=f"{name}.nested")
        object.__setattr__(self, "nested", tuple(self.nested))
