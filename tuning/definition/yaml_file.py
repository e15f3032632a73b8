"""A definition as a file: YAML read safely, paths relative to the file's folder, values overridden by the caller."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from pathlib import Path

from search_spaces import SpaceError
from search_spaces.yaml_text import parse_yaml
from tuning.basics.wording import amount, command, shorten
from tuning.definition.definition import Definition, define
from tuning.definition.fields import NO_PORTFOLIO, SHIPPED
from tuning.errors import DefinitionError
from tuning.user_code import is_file

MAX_YAML_BYTES = 4_000_000
EXAMPLE = "`trials: 20`"


def load_yaml(text: str, where: str = "the definition", most: int | None = MAX_YAML_BYTES) -> dict[str, object]:
    """Return YAML as plain values; tags, aliases and keys given twice are refused (`search_spaces.yaml_text`).

    most: characters; None is no limit, for what a run has written itself.
    """
    if most is not None and len(text) > most:
        raise DefinitionError(
            f"{where} has {amount(len(text), 'character')}, more than {most}. Many customers have room in a manifest "
            "that is CSV or Parquet."
        )
    try:
        values = parse_yaml(text, where)
    except SpaceError as error:
        raise DefinitionError(f"{error}.") from error
    if not isinstance(values, dict):
        if isinstance(values, str) and where.endswith((".csv", ".parquet", ".pq")):
            raise DefinitionError(
                f"{where} holds data; `{command('init', where, '--target', 'COLUMN')}` writes a definition for it."
            )
        said = "is empty" if values is None else f"holds {shorten(repr(values), 60)}"
        raise DefinitionError(f"{where} {said}; keys and values are expected, such as {EXAMPLE}.")
    return values


def read_values(path: str | Path) -> dict[str, object]:
    """Return the values of a YAML file."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        wide = error.object.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        what = "UTF-16 text" if wide else f"no UTF-8 text ({error.reason} at byte {error.start})"
        raise DefinitionError(f"{str(path)!r} is {what}; save it as UTF-8.") from error
    except OSError as error:
        raise DefinitionError(f"{str(path)!r} cannot be read: {error}.") from error
    return load_yaml(text, str(path))


def read_definition(path: str | Path, overrides: Mapping[str, object] | None = None) -> Definition:
    """Read a definition from a YAML file; relative paths are relative to the file's folder."""
    source = Path(path)
    folder = source.resolve().parent
    values = {key: _from_folder(key, value, folder) for key, value in read_values(source).items()}
    if "name" not in values:
        values["name"] = re.sub(r"[^A-Za-z0-9 ._-]+", "-", source.stem).strip(" ._-")[:100] or "search"
    return define(merged(values, overrides or {}))


# The key that a plain value is short for: `algorithm: optuna`, `split: time`.
SHORT_FOR = {"algorithm": "name", "scheduler": "name", "split": "type"}
DEFAULTS = {key: Definition.model_fields[key].default for key in ("algorithm", "scheduler")}


def merged(values: Mapping[str, object], overrides: Mapping[str, object]) -> dict[str, object]:
    """Return the values with overrides: mappings are merged key by key, lists and all else replaced.

    Options alone, without a name, are those of what the values name, or of the default.
    """
    result = dict(values)
    for key, value in overrides.items():
        before = result.get(key)
        if before is None and key in DEFAULTS and isinstance(value, Mapping) and SHORT_FOR[key] not in value:
            before = DEFAULTS[key]
        if isinstance(before, str) and isinstance(value, Mapping) and key in SHORT_FOR:
            before = {SHORT_FOR[key]: before}
        result[key] = value
        if isinstance(before, Mapping) and isinstance(value, Mapping) and key != "data":
            name = SHORT_FOR.get(key)
            # Another name means other options.
            if name is None or value.get(name, before.get(name)) == before.get(name):
                result[key] = merged(before, value)
    return result


def _from_folder(key: str, value: object, folder: Path) -> object:
    if key in ("data", "storage", "manifest") and isinstance(value, str) and value:
        return _absolute(value, folder)
    if key == "data" and isinstance(value, list):
        return [_absolute(item, folder) if isinstance(item, str) else item for item in value]
    if key == "data" and isinstance(value, dict):
        return {name: _entry_from(item, folder) for name, item in value.items()}
    if key == "portfolio" and isinstance(value, str) and value not in (SHIPPED, NO_PORTFOLIO):
        return _absolute(value, folder)
    if key == "models":
        return _models_from(value, folder)
    if key in ("prepare", "metric", "objective") and isinstance(value, str) and is_file(value):
        file, _, function = value.partition(":")
        return f"{_absolute(file, folder)}:{function}"
    return value


def _models_from(value: object, folder: Path) -> object:
    """`models` with every `file.py:factory` relative to a folder."""
    if isinstance(value, str):
        return _from_folder("prepare", value, folder)
    if isinstance(value, list):
        return [_models_from(item, folder) for item in value]
    if isinstance(value, dict):
        return {name: _models_from(item, folder) if _is_path(name, value) else item for name, item in value.items()}
    return value


def _is_path(name: str, entry: Mapping[str, object]) -> bool:
    return name == "estimator" or "estimator" not in entry


def _entry_from(item: object, folder: Path) -> object:
    if isinstance(item, dict) and isinstance(item.get("path"), str):
        return {**item, "path": _absolute(item["path"], folder)}
    return _absolute(item, folder) if isinstance(item, str) else item


def _absolute(path: str, folder: Path) -> str:
    return path if "://" in path or Path(path).expanduser().is_absolute() else str(folder / path)
