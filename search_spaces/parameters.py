"""What may vary: float, int, choice and constant, as frozen values whose bounds are checked at birth.

Every parameter maps a number of the half-open unit interval onto its values (`at`), evenly in the
parameter's own scale, and back (`position`). Random and Sobol search, grids and the libraries that only
know cubes all use that one mapping, so that every algorithm searches the same thing.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from search_spaces.errors import SpaceError
from search_spaces.numeric import Float, Int
from search_spaces.shared import Shared
from search_spaces.values import UNSET, Plain, plain, same


@dataclass(frozen=True)
class Choice(Shared):
    """One of the values listed: text, numbers, true/false, null, or lists of them (tuples become lists).

    Args:
        name: the key in a configuration.
        values: at least one, no two equal (1, 1.0 and true count as equal: YAML and Python mix them up).
        default: one of the values; the first if left out.
        when, why, source: as in `Float`.
    """

    kind: ClassVar[str] = "choice"
    name: str
    values: Sequence[Plain]
    default: Plain = field(default=UNSET, kw_only=True)

    def __post_init__(self) -> None:
        self._start(self.name)
        if isinstance(self.values, str | Mapping) or not isinstance(self.values, Sequence) or not self.values:
            raise SpaceError(f"{self.values!r} must be a list of at least one value", path=f"{self.name}.values")
        values = tuple(plain(value, f"{self.name}.values") for value in self.values)
        for index, value in enumerate(values):
            if value in values[:index]:
                raise SpaceError(
                    f"{value!r} equals {values[values.index(value)]!r}, listed before; remove one of them",
                    path=f"{self.name}.values.{index}",
                )
        object.__setattr__(self, "values", values)
        default = values[0] if self.default is UNSET else plain(self.default, f"{self.name}.default")
        if not any(same(default, value) for value in values):
            shown = ", ".join(map(repr, values))
            raise SpaceError(f"{default!r} is not one of {shown}", path=f"{self.name}.default")
        object.__setattr__(self, "default", default)

    @property
    def single(self) -> bool:
        """Whether there is only one value."""
        return len(self.values) == 1

    @property
    def size(self) -> int:
        return len(self.values)

    def at(self, u: float) -> Plain:
        """The value at `u` of the unit interval; 1 itself is the highest value."""
        return self.value(min(int(u * len(self.values)), len(self.values) - 1))

    def position(self, value: object) -> float:
        """The middle of a value's share of the unit interval."""
        return (self.index(value) + 0.5) / len(self.values)

    def value(self, index: int) -> Plain:
        """The value itself; a list is copied, so that nobody can change the space through a configuration."""
        value = self.values[index]
        return copy.deepcopy(value) if isinstance(value, list | dict) else value

    def index(self, value: object) -> int:
        """The position of a value in the list."""
        return next(index for index, known in enumerate(self.values) if same(known, value))

    def contains(self, value: object) -> bool:
        """Whether a value is listed."""
        return any(same(known, value) for known in self.values)

    def levels(self, count: int) -> list[Plain]:
        """All values."""
        return [self.value(index) for index in range(len(self.values))]

    def describe(self) -> str:
        """One line without the name: the values and the default."""
        return f"one of {', '.join(_text(value) for value in self.values)}, default {_text(self.default)}"


@dataclass(frozen=True)
class Constant(Shared):
    """A value that does not vary but belongs to the configuration (under its condition, if it has one)."""

    kind: ClassVar[str] = "constant"
    name: str
    value: Plain

    def __post_init__(self) -> None:
        self._start(self.name)
        object.__setattr__(self, "value", plain(self.value, f"{self.name}.value"))

    single: ClassVar[bool] = True
    size: ClassVar[int] = 1

    @property
    def default(self) -> Plain:
        return copy.deepcopy(self.value)

    def at(self, u: float) -> Plain:
        """The value."""
        return self.default

    def position(self, value: object) -> float:
        """The middle of the unit interval."""
        return 0.5

    def contains(self, value: object) -> bool:
        """Whether this is the value."""
        return same(self.value, value)

    def levels(self, count: int) -> list[Plain]:
        """The value."""
        return [self.default]

    def describe(self) -> str:
        """One line without the name."""
        return f"always {_text(self.value)}"


Parameter: TypeAlias = Float | Int | Choice | Constant


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
