"""The `data` of a definition: where the rows are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import PlainValidator

from tuning.basics.wording import encodable, shorten
from tuning.definition.options import CustomerOptions, customer_options
from tuning.definition.reach import Reach, References, file_or_uri
from tuning.errors import DefinitionError

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = object  # pandas is imported by whoever gives one, and not to read a definition


def parse_data(value: object) -> object:
    """Return checked `data`: paths as text, tables of pyarrow and polars as pandas frames, entries as checked options.

    Raises:
        ValueError: not one of the forms of `DataSource`, or an entry with an unknown key or a wrong value.
    """
    value = _as_frame(value)
    if value is None or hasattr(value, "columns"):
        return value
    if isinstance(value, Mapping):
        named: dict[str, object] = {}
        for customer, item in value.items():
            name = encodable(str(customer))
            if name in named:
                raise ValueError(f"two customers have the id {name!r}, as text; rename one")
            named[name] = _entry(name, item)
        return named
    value = str(value) if isinstance(value, Path) else value
    several = isinstance(value, list | tuple) and all(isinstance(item, str | Path) for item in value)
    if not (isinstance(value, str) or several) or not value:
        shown = shorten(" ".join(repr(value).split()))
        raise ValueError(f"{shown} is not a glob, a file, a folder, a list of these, a mapping or a DataFrame")
    return value


def _entry(customer: str, value: object) -> object:
    """Return a checked value of a mapping of customers."""
    if isinstance(value, Mapping):
        try:
            return customer_options(value)
        except DefinitionError as error:
            raise ValueError(f"customer {customer!r}: {error}") from None
    entry = str(value) if isinstance(value, Path) else _as_frame(value)
    if not (entry is None or isinstance(entry, str | CustomerOptions) or hasattr(entry, "columns")):
        raise ValueError(
            f"customer {customer!r}: a path, a mapping or a DataFrame is expected, not {type(value).__name__}"
        )
    return entry


def _as_frame(value: object) -> object:
    if not hasattr(value, "columns"):
        return value
    from tuning.preprocessing.shapes import to_frame  # with pandas

    return to_frame(value)


def of_customers(value: object) -> References:
    """Yield what `data`, or a manifest's entries by customer, name outside."""
    if not isinstance(value, Mapping):
        yield from file_or_uri(value)
        return
    for customer, item in value.items():
        found = CustomerOptions.references(item) if isinstance(item, Mapping) else file_or_uri(item)
        yield from (each.below(str(customer)) for each in found)


DataSource: TypeAlias = Annotated[
    str | list[str] | tuple[str, ...] | dict[str, str | CustomerOptions | DataFrame] | DataFrame | None,
    Reach("path", of_customers),
    PlainValidator(parse_data, json_schema_input_type=str | list[str] | dict[str, str | CustomerOptions] | None),
]
"""A glob, file or folder; several of them; a mapping of customer to file, options or frame; or one frame."""
