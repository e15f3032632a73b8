"""What may vary: float, int, choice and constant, as frozen values whose bounds are checked at birth.

Every parameter maps a number of the half-open unit interval onto its values (`at`), evenly in the
parameter's own scale, and back (`position`). Random and Sobol search, grids and the libraries that only
know cubes all use that one mapping, so that every algorithm searches the same thing.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, ClassVar, TypeAlias

from search_spaces.errors import SpaceError
from search_spaces.values import UNSET, When, check_name, check_when, number, plain, same, whole

# Values of a grid that are still apart as positions in the unit interval, and whole numbers as floats: 15 digits.
MOST = 10**15


@dataclass(frozen=True, kw_only=True)
class _Shared:
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


class _Numeric(_Shared):
    name: str
    low: Any
    high: Any
    log: bool
    step: Any
    default: Any

    def _check(self, read: Callable[[Any, str], Any]) -> None:
        self._start(self.name)
        for bound in ("low", "high"):
            object.__setattr__(self, bound, read(getattr(self, bound), f"{self.name}.{bound}"))
        if not isinstance(self.log, bool):
            raise SpaceError(f"{self.log!r} must be true or false", path=f"{self.name}.log")
        if self.low > self.high:
            raise SpaceError(
                f"low {self.low!r} is above high {self.high!r}; swap them",
                path=f"{self.name}.low",
            )
        if not math.isfinite(self.high - self.low):
            raise SpaceError(
                f"from {self.low!r} to {self.high!r} is farther than a float goes (1.8e308); narrow the range, or use "
                "a log scale",
                path=f"{self.name}.high",
            )
        if self.log and self.low <= 0:
            raise SpaceError(
                f"{self.low!r} has no logarithm; a log scale needs low > 0 (for instance 1.0e-8), or drop log: true",
                path=f"{self.name}.low",
            )
        if self.step is not None:
            object.__setattr__(self, "step", read(self.step, f"{self.name}.step"))
            self._check_step()
        if self.default is UNSET:
            middle = self.at(0.5)
            short = read(f"{middle:.6g}", "") if self.size is None else middle
            object.__setattr__(self, "default", short if self.contains(short) else middle)
        else:
            object.__setattr__(self, "default", read(self.default, f"{self.name}.default"))
            self._check_default()

    def _check_default(self) -> None:
        if not self.low <= self.default <= self.high:
            raise SpaceError(
                f"{self.default!r} is outside {self.low!r} to {self.high!r}; widen the range or move it",
                path=f"{self.name}.default",
            )
        if not self.contains(self.default):
            raise SpaceError(
                f"{self.default!r} is not on the steps of {self.step!r} from {self.low!r}; "
                f"the nearest is {self.nearest(self.default)!r}",
                path=f"{self.name}.default",
            )

    def _check_step(self) -> None:
        if self.step <= 0:
            raise SpaceError(f"{self.step!r} must be above 0", path=f"{self.name}.step")
        if (self.high - self.low) / self.step > MOST:
            raise SpaceError(
                f"steps of {self.step!r} from {self.low!r} to {self.high!r} are more than {MOST:.0e} values, which no "
                "algorithm tells from a continuum; leave step out",
                path=f"{self.name}.step",
            )
        span = Decimal(repr(self.high)) - Decimal(repr(self.low))
        step = Decimal(repr(self.step))
        if span % step != 0:
            below = Decimal(repr(self.low)) + span // step * step
            raise SpaceError(
                f"steps of {self.step!r} from {self.low!r} miss high {self.high!r}; use high {below} or "
                f"{below + step}, or another step",
                path=f"{self.name}.step",
            )

    @property
    def single(self) -> bool:
        """Whether there is only one value."""
        return bool(self.low == self.high)

    @property
    def size(self) -> int | None:
        """The number of values, or None for a continuum."""
        raise NotImplementedError

    def value(self, index: int) -> Any:
        """The value at a place among those of an int or of a stepped float, from 0."""
        raise NotImplementedError

    def index(self, value: float) -> int:
        """The place of the value nearest to a number, among those of an int or of a stepped float."""
        size = self.size
        assert size is not None
        step = self.step if self.step is not None else 1
        return min(max(round((value - self.low) / step), 0), size - 1)

    def nearest(self, value: float) -> Any:
        """The value nearest to a number, of an int or a stepped float."""
        return self.value(self.index(value))

    def contains(self, value: Any) -> bool:
        raise NotImplementedError

    def at(self, u: float) -> Any:
        raise NotImplementedError

    def levels(self, count: int) -> list[Any]:
        """`count` values evenly spaced in the parameter's scale, both ends included; one level: the default."""
        if self.single:
            return [self.low]
        if self.size is not None and self.size <= count:
            return [self.value(index) for index in range(self.size)]
        if count == 1:
            return [self.default]
        values = [self._along(index / (count - 1)) for index in range(count)]
        return list(dict.fromkeys(values))

    def _along(self, fraction: float) -> Any:
        """The value at a fraction of the way from low to high, both included."""
        if self.log:
            raw = math.exp(math.log(self.low) + fraction * (math.log(self.high) - math.log(self.low)))
        else:
            raw = self.low + fraction * (self.high - self.low)
        raw = min(max(raw, self.low), self.high)
        if self.size is not None:
            return self.nearest(raw)
        return self.low if fraction == 0 else self.high if fraction == 1 else raw

    def _range(self) -> str:
        text = f"{self.kind} {self.low!r} to {self.high!r}"
        text += f", step {self.step!r}" if self.step is not None else ""
        return text + (", log" if self.log else "")

    def describe(self) -> str:
        """One line without the name: the range, the scale and the default."""
        return f"{self._range()}, default {self.default!r}"


