"""Numbers that may vary: float and int, linear, log or in steps."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import ClassVar, Generic, TypeVar

from search_spaces.errors import SpaceError
from search_spaces.values import UNSET, ParameterBase, number, whole

# Values of a grid that are still apart as positions in the unit interval, and whole numbers as floats: 15 digits.
MOST = 10**15

ENDS = ("low", "high")

Number = TypeVar("Number", int, float)


class _Numeric(ParameterBase, ABC, Generic[Number]):
    name: str
    low: Number
    high: Number
    log: bool
    step: Number | None
    default: Number
    cheap: str | None

    def _check(self, read: Callable[[object, str], Number]) -> None:
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
                f"from {self.low!r} to {self.high!r} is farther than a float goes (1.8e308); narrow the range",
                path=f"{self.name}.high",
            )
        if self.log and self.low <= 0:
            lows = (low for low in (1e-8, 1, self.high / 1000) if low > 0 and self._works(low, self.high))
            said = next((f" (for instance {low!r})" for low in lows), "")
            raise SpaceError(
                f"{self.low!r} has no logarithm; a log scale needs low > 0{said}, or drop log: true",
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
        if self.cheap not in (None, *ENDS):
            raise SpaceError(f"{self.cheap!r} must be 'low' or 'high'", path=f"{self.name}.cheap")

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
        assert self.step is not None
        if self.step <= 0:
            raise SpaceError(f"{self.step!r} must be above 0", path=f"{self.name}.step")
        if (self.high - self.low) / self.step > MOST:
            raise SpaceError(
                f"steps of {self.step!r} from {self.low!r} to {self.high!r} are more than {MOST:.0e} values, which no "
                "algorithm tells from a continuum; leave step out",
                path=f"{self.name}.step",
            )
        places = (self.high - self.low) / self.step
        # Bounds and steps such as pi / 2 are rounded in their last digits.
        rounded = 1e-9 * self.step + 4 * math.ulp(max(abs(self.low), abs(self.high)))
        if abs(self.high - self.low - round(places) * self.step) > min(rounded, self.step / 4):
            highs = (self._decimal(math.floor(places) + more) for more in (0, 1))
            use = " or ".join(repr(high) for high in highs if high > self.low and self._works(self.low, high))
            raise SpaceError(
                f"steps of {self.step!r} from {self.low!r} miss high {self.high!r}; "
                f"{f'use high {use}, or' if use else 'use'} another step",
                path=f"{self.name}.step",
            )

    def _decimal(self, index: int) -> Number:
        """Return a place among the steps, as one would write it: .3 and not .30000000000000004."""
        return type(self.low)(Decimal(repr(self.low)) + index * Decimal(repr(self.step)))

    def _works(self, low: float, high: float) -> bool:
        """Return whether the same parameter with these bounds is accepted, so that they can be advised."""
        try:
            replace(self, low=low, high=high)  # type: ignore[call-arg]  # of both subclasses
        except SpaceError:
            return False
        return True

    @property
    def cheapest(self) -> Number | None:
        """The value with which training takes the least time; None where that is not known."""
        return None if self.cheap is None else self.low if self.cheap == "low" else self.high

    @property
    def single(self) -> bool:
        """Whether there is only one value."""
        return bool(self.low == self.high)

    @property
    @abstractmethod
    def size(self) -> int | None:
        """The number of values, or None for a continuum."""

    @abstractmethod
    def value(self, index: int) -> Number:
        """Return the value at a place among those of an int or of a stepped float, from 0."""

    def index(self, value: float) -> int:
        """Return the place of the value nearest to a number, among those of an int or of a stepped float."""
        size = self.size
        assert size is not None
        step = self.step if self.step is not None else 1
        return min(max(round((value - self.low) / step), 0), size - 1)

    def nearest(self, value: float) -> Number:
        """Return the value nearest to a number, of an int or a stepped float."""
        return self.value(self.index(value))

    @abstractmethod
    def contains(self, value: object) -> bool:
        """Return whether it is one of the values."""

    @abstractmethod
    def at(self, u: float) -> Number:
        """Return the value for a number of the half-open unit interval."""

    def levels(self, count: int) -> list[Number]:
        """`count` values evenly spaced in the parameter's scale, both ends included; one level: the default."""
        if self.single:
            return [self.low]
        if self.size is not None and self.size <= count:
            return [self.value(index) for index in range(self.size)]
        if count == 1:
            return [self.default]
        values = [self._along(index / (count - 1)) for index in range(count)]
        return list(dict.fromkeys(values))

    def _along(self, fraction: float) -> Number:
        """Return the value at a fraction of the way from low to high, both included."""
        if self.log:
            raw = math.exp(math.log(self.low) + fraction * (math.log(self.high) - math.log(self.low)))
        else:
            raw = self.low + fraction * (self.high - self.low)
        raw = min(max(raw, self.low), self.high)
        if self.size is not None:
            return self.nearest(raw)
        return self.low if fraction == 0 else self.high if fraction == 1 else type(self.low)(raw)

    def _range(self) -> str:
        text = f"{self.kind} {self.low!r} to {self.high!r}"
        text += f", step {self.step!r}" if self.step is not None else ""
        return text + (", log" if self.log else "")

    def describe(self) -> str:
        """Return one line without the name: the range, the scale and the default."""
        return f"{self._range()}, default {self.default!r}"


