"""The JSON Schema of a search space's YAML form, for editors and for other programs."""

from __future__ import annotations

from typing import Any

_SCALAR = {"type": ["string", "number", "boolean", "null"]}
_NUMBER = {"type": "number"}
_WHOLE = {"type": "integer"}
_WHEN = {
    "type": "object",
    "description": "Exists only when every parameter named has one of the values given.",
    "minProperties": 1,
    "additionalProperties": {"oneOf": [_SCALAR, {"type": "array", "items": _SCALAR, "minItems": 1}]},
}
_SHARED = {
    "when": _WHEN,
    "why": {"type": "string", "description": "A sentence on the range."},
    "source": {"type": "string", "description": "Where the range comes from."},
    "nested": {
        "type": "array",
        "items": {"type": "string"},
        "description": "The place in a nested configuration (written by the conversion from Ray Tune).",
    },
}


def _kind(kind: str, description: str, required: dict[str, Any], optional: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": {
            "name": {"type": "string"},
            "type": {"const": kind},
            **required,
            **optional,
            **_SHARED,
        },
        "required": ["type", *required],
        "additionalProperties": False,
    }


def _numeric(kind: str, description: str, number: dict[str, Any]) -> dict[str, Any]:
    return _kind(
        kind,
        description,
        {
            "low": {**number, "description": "Lowest value, included."},
            "high": {**number, "description": "Highest value, included."},
        },
        {
            "log": {"type": "boolean", "description": "Spread evenly in the logarithm; needs low > 0."},
            "step": {**number, "exclusiveMinimum": 0, "description": "Must divide the range."},
            "default": {**number, "description": "In the default configuration; the middle if left out."},
        },
    )


def json_schema() -> dict[str, Any]:
    """A JSON Schema (draft 2020-12) of what `SearchSpace.from_dict` accepts.

    What a schema cannot say (a default inside its bounds, conditions on parameters declared before) is
    checked by `from_dict` itself.
    """
    names = {"pattern": r"^[^\W\d][\w-]*$"}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Search space",
        "type": "object",
        "properties": {
            "parameters": {
                "description": "By name, or a list with names where two branches share one.",
                "oneOf": [
                    {
                        "type": "object",
                        "minProperties": 1,
                        "propertyNames": names,
                        "additionalProperties": {"$ref": "#/$defs/parameter"},
                    },
                    {
                        "type": "array",
                        "minItems": 1,
                        "items": {"allOf": [{"$ref": "#/$defs/parameter"}, {"required": ["name"]}]},
                    },
                ],
            },
            "constraints": {
                "type": "array",
                "description": "Functions of a configuration that say whether it may be tried.",
                "items": {"type": "string", "description": "package.module:function"},
            },
        },
        "required": ["parameters"],
        "additionalProperties": False,
        "$defs": {
            "parameter": {
                "oneOf": [
                    _numeric("float", "A real number.", _NUMBER),
                    _numeric("int", "A whole number.", _WHOLE),
                    _kind(
                        "choice",
                        "One of the values listed.",
                        {"values": {"type": "array", "minItems": 1, "uniqueItems": True}},
                        {"default": {"description": "One of the values; the first if left out."}},
                    ),
                    _kind("constant", "A value that does not vary.", {"value": {}}, {}),
                ]
            }
        },
    }