@dataclass(frozen=True)
class Float(_Numeric):
    """A real number from `low` to `high`, both included.

    Args:
        name: the key in a configuration.
        low, high: the bounds.
        log: spread evenly in the logarithm (for values whose order of magnitude matters).
        step: only `low`, `low + step`, …; must divide the range.
        default: the value of the default configuration; the middle of the scale if left out.
        when: the condition under which the parameter exists, as in ``{"model": "ridge"}``.
        why, source: a sentence on the range, and where it comes from.

    Raises:
        SpaceError: inverted bounds, a log scale with low <= 0, a step that misses `high`, a default outside.
    """

    kind: ClassVar[str] = "float"
    name: str
    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)
    default: float = field(default=UNSET, kw_only=True)

    def __post_init__(self) -> None:
        self._check(lambda value, path: float(number(value, path)))

    @property
    def size(self) -> int | None:
        if self.single:
            return 1
        return None if self.step is None else round((self.high - self.low) / self.step) + 1

    def value(self, index: int) -> float:
        if self.step is None or index == 0:
            return self.low
        return float(Decimal(repr(self.low)) + index * Decimal(repr(self.step)))

    def at(self, u: float) -> float:
        """The value at `u` of the unit interval; 1 itself is the highest value."""
        if self.single:
            return self.low
        if self.log:
            low = math.log(self.low)
            value = math.exp(low + u * (math.log(self.high) - low))
        elif self.step is not None:
            return self.value(min(int(u * self.size), self.size - 1))  # type: ignore[operator]
        else:
            value = self.low + u * (self.high - self.low)
        value = min(max(value, self.low), self.high)
        return value if self.step is None else self.nearest(value)

    def position(self, value: float) -> float:
        """Where a value lies in the unit interval [0, 1]: the inverse of `at`."""
        if self.single:
            return 0.5
        if self.log:
            low = math.log(self.low)
            return min(max((math.log(value) - low) / (math.log(self.high) - low), 0.0), 1.0)
        if self.step is not None:
            return (self.index(value) + 0.5) / self.size  # type: ignore[operator]
        return (value - self.low) / (self.high - self.low)

    def contains(self, value: Any) -> bool:
        """Whether a value is inside the bounds and on a step."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        return self.step is None or math.isclose(self.nearest(value), value, rel_tol=1e-9, abs_tol=1e-12 * self.step)


@dataclass(frozen=True)
class Int(_Numeric):
    """A whole number from `low` to `high`, both included; arguments as in `Float`."""

    kind: ClassVar[str] = "int"
    name: str
    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int | None = field(default=None, kw_only=True)
    default: int = field(default=UNSET, kw_only=True)

    def __post_init__(self) -> None:
        self._check(_countable)

    @property
    def size(self) -> int:
        return (self.high - self.low) // (self.step or 1) + 1

    def value(self, index: int) -> int:
        return self.low + index * (self.step or 1)

    def at(self, u: float) -> int:
        """The value at `u` of the unit interval; 1 itself is the highest value."""
        if self.log:
            # Half a unit on either side, so that the end points get their share (as Optuna does).
            low = math.log(self.low - 0.5)
            return self.nearest(math.exp(low + u * (math.log(self.high + 0.5) - low)))
        return self.value(min(int(u * self.size), self.size - 1))

    def position(self, value: int) -> float:
        """Where a value lies in the unit interval [0, 1]: the inverse of `at`."""
        if self.log:
            low = math.log(self.low - 0.5)
            return (math.log(value) - low) / (math.log(self.high + 0.5) - low)
        return (self.index(value) + 0.5) / self.size

    def contains(self, value: Any) -> bool:
        """Whether a value is whole, inside the bounds and on a step."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        return value == int(value) and (int(value) - self.low) % (self.step or 1) == 0


