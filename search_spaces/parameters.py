"""What may vary: float, int, choice and constant, as frozen values whose bounds are checked at birth.

Every parameter maps a number of the half-open unit interval onto its values (`at`), evenly in the
parameter's own scale, and back (`position`). Random and Sobol search, grids and the libraries that only
know cubes all use that one mapping, so that every algorithm searches the same thing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypeAlias

from search_spaces.errors import SpaceError
from search_spaces.numeric import Float, Int
from search_spaces.values import UNSET, ParameterBase, PlainValue, own_copy, plain, same

MOST_VALUES = 10_000  # of a choice; an algorithm that has tried a few hundred knows nothing of more
SHOWN = 50  # of them in a message
_WORD = re.compile(r"(?!(null|true|false|yes|no|on|off|y|n|inf|nan)$)[^\W\d][\w./-]*", re.IGNORECASE)


@dataclass(frozen=True)
class Choice(ParameterBase):
    """One of the values listed: text, numbers, true/false, null, or lists of them (tuples become lists).

    Args:
        name: the key in a configuration.
        values: 1 to 10,000, no two equal (true equals 1; 1 and 1.0 are two values).
        default: one of the values; the first if left out.
        when, why, source: as in `Float`.
    """

    kind: ClassVar[str] = "choice"
    name: str
    values: Sequence[PlainValue]
    default: PlainValue = field(default=UNSET, kw_only=True)
    _places: Mapping[Hashable, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._start(self.name)
        if hasattr(self.values, "tolist"):  # of NumPy or pandas
            object.__setattr__(self, "values", self.values.tolist())
        if isinstance(self.values, str | Mapping) or not isinstance(self.values, Sequence) or not self.values:
            raise SpaceError(f"{self.values!r} must be a list of at least one value", path=f"{self.name}.values")
        if len(self.values) > MOST_VALUES:
            raise SpaceError(
                f"{len(self.values):,} values are more than {MOST_VALUES:,}; use an int or a float with a range, or "
                "leave values out",
                path=f"{self.name}.values",
            )
        values = tuple(plain(value, f"{self.name}.values") for value in self.values)
        places: dict[Hashable, int] = {}
        for index, value in enumerate(values):
            if (before := places.setdefault(_key(value), index)) != index:
                raise SpaceError(
                    f"{value!r} equals {values[before]!r}, listed before; remove one of them",
                    path=f"{self.name}.values.{index}",
                )
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "_places", places)
        default = values[0] if self.default is UNSET else plain(self.default, f"{self.name}.default")
        if not self.contains(default):
            shown = ", ".join(map(repr, values[:SHOWN])) + (", …" if len(values) > SHOWN else "")
            raise SpaceError(f"{default!r} is not one of {shown}", path=f"{self.name}.default")
        object.__setattr__(self, "default", self.value(self.index(default)))

    @property
    def single(self) -> bool:
        """Whether there is only one value."""
        return len(self.values) == 1

    @property
    def size(self) -> int:
        return len(self.values)

    def at(self, u: float) -> PlainValue:
        """Return the value at `u` of the unit interval; 1 itself is the highest value."""
        return self.value(min(int(u * len(self.values)), len(self.values) - 1))

    def position(self, value: object) -> float:
        """Return the middle of a value's share of the unit interval."""
        return (self.index(value) + 0.5) / len(self.values)

    def value(self, index: int) -> PlainValue:
        """Return the value itself; a list is copied, so that nobody can change the space through a configuration."""
        return own_copy(self.values[index])

    def index(self, value: object) -> int:
        """Return the position of a value in the list, which must have it."""
        found = self._place(value)
        assert found is not None
        return found

    def contains(self, value: object) -> bool:
        """Return whether a value is listed."""
        return self._place(value) is not None

    def _place(self, value: object) -> int | None:
        try:
            found = self._places.get(_key(value))
        except TypeError:  # no value that could be listed
            return None
        if found is not None and same(self.values[found], value):
            return found
        return next((index for index, each in enumerate(self.values) if same(each, value)), None)  # 1 for 1.0

    def levels(self, count: int) -> list[PlainValue]:
        """Return all values."""
        return [self.value(index) for index in range(len(self.values))]

    def describe(self) -> str:
        """Return one line without the name: the values and the default."""
        shown = ", ".join(map(_text, self.values[:SHOWN]))
        more = f", … ({len(self.values):,} values)" if len(self.values) > SHOWN else ""
        return f"one of {shown}{more}, default {_text(self.default)}"


@dataclass(frozen=True)
class Constant(ParameterBase):
    """A value that does not vary but belongs to the configuration (under its condition, if it has one)."""

    kind: ClassVar[str] = "constant"
    name: str
    value: PlainValue

    def __post_init__(self) -> None:
        self._start(self.name)
        object.__setattr__(self, "value", plain(self.value, f"{self.name}.value"))

    single: ClassVar[bool] = True
    size: ClassVar[int] = 1

    @property
    def default(self) -> PlainValue:
        return own_copy(self.value)

    def at(self, u: float) -> PlainValue:
        """Return the value."""
        return self.default

    def position(self, value: object) -> float:
        """Return the middle of the unit interval."""
        return 0.5

    def contains(self, value: object) -> bool:
        """Return whether this is the value."""
        return same(self.value, value)

    def levels(self, count: int) -> list[PlainValue]:
        """Return the value."""
        return [self.default]

    def describe(self) -> str:
        """Return one line without the name."""
        return f"always {_text(self.value)}"


Parameter: TypeAlias = Float | Int | Choice | Constant


def _key(value: object) -> Hashable:
    """Return the same for values that are equal, 1 and 1.0 apart; `TypeError` for what no list of values holds."""
    if isinstance(value, list | tuple):
        return tuple(map(_key, value))
    if isinstance(value, Mapping):
        return frozenset((name, _key(item)) for name, item in value.items())
    hash(value)
    return (float, value) if isinstance(value, float) else value


def _text(value: object) -> str:
    """Return a value as YAML has it: a text that would be read as something else is in quotes."""
    return value if isinstance(value, str) and _WORD.fullmatch(value) else json.dumps(value, ensure_ascii=False)
