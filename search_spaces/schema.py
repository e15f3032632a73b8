"""The JSON Schema of a search space's YAML form, for editors and for other programs."""

from __future__ import annotations

from typing import Any

from search_spaces.documents import KINDS
from search_spaces.parameters import MOST_VALUES

# A JSON Schema, or a part of one.
Schema = dict[str, Any]

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
_ABOUT = {
    "float": "A real number.",
    "int": "A whole number.",
    "choice": "One of the values listed.",
    "constant": "A value that does not vary.",
}
_FIELDS: dict[str, Schema] = {
    "low": {"description": "Lowest value, included."},
    "high": {"description": "Highest value, included."},
    "log": {"type": "boolean", "description": "Spread evenly in the logarithm; needs low > 0."},
    "step": {"exclusiveMinimum": 0, "description": "Must divide the range."},
    "default": {"description": "Value in the default configuration. If left out: the middle, or the first value."},
    "cheap": {"enum": ["low", "high"], "description": "The end of the range at which training takes the least time."},
    "values": {"type": "array", "minItems": 1, "maxItems": MOST_VALUES, "uniqueItems": True},
    "value": {},
    "when": {
        "type": "object",
        "description": "Exists only when every parameter named has one of the values given.",
        "minProperties": 1,
        "additionalProperties": {"oneOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]},
    },
    "why": {"type": "string", "description": "A sentence on the range."},
    "source": {"type": "string", "description": "Where the range comes from."},
    "nested": {
        "type": "array",
        "items": {"type": "string"},
        "description": "The place in a nested configuration (written by the conversion from Ray Tune).",
    },
}
_NUMBERS = {"float": "number", "int": "integer"}


def _kind(kind: str) -> Schema:
    """Return the schema of one type of parameter, with the fields that `documents.KINDS` gives it."""
    _, required, optional = KINDS[kind]
    fields = {name: _FIELDS[name] for name in (*required, *optional)}
    if kind in _NUMBERS:
        number = {"type": _NUMBERS[kind]}
        fields |= {name: {**number, **_FIELDS[name]} for name in ("low", "high", "step", "default")}
    return {
        "type": "object",
        "description": _ABOUT[kind],
        "properties": {"name": {"type": "string"}, "type": {"const": kind}, **fields},
        "required": ["type", *required],
        "additionalProperties": False,
    }


def definitions() -> dict[str, Schema]:
    """Return the parts that `space_schema` refers to, for the `$defs` of a schema that holds it."""
    return {
        "parameter": {"oneOf": [_kind(kind) for kind in KINDS]},
        "parameters_by_name": {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"pattern": r"^[^\W\d][\w-]*$"},
            "additionalProperties": {"$ref": "#/$defs/parameter"},
        },
    }


def space_schema() -> Schema:
    """Return a search space without the parts it refers to, see `definitions`."""
    constraint = {"type": "string", "description": "package.module:function"}
    return {
        "type": "object",
        "properties": {
            "parameters": {
                "description": "By name, or a list with names where two branches share one.",
                "oneOf": [
                    {"$ref": "#/$defs/parameters_by_name"},
                    {
                        "type": "array",
                        "minItems": 1,
                        "items": {"allOf": [{"$ref": "#/$defs/parameter"}, {"required": ["name"]}]},
                    },
                ],
            },
            "constraints": {
                "description": "Functions of a configuration that say whether it may be tried.",
                "oneOf": [constraint, {"type": "array", "items": constraint}],
            },
        },
        "required": ["parameters"],
        "additionalProperties": False,
    }


def json_schema() -> Schema:
    """Return a JSON Schema (draft 2020-12) of what `SearchSpace.from_dict` accepts.

    What a schema cannot say (a default inside its bounds, conditions on parameters declared before) is
    checked by `from_dict` itself.
    """
    return {"$schema": DRAFT, "title": "Search space", **space_schema(), "$defs": definitions()}