def _countable(value: Any, path: str) -> int:
    found = whole(value, path)
    if abs(found) > MOST:
        raise SpaceError(
            f"{found!r} has more than 15 digits, which no algorithm can tell apart; use a float, or a smaller range",
            path=path,
        )
    return found


@dataclass(frozen=True)
class Choice(_Shared):
    """One of the values listed: text, numbers, true/false, null, or lists of them (tuples become lists).

    Args:
        name: the key in a configuration.
        values: at least one, no two equal (1, 1.0 and true count as equal: YAML and Python mix them up).
        default: one of the values; the first if left out.
        when, why, source: as in `Float`.
    """

    kind: ClassVar[str] = "choice"
    name: str
    values: Sequence[Any]
    default: Any = field(default=UNSET, kw_only=True)

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

    def at(self, u: float) -> Any:
        """The value at `u` of the unit interval; 1 itself is the highest value."""
        return self.value(min(int(u * len(self.values)), len(self.values) - 1))

    def position(self, value: Any) -> float:
        """The middle of a value's share of the unit interval."""
        return (self.index(value) + 0.5) / len(self.values)

    def value(self, index: int) -> Any:
        """The value itself; a list is copied, so that nobody can change the space through a configuration."""
        value = self.values[index]
        return copy.deepcopy(value) if isinstance(value, list | dict) else value

    def index(self, value: Any) -> int:
        """The position of a value in the list."""
        return next(index for index, known in enumerate(self.values) if same(known, value))

    def contains(self, value: Any) -> bool:
        """Whether a value is listed."""
        return any(same(known, value) for known in self.values)

    def levels(self, count: int) -> list[Any]:
        """All values."""
        return [self.value(index) for index in range(len(self.values))]

    def describe(self) -> str:
        """One line without the name: the values and the default."""
        return f"one of {', '.join(_text(value) for value in self.values)}, default {_text(self.default)}"


@dataclass(frozen=True)
class Constant(_Shared):
    """A value that does not vary but belongs to the configuration (under its condition, if it has one)."""

    kind: ClassVar[str] = "constant"
    name: str
    value: Any

    def __post_init__(self) -> None:
        self._start(self.name)
        object.__setattr__(self, "value", plain(self.value, f"{self.name}.value"))

    single: ClassVar[bool] = True
    size: ClassVar[int] = 1

    @property
    def default(self) -> Any:
        return copy.deepcopy(self.value)

    def at(self, u: float) -> Any:
        """The value."""
        return self.default

    def position(self, value: Any) -> float:
        """The middle of the unit interval."""
        return 0.5

    def contains(self, value: Any) -> bool:
        """Whether this is the value."""
        return same(self.value, value)

    def levels(self, count: int) -> list[Any]:
        """The value."""
        return [self.default]

    def describe(self) -> str:
        """One line without the name."""
        return f"always {_text(self.value)}"


Parameter: TypeAlias = Float | Int | Choice | Constant


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
