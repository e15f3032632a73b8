"""A manifest: a file that lists customers, each with the path of its rows and its overrides.

YAML or JSON holds a mapping of id to path, or of id to `{path, search_space, trials, resources, placement}`. CSV or
Parquet has one row per customer with the columns `customer` and, as needed, `path`, `search_space` (a preset's name),
`trials`, `placement`, `cpus`, `gpus`, `memory_gb`. Relative paths are meant from the manifest's folder. Without paths a
manifest only gives overrides for customers that the definition's `data` finds.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from tuning.basics.wording import shorten
from tuning.data.cells import with_missing
from tuning.data.column_types import concatenated, to_frame
from tuning.data.file_access import content_of
from tuning.data.registry import file_source
from tuning.definition.data_source import of_customers
from tuning.definition.options import CustomerOptions, customer_options
from tuning.definition.yaml_file import load_yaml
from tuning.errors import CustomerError, DataError, DefinitionError
from tuning.storage.data_roots import EVERYWHERE, VARIABLE, DataRoots
from tuning.storage.names import is_uri, mask, without_query

CUSTOMER = "customer"
RESOURCES = ("cpus", "gpus", "memory_gb")


def read_manifest(path: str) -> dict[str, CustomerOptions]:
    """Read the entries of a manifest by customer id; `DataError` names the entry that is wrong."""
    entries = _entries(path)
    if DataRoots.of_process() != EVERYWHERE:
        _check_plain(entries)
    return {name: _options(name, value, path) for name, value in entries.items()}


def _check_plain(entries: Mapping[str, object]) -> None:
    """Raise `DataError` where a manifest names code, which would be imported, or a file that a library opens by itself.

    A manifest is data, which others may write than those who say what code is run.
    """
    for found in of_customers(entries):
        if found.kind == "code" or (found.kind == "parameter" and found.text):
            what = "code" if found.kind == "code" else "a file or an address"
            raise DataError(
                f"manifest: {found.key}: {shorten(repr(found.text))} is {what}, which no manifest may name where "
                f"{VARIABLE} is set. Write it into the definition's search_space."
            )


def _entries(path: str) -> Mapping[str, object]:
    entries = _documents(path) if without_query(path).lower().endswith((".yaml", ".yml", ".json")) else _rows(path)
    if not entries:
        raise DataError(f"manifest: {mask(path)} names no customer.")
    return entries


def _placed(manifest: str, path: str) -> str:
    """Return a path that a manifest names; a relative one is resolved from its folder."""
    if is_uri(path) or os.path.isabs(os.path.expanduser(path)):
        return path
    return _beside(manifest, path)


def _beside(manifest: str, path: str) -> str:
    """Resolve a relative path from the manifest's folder; on object storage with the options of the manifest's URI."""
    if not is_uri(manifest):
        return f"{Path(manifest).resolve().parent}/{path}"
    address = without_query(manifest)
    return f"{address.rpartition('/')[0]}/{path}{manifest[len(address) :]}"


def _documents(path: str) -> Mapping[str, object]:
    try:
        text = content_of(path).decode("utf-8")
    except CustomerError as error:
        raise DataError(f"manifest: {error}") from error
    except UnicodeDecodeError as error:
        raise DataError(f"manifest: {mask(path)!r} cannot be read: {error}.") from error
    if without_query(path).lower().endswith(".json"):
        text = _PAIR.sub(_as_character, text)
    try:
        return {str(name): value for name, value in load_yaml(text, f"the manifest {mask(path)}").items()}
    except DefinitionError as error:
        raise DataError(str(error)) from error


# JSON may write a character such as an emoji as a pair of surrogates, which YAML refuses; or a backslash as two.
_PAIR = re.compile(r"\\\\|\\u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})", re.IGNORECASE)


def _as_character(found: re.Match[str]) -> str:
    return bytes.fromhex(f"{found[1]}{found[2]}").decode("utf-16-be") if found[1] else found[0]


def _rows(path: str) -> Mapping[str, object]:
    try:
        source = file_source(path, {})
        texts = [name for name in source.columns() if name in (CUSTOMER, "path", "search_space", "placement")]
        frame = to_frame(with_missing(concatenated(list(source.pieces(texts))), {}))
    except CustomerError as error:
        raise DataError(f"manifest: {error}") from error
    if CUSTOMER not in frame.columns:
        raise DataError(f"manifest: {mask(path)!r} has no column {CUSTOMER!r}; there are {', '.join(frame.columns)}.")
    known = {CUSTOMER, "path", "search_space", "trials", "placement", *RESOURCES}
    strangers = [name for name in frame.columns if name not in known]
    if strangers:
        raise DataError(f"manifest: unknown column {strangers[0]!r}. Allowed: {', '.join(sorted(known))}.")
    doubled = frame[CUSTOMER][frame[CUSTOMER].duplicated()]
    if len(doubled):
        raise DataError(f"manifest: two rows name the customer {doubled.iloc[0]!r}; keep one.")
    entries: dict[str, object] = {}
    for row in frame.to_dict("records"):
        given = {str(name): _item(value) for name, value in row.items() if value == value and value not in (None, "")}
        resources = {name: given.pop(name) for name in RESOURCES if name in given}
        name = str(given.pop(CUSTOMER, ""))
        if not name:
            raise DataError(f"manifest: row {len(entries) + 1} has no {CUSTOMER}.")
        entries[name] = {**given, **({"resources": resources} if resources else {})}
    return entries


def _item(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)  # a column of whole numbers with gaps
    return value.item() if hasattr(value, "item") else value


def _options(name: str, value: object, manifest: str) -> CustomerOptions:
    given = {"path": value} if isinstance(value, str) else value
    if not isinstance(given, Mapping):
        raise DataError(
            f"manifest: customer {name!r} is {value!r}; a path or a mapping of path and options is expected."
        )
    try:
        options = customer_options(given)
    except DefinitionError as error:
        raise DataError(f"manifest: customer {name!r}: {error}") from error
    return options if options.path is None else options.model_copy(update={"path": _placed(manifest, options.path)})
