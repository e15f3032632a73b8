"""The formats of data, found by their files: each module of `tuning.data.formats` with a `FORMAT` is one of files."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from tuning.data import formats as folder
from tuning.data.cells import ReadCsvOptions
from tuning.data.formats.csv_file import CsvSource
from tuning.data.table_source import FileSource
from tuning.errors import DataError
from tuning.storage.names import mask, without_query


@cache
def file_formats() -> tuple[type[FileSource], ...]:
    """Return all formats of files, by the names of their modules."""
    modules = (
        importlib.import_module(f"{folder.__name__}.{found.name}") for found in pkgutil.iter_modules(folder.__path__)
    )
    return tuple(module.FORMAT for module in modules if hasattr(module, "FORMAT"))


@cache
def suffixes() -> tuple[str, ...]:
    """Return how the names of files of data end."""
    return tuple(suffix for each in file_formats() for suffix in each.suffixes)


def format_of(path: str) -> type[FileSource]:
    """Return the format of a file, by its name; an unknown suffix is taken as CSV."""
    name = without_query(path).lower()
    return next((each for each in file_formats() if name.endswith(each.suffixes)), CsvSource)


def file_source(path: str, csv: ReadCsvOptions) -> FileSource:
    """Return a file of data as a source. csv: the definition's options of `pandas.read_csv`."""
    return format_of(path)(path, csv)


def without_suffix(name: str) -> str:
    """Return a file's name without the suffix of its format."""
    for suffix in suffixes():
        if name.lower().endswith(suffix):
            return name[: -len(suffix)]
    return name


def check_writable(path: str) -> None:
    """Raise `DataError` unless the suffix names a format."""
    if not without_query(path).lower().endswith(suffixes()):
        titles = " nor ".join(each.title for each in file_formats())
        raise DataError(f"{mask(path)!r} is neither {titles}; end it in one of {', '.join(suffixes())}.")
