"""What a program may give for a definition, and the definition that it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
from pydantic import BaseModel

from tuning.basics.wording import amount, shorten
from tuning.definition.definition import Definition, define
from tuning.definition.yaml_file import read_definition
from tuning.errors import DefinitionError
from tuning.storage.names import mask_in


def keys_of(definition: Definition) -> dict[str, object]:
    """Return the keys that were given, with their checked values."""
    return {name: getattr(definition, name) for name in definition.model_fields_set}


def definition_of(given: object, fields: Mapping[str, object]) -> Definition:
    """Return the given definition with these fields in place of its own; `DefinitionError` says what is wrong.

    given: a `Definition`, what has one (a runner), a mapping of its keys, a YAML file's path, or None.
    """
    if given is None:
        return define(fields)
    if isinstance(given, str | Path):
        return read_definition(given, dict(fields))
    if isinstance(given, Mapping):
        return define({**given, **fields})
    found = given if isinstance(given, Definition) else getattr(given, "definition", None)
    if not isinstance(found, Definition):
        raise DefinitionError(
            f"a {type(given).__name__} is not a definition. Give its keys by name, such as data=frame, "
            "target='churned'; or a mapping of them, or a YAML file."
        )
    return define({**keys_of(found), **fields}) if fields else found


def changed(definition: Definition, changes: Mapping[str, object]) -> Definition:
    """Return the definition with these changes; of a part, such as `limits`, only the given fields change."""
    return definition_of(definition, {name: _within(definition, name, value) for name, value in changes.items()})


def _within(definition: Definition, name: str, value: object) -> object:
    part = getattr(definition, name, None)
    return {**part.model_dump(), **value} if isinstance(value, Mapping) and isinstance(part, BaseModel) else value


def signature(function: Callable[..., object] | None = None) -> inspect.Signature:
    """That of a function which takes keys of a definition: what an editor offers. What a default of several values is,
    `keys_help` says.

    function: that takes them behind its own parameters; by default one that takes a definition or its keys.
    """
    kind = inspect.Parameter
    own = [kind("definition", kind.POSITIONAL_OR_KEYWORD, default=None), kind("fixed", kind.KEYWORD_ONLY, default={})]
    if function is not None:
        own = [each for each in inspect.signature(function).parameters.values() if each.kind is not kind.VAR_KEYWORD]
    keys = [
        kind(name, kind.KEYWORD_ONLY, default=... if isinstance(field.default, BaseModel) else field.default)
        for name, field in Definition.model_fields.items()
    ]
    return inspect.Signature([*own, *keys])


def keys_help() -> str:
    """Return the keys with their descriptions, for the docstring that a notebook shows for `TuneRunner?`."""
    return "\n".join(
        f"    {name}: {' '.join((field.description or '').split())}" for name, field in Definition.model_fields.items()
    )


def definition_arguments(definition: Definition) -> str:
    """Return the given keys as arguments in Python; long values are cut and secrets masked."""
    return ", ".join(f"{name}={shorten(mask_in(_short(value)), 60)}" for name, value in definition.to_dict().items())


def _short(value: object) -> str:
    if isinstance(value, pd.DataFrame):
        return f"<DataFrame of {amount(len(value), 'row')}>"
    if isinstance(value, Mapping) and any(isinstance(item, pd.DataFrame) for item in value.values()):
        return f"<{amount(len(value), 'frame')}>"
    return repr(value)
