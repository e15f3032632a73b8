"""The JSON Schema of a definition's YAML form, for editors: what `tuning schema` prints.

It is pydantic's own. What only a registry knows is put in place: the names and options of algorithms, schedulers and
rules, and the form of a search space.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

import schedulers
from schedulers.registry import specs
from schedulers.stopping.registry import rules
from search_spaces import algorithms, presets
from search_spaces.schema import DRAFT, definitions, space_schema
from tuning.definition.definition import Definition
from tuning.models.entries import FIELDS
from tuning.models.registry import families

Schema = dict[str, Any]
NOTHING: Schema = {"type": "null"}


def definition_schema() -> Schema:
    """Return a JSON Schema (draft 2020-12) of a definition file.

    What a schema cannot say (columns that exist, options that fit together) is checked when the definition is read.
    """
    schema = Definition.model_json_schema(schema_generator=_Generator)
    parts = schema["$defs"]
    parts |= {**definitions(), "space": space_schema()}
    parts |= {
        "algorithm": _named((name, kind, kind.title) for name, kind in algorithms.registry().items()),
        "scheduler": _named((name, kind, kind.summary) for name, kind in specs().items()),
    }
    space = _any_of({"enum": presets.names()}, _ref("space"), _ref("parameters_by_name"), NOTHING)
    forms = {"search_space": space, "models": _models(), "stop": _any_of(_stop(), NOTHING)}
    for name, form in {**forms, "algorithm": _ref("algorithm"), "scheduler": _ref("scheduler")}.items():
        schema["properties"][name].update(form)
    parts["CustomerOptions"]["properties"]["search_space"].update(space)
    parts["CompareOptions"]["properties"]["algorithms"].update(_compared())
    return {"$schema": DRAFT, **schema, **_any_of({"required": ["target"]}, {"required": ["objective"]})}


class _Generator(GenerateJsonSchema):
    """Leaves out what JSON cannot hold, such as a function or a DataFrame, and titles, which repeat the keys."""

    def handle_invalid_for_json_schema(self, schema: object, error_info: str) -> Schema:
        return {}

    def field_title_should_be_set(self, schema: object) -> bool:
        return False


def _any_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def _ref(part: str) -> Schema:
    return {"$ref": f"#/$defs/{part}"}


def _options(kind: type[BaseModel]) -> Schema:
    """Return the options of an algorithm, scheduler or rule."""
    return {"properties": {}, **kind.model_json_schema(schema_generator=_Generator)}


def _named(kinds: Iterable[tuple[str, type[BaseModel], str]]) -> Schema:
    """Return the form of a name, or of a mapping of name and options; the kinds are name, class and sentence."""
    forms: list[Schema] = []
    for name, kind, sentence in kinds:
        options = _options(kind)
        named = {"properties": {**options["properties"], "name": {"const": name}}}
        required = ["name", *options.get("required", ())]
        forms.append({"const": name, "description": sentence})
        forms.append({**options, **named, "required": required, "description": sentence})
    return _any_of(*forms)


def _models() -> Schema:
    estimator = _any_of({"enum": sorted(families())}, {"type": "string", "pattern": ":"})
    keys = {"type": "object", "properties": {**{name: {} for name in FIELDS}, "estimator": estimator}}
    entry = _any_of(estimator, {**keys, "required": ["estimator"], "additionalProperties": False})
    by_name = {"type": "object", "additionalProperties": entry, "minProperties": 1}
    by_name["propertyNames"] = {"not": {"const": "estimator"}}  # which an entry alone has
    return _any_of(entry, {"type": "array", "items": entry, "minItems": 1}, by_name, NOTHING)


def _stop() -> Schema:
    forms = {}
    for name, kind in rules().items():
        options = _options(kind)
        forms[name] = {"description": kind.summary, **_any_of(options["properties"][kind.short], options)}
    return {"type": "object", "properties": forms, "additionalProperties": False}


def _compared() -> Schema:
    names = "|".join(algorithms.names())
    text = {"type": "string", "pattern": f"^({names})(\\s*\\+\\s*({'|'.join(schedulers.names())}))?$"}
    own = {"label": {"type": "string"}, "scheduler": _ref("scheduler")}
    full = {"type": "object", "properties": {"algorithm": _ref("algorithm"), **own}, "required": ["algorithm"]}
    flat = {"type": "object", "properties": {"name": {"enum": algorithms.names()}, **own}, "required": ["name"]}
    listed = {"type": "array", "items": _any_of(text, {**full, "additionalProperties": False}, flat), "minItems": 2}
    return _any_of({"type": "string"}, listed)