@dataclass(frozen=True)
class Float(_Numeric[float]):
    """A real number from `low` to `high`, both included.

    Args:
        name: the key in a configuration.
        low, high: the bounds.
        log: spread evenly in the logarithm (for values whose order of magnitude matters).
        step: only `low`, `low + step`, …; must divide the range.
        default: the value of the default configuration; the middle of the scale if left out.
        cheap: "low" or "high", the end of the range at which training takes the least time, for algorithms that begin
            there; it is no part of what algorithms draw from.
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
    cheap: str | None = field(default=None, kw_only=True, compare=False)

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
        return self.high if index == self.size - 1 else self._decimal(index)  # type: ignore[operator]  # as in `at`

    def at(self, u: float) -> float:
        """Return the value at `u` of the unit interval; 1 itself is the highest value."""
        if self.single:
            return self.low
        if self.log:
            low = math.log(self.low)
            value = math.exp(low + u * (math.log(self.high) - low))
        elif self.step is not None:
            return self.value(min(int(u * self.size), self.size - 1))  # type: ignore[operator]  # a step gives it a size
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
            return (self.index(value) + 0.5) / self.size  # type: ignore[operator]  # a step gives it a size
        return (value - self.low) / (self.high - self.low)

    def contains(self, value: object) -> bool:
        """Return whether a value is inside the bounds and on a step."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        return self.step is None or math.isclose(self.nearest(value), value, rel_tol=1e-9, abs_tol=1e-12 * self.step)


@dataclass(frozen=True)
class Int(_Numeric[int]):
    """A whole number from `low` to `high`, both included; arguments as in `Float`."""

    kind: ClassVar[str] = "int"
    name: str
    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int | None = field(default=None, kw_only=True)
    default: int = field(default=UNSET, kw_only=True)
    cheap: str | None = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        self._check(_countable)

    @property
    def size(self) -> int:
        return (self.high - self.low) // (self.step or 1) + 1

    def value(self, index: int) -> int:
        return self.low + index * (self.step or 1)

    def at(self, u: float) -> int:
        """Return the value at `u` of the unit interval; 1 itself is the highest value."""
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

    def contains(self, value: object) -> bool:
        """Return whether a value is whole, inside the bounds and on a step."""
        if isinstance(value, bool) or not isinstance(value, int | float) or not self.low <= value <= self.high:
            return False
        return value == int(value) and (int(value) - self.low) % (self.step or 1) == 0


def _countable(value: object, path: str) -> int:
    found = whole(value, path)
    if abs(found) > MOST:
        raise SpaceError(
            f"{found!r} has more than 15 digits, which no algorithm can tell apart; use a float, or a smaller range",
            path=path,
        )
    return found
