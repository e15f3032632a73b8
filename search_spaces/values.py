"""Values, names and conditions, plain as JSON so that Python and YAML mean the same, and what all parameters share."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeVar, cast

from search_spaces.errors import SpaceError

T = TypeVar("T")
Scalar: TypeAlias = str | int | float | bool | None
#: A JSON value: what a choice, a constant and a YAML file may hold.
PlainValue: TypeAlias = Scalar | list["PlainValue"] | dict[str, "PlainValue"]
#: Name -> value of the parameters that exist. Training code calculates with the values, so their type stays open.
Configuration: TypeAlias = dict[str, Any]
#: A configuration or a part of one, to be read only.
Point: TypeAlias = Mapping[str, Any]
#: Name -> the value, or the values, under which a parameter exists.
When: TypeAlias = Mapping[str, Any]


class _Unset:
    """No default given (None can be a choice's value)."""

    def __repr__(self) -> str:
        return "UNSET"

    def __reduce__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()  # in place of a value of any type
_NAME = re.compile(r"[^\W\d][\w-]*")
_RESERVED = {
    "eval": "Ray Tune executes a key of that name",
    "grid_search": "Ray Tune expands a key of that name",
}


def check_name(name: object) -> str:
    """Return the name itself, or an error: names are flat keys in Ray, MLflow and Parquet alike."""
    if not isinstance(name, str) or not name:
        raise SpaceError(f"parameter name {name!r} must be a non-empty text", path=str(name))
    if "/" in name or "." in name:
        raise SpaceError(
            "a name must not contain '/' or '.' (Ray and MLflow use them to separate nested keys); "
            f"write {usable_name(name)!r}",
            path=name,
        )
    if not _NAME.fullmatch(name):
        raise SpaceError(
            f"parameter name {name!r} must start with a letter and hold only letters, digits, '_' and '-'; write "
            f"{usable_name(name)!r}",
            path=name,
        )
    if name in _RESERVED:
        raise SpaceError(f"{name!r} cannot name a parameter: {_RESERVED[name]}; rename it", path=name)
    return name


def usable_name(name: object) -> str:
    """Return a name like this one that a parameter may have."""
    clean = re.sub(r"[^\w-]", "_", str(name))
    return clean if _NAME.fullmatch(clean) else f"p_{clean}"


def check_when(when: object) -> dict[str, tuple[Scalar, ...]]:
    """`{"model": "ridge"}` or `{"model": ["ridge", "lasso"]}` as name -> allowed values; all must hold."""
    if not isinstance(when, Mapping):
        raise SpaceError(f"{when!r} is not a condition; write parameter: value, or parameter: [value, …]", path="when")
    result: dict[str, tuple[Scalar, ...]] = {}
    for parent, allowed in when.items():
        values = tuple(allowed) if isinstance(allowed, list | tuple) else (allowed,)
        if not values:
            raise SpaceError("no value allowed, so it can never hold; name at least one", path=f"when.{parent}")
        scalars: list[Scalar] = []
        for value in values:
            found = plain(value, f"when.{parent}")
            if isinstance(found, list | dict):
                raise SpaceError(f"{found!r} cannot be compared; use text or a number", path=f"when.{parent}")
            scalars.append(found)
        result[str(parent)] = tuple(scalars)
    return result


def plain(value: object, path: str) -> PlainValue:
    """Return a JSON value: numpy scalars become Python numbers and tuples become lists; anything else is refused."""
    if value is None or isinstance(value, str | bool):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise SpaceError(f"{value!r} is not a finite number", path=path)
        return float(value)
    if isinstance(value, list | tuple):
        return [plain(item, path) for item in value]
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        for key in _RESERVED.keys() & value.keys():
            raise SpaceError(f"{key!r} cannot be a key in a value: {_RESERVED[key]}; rename it", path=path)
        return {key: plain(item, path) for key, item in value.items()}
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a numpy scalar, without importing numpy
        return plain(value.item(), path)
    raise SpaceError(
        f"{value!r} ({type(value).__name__}) cannot be written to YAML; use text, numbers, true/false, "
        "null or lists of them, and let the training code look the object up by that name",
        path=path,
    )


def own_copy(value: T) -> T:
    """Copy a plain value, or a configuration, so that no list or dict in it is shared with anybody else."""
    if isinstance(value, Mapping):
        return cast(T, {key: own_copy(item) for key, item in value.items()})
    return cast(T, [own_copy(item) for item in value]) if isinstance(value, list) else value


def number(value: object, path: str) -> float | int:
    value = plain(value, path)
    if isinstance(value, str):  # YAML 1.1 readers take 1e-4 for text
        try:
            value = float(value)
        except ValueError:
            raise SpaceError(f"{value!r} is not a number", path=path) from None
        plain(value, path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise SpaceError(f"{value!r} is not a number", path=path)
    if abs(value) > sys.float_info.max:
        raise SpaceError("has more than 308 digits, which is farther than a float goes; narrow the range", path=path)
    return value


def whole(value: object, path: str) -> int:
    found = number(value, path)
    if isinstance(found, float) and not found.is_integer():
        raise SpaceError(f"{found!r} is not a whole number; use a float parameter, or round it", path=path)
    return int(found)


def same(a: object, b: object) -> bool:
    """Equality that keeps true apart from 1."""
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


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
