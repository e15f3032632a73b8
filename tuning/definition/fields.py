"""Types of fields with rules of their own: columns, ids, encodings, dates, weights, code."""

from __future__ import annotations

import codecs
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, PositiveFloat, WithJsonSchema

from schedulers import stopping
from tuning.basics.wording import shorten
from tuning.definition.plain_values import IN_MEMORY
from tuning.definition.reach import CODE, PLAIN, PlainText, Reach, References, file_or_uri
from tuning.models.bounds import AUTO, OFF, GivenBounds
from tuning.models.trainers.trainer import is_trainer, maker_of
from tuning.preprocessing.dates import DAY_FIRST, MONTH_FIRST
from tuning.user_code import check_form

NAME = r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}"
MOST_SECONDS = 1e8  # three years
SHIPPED, NO_PORTFOLIO = "shipped", "none"
# Codecs that Python has for text, and no file is written in.
NOT_OF_FILES = ("idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape", "unicode_escape")


def _one_or_many(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    doubled = [name for name, count in Counter(names).items() if count > 1]
    if doubled:
        raise ValueError(f"the column {doubled[0]!r} is named twice; once is enough")
    return names


def _some(names: tuple[str, ...]) -> tuple[str, ...]:
    if not names:
        raise ValueError("the list is empty; leave it out to use all columns")
    return names


def _ids_as_text(value: object) -> object:
    """Return ids as text. 141 in a list is the customer "141"; alone it could be a number of customers."""
    if not isinstance(value, str | list | tuple | None):
        raise ValueError(f"{shorten(repr(value))} is no list of ids; name the customers, such as [acme, 141]")
    return tuple(map(_id_text, (value,) if isinstance(value, str) else value or ()))


def _id_text(value: object) -> object:
    if type(value) is float and value.is_integer():
        return str(int(value))
    return str(value) if type(value) is int or (type(value) is float and math.isfinite(value)) else value


def _once(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _encoding(value: str) -> str:
    try:
        found = codecs.lookup(value).name
        "".encode(value)  # some codecs are not for text, such as rot13
    except (LookupError, ValueError) as error:  # ValueError: a NUL in the name
        raise ValueError(f"{value!r} is not an encoding that Python knows; try utf-8, latin-1 or cp1252") from error
    if found in NOT_OF_FILES:
        raise ValueError(f"{value!r} is not an encoding of files; try utf-8, latin-1 or cp1252")
    return value


def _name(value: str) -> str:
    if not re.fullmatch(NAME, value):
        raise ValueError(
            f"{shorten(value)!r} must begin with a letter or digit and have at most 100 letters (a to z, A to Z), "
            "digits, spaces, '.', '_' and '-'"
        )
    return value


def _dates(value: str) -> str:
    if "%" not in value and value not in (DAY_FIRST, MONTH_FIRST):
        raise ValueError(f"{value!r} is not {DAY_FIRST}, {MONTH_FIRST} or a format such as %d.%m.%Y")
    return value


def _code(value: str) -> str:
    check_form(value)
    return value


def _seconds(value: object) -> object:
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not isinstance(value, str):
        return value
    parts = re.fullmatch(r"\s*(?:(\d+)d)?\s*(?:(\d+)h)?\s*(?:(\d+)m)?\s*(?:(\d+(?:\.\d+)?)s?)?\s*", value.lower())
    if parts is None or not value.strip():
        raise ValueError(f"{shorten(value)!r} is no time; one such as 30s, 15m, 2h, 1h30m, 1d, or seconds, is expected")
    return sum(float(part or 0) * size for part, size in zip(parts.groups(), (86_400, 3600, 60, 1), strict=True))


def _portfolio(value: object) -> object:
    if value is None:
        return NO_PORTFOLIO
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str) and value.strip():
        return value
    if isinstance(value, list | tuple) and value and all(isinstance(config, Mapping) for config in value):
        return tuple(dict(config) for config in value)
    raise ValueError(
        f"{value!r} is no portfolio; {SHIPPED}, {NO_PORTFOLIO}, a file, a run directory or a list of configurations is "
        "expected"
    )


def _of_portfolio(value: object) -> References:
    return iter(()) if not isinstance(value, str) or value in (SHIPPED, NO_PORTFOLIO) else file_or_uri(value)


def _positive(value: object) -> object:
    if value is not None and not isinstance(value, str | int | float | bool):
        raise ValueError(f"{value!r} is not a class; a text, a number, true or false is expected")
    return value


def _bounds(value: object) -> object:
    if value in (AUTO, OFF):
        return value
    ends = tuple(value) if isinstance(value, list | tuple) else ()
    numbers = [end for end in ends if isinstance(end, int | float) and not isinstance(end, bool) and math.isfinite(end)]
    if len(ends) != 2 or len(numbers) + ends.count(None) != 2 or not numbers or sorted(numbers) != numbers:
        raise ValueError(
            f"{shorten(repr(value))} is neither {AUTO} nor {OFF} nor the least and the most number, such as [0, null]"
        )
    return tuple(end if end is None else float(end) for end in ends)


def _class_weight(value: object) -> object:
    if value is None or value == "balanced":
        return value
    if not isinstance(value, Mapping) or not value:
        raise ValueError(f"{value!r} is neither 'balanced' nor a mapping of class to weight")
    for label, weight in value.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < float("inf"):
            raise ValueError(f"the weight of class {label!r} is {weight!r}; a number above 0 is expected")
    return dict(value)


def _objective(value: object) -> object:
    if is_trainer(value):
        return maker_of(value)
    if value is not None and not isinstance(value, str) and not callable(value):
        raise ValueError(f"{value!r} is not a function, nor an import path such as package.module:function")
    if isinstance(value, str) and value != IN_MEMORY:
        check_form(value)
    return value


class StopRules(tuple[stopping.RuleSpec, ...]):
    """Rules that end a trial or a study before its budget is spent, parsed once."""

    @classmethod
    def parse(cls, value: object) -> StopRules | None:
        """Return the rules of a mapping; `SchedulerError` names an unknown rule, option or a wrong value."""
        return value if value is None or isinstance(value, StopRules) else cls(stopping.parse(value))

    def to_dict(self) -> dict[str, object]:
        """Return plain values by the name of the rule."""
        return {rule.name: rule.to_dict() for rule in self}


SomeText: TypeAlias = Annotated[str, Field(min_length=1)]
"""As JSON Schema says it."""
Name: TypeAlias = Annotated[
    str, PLAIN, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^({NAME})$"})
]
"""A name that folders and experiments may have."""
Columns: TypeAlias = Annotated[
    tuple[PlainText, ...],
    BeforeValidator(_one_or_many, json_schema_input_type=str | list[str]),
    AfterValidator(_each_once),
]
"""One column or several, each once."""
SomeColumns: TypeAlias = Annotated[Columns, AfterValidator(_some)]
"""The same, and not none."""
Logger: TypeAlias = Literal["tensorboard", "csv", "json"]
Loggers: TypeAlias = Annotated[
    tuple[Logger, ...],
    BeforeValidator(_one_or_many, json_schema_input_type=Logger | list[Logger]),
    AfterValidator(_once),
]
"""Loggers of Ray Tune, each once."""
Ids: TypeAlias = Annotated[
    tuple[PlainText, ...], BeforeValidator(_ids_as_text, json_schema_input_type=str | list[str | float] | None)
]
"""Ids of customers."""
Encoding: TypeAlias = Annotated[str, PLAIN, AfterValidator(_encoding)]
"""An encoding that files are written in."""
Dates: TypeAlias = Annotated[str, PLAIN, AfterValidator(_dates)]
"""How dates are written."""
TimeBudget: TypeAlias = Annotated[
    float, BeforeValidator(_seconds, json_schema_input_type=PositiveFloat | str), Field(gt=0, le=MOST_SECONDS)
]
"""A time in seconds, or in words such as 30s, 15m and 2h."""
Code: TypeAlias = Annotated[str, CODE, AfterValidator(_code)]
"""Where a function of the user's is, see `tuning.user_code`."""
Portfolio: TypeAlias = Annotated[
    str | tuple[dict[str, object], ...],
    Reach("path", _of_portfolio),
    PlainValidator(
        _portfolio, json_schema_input_type=SomeText | Annotated[list[dict[str, object]], Field(min_length=1)] | None
    ),
]
"""Where the configurations that are tried first come from, or they themselves."""
Positive: TypeAlias = Annotated[PlainText | int | float | bool, BeforeValidator(_positive)]
"""A class, as the data has it."""
TargetBounds: TypeAlias = Annotated[
    GivenBounds,
    PLAIN,
    PlainValidator(_bounds, json_schema_input_type=Literal["auto", "off"] | tuple[float | None, float | None]),
]
"""Between which numbers a regression answers."""
ClassWeight: TypeAlias = Annotated[
    Literal["balanced"] | dict[str | int | float | bool, float] | None,
    PLAIN,
    PlainValidator(
        _class_weight,
        json_schema_input_type=Literal["balanced"] | Annotated[dict[str, PositiveFloat], Field(min_length=1)] | None,
    ),
]
"""Weights of the classes; None is the default of the field."""
GivenObjective: TypeAlias = Annotated[
    Callable[..., object] | str | None,
    CODE,
    PlainValidator(_objective, json_schema_input_type=Annotated[str, Field(pattern=":")] | None),
]
"""What is tuned in place of models."""
Stop: TypeAlias = Annotated[StopRules | None, PLAIN, PlainValidator(StopRules.parse)]
"""Stopping rules; None is the default of the field."""
