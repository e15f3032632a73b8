"""The key `objective`, and the keys that have no effect with it."""

from __future__ import annotations

from collections.abc import Iterable

from tuning.definition.complaints import KeyedError
from tuning.definition.options import Options
from tuning.definition.plain_values import IN_MEMORY
from tuning.models.trainers.trainer import is_trainer, maker_of
from tuning.user_code import check_form

#: Keys of models; an objective is tuned without them.
OF_MODELS = (
    *(
        "models",
        "features",
        "drop",
        "weight",
        "class_weight",
        "positive",
        "dates",
        "min_rows",
        "task",
        "bounds",
        "split",
    ),
    *("winner", "ensemble", "pool", "final_fit", "allow_code"),
)
#: Keys of rows; without data there are none.
OF_DATA = ("by", "prepare", "encoding", "csv")


def parse_objective(value: object) -> object:
    """Return an objective as a definition holds it; `ValueError` for what is none."""
    if is_trainer(value):
        return maker_of(value)
    if value is not None and not isinstance(value, str) and not callable(value):
        raise ValueError(f"{value!r} is not a function, nor an import path such as package.module:function")
    if isinstance(value, str) and value != IN_MEMORY:
        check_form(value)
    return value


def check_form_of(key: str, code: str) -> None:
    """Raise `ValueError` under a key for what is no place of code."""
    try:
        check_form(code)
    except ValueError as error:
        raise KeyedError(key, f"{error}") from error


def set_keys(given: Options, keys: Iterable[str]) -> list[str]:
    """Return those of the keys with another value than the default."""
    fields = type(given).model_fields
    return [key for key in keys if getattr(given, key) != fields[key].get_default(call_default_factory=True)]
