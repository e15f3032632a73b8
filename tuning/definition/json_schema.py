"""The JSON Schema of a definition's YAML form, for editors: what `tuning schema` prints.

Types, bounds, defaults and descriptions come from the fields themselves. Here is what pydantic cannot see, because the
program's own code parses it: short forms, and names and options from the registries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

import schedulers
from schedulers.registry import specs
from schedulers.stopping.registry import rules
from search_spaces import algorithms, presets
from search_spaces.schema import DRAFT, definitions, space_schema
from tuning.definition.definition import Definition
from tuning.definition.fields import NAME, Logger
from tuning.definition.options import RECORD_TRIALS, Options
from tuning.models.bounds import AUTO, OFF
from tuning.models.entries import INPUTS
from tuning.models.registry import families
from tuning.models.worker_group import RECOVERIES

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
NOTHING: Schema = {"type": "null"}
ONE_OR_MANY: Schema = {"anyOf": [TEXT, TEXTS]}
LOGGERS: Schema = {"enum": list(get_args(Logger))}
IDS: Schema = {"type": ["string", "number"]}
IMPORT_PATH: Schema = {"type": "string", "pattern": ":", "description": "package.module:name, or file.py:name"}


def definition_schema() -> Schema:
    """A JSON Schema (draft 2020-12) of a definition file.

    What a schema cannot say (columns that exist, options that fit together) is checked when the definition is read.
    """
    kinds = Options.__subclasses__()
    assert Definition in kinds
    _, generated = models_json_schema([(kind, "validation") for kind in kinds], schema_generator=_Generator)
    parts = {kind.__name__: {**generated["$defs"][kind.__name__], "description": kind.summary()} for kind in kinds}
    split_types = parts["SplitOptions"]["properties"]["type"]["enum"]
    split_types.append("grouped")
    _accept(parts["Definition"]["properties"], _forms(split_types))
    _accept(parts["SplitOptions"]["properties"], {"by": ONE_OR_MANY})
    _accept(parts["CustomerOptions"]["properties"], {"search_space": _space()})
    _accept(parts["CompareOptions"]["properties"], {"algorithms": _compared()})
    parts["Definition"]["properties"]["name"]["pattern"] = f"^({NAME})$"
    parts["MLflowOptions"]["properties"]["record_trials"]["pattern"] = f"^({RECORD_TRIALS})$"
    parts |= {**definitions(), "space": space_schema()}
    parts |= {"algorithm": _algorithm(), "scheduler": _scheduler(), "model": _model()}
    required = _any_of({"required": ["target"]}, {"required": ["objective"]})
    return {"$schema": DRAFT, **_unwrapped({**parts.pop("Definition"), **required, "$defs": parts})}


class _Generator(GenerateJsonSchema):
    """Leaves out what JSON cannot hold, such as a function or a DataFrame."""

    def handle_invalid_for_json_schema(self, schema: object, error_info: str) -> Schema:
        return {}


def _accept(properties: dict[str, Schema], forms: Mapping[str, Schema]) -> None:
    """Put the form of a field in place of what pydantic knows of it; description and default stay."""
    for name, form in forms.items():
        kept: Schema = {key: properties[name][key] for key in ("description", "default") if key in properties[name]}
        properties[name] = {**form, **kept}


def _forms(split_types: list[str]) -> dict[str, Schema]:
    """The fields of a definition that take other forms than their types, as YAML can hold them."""
    return {
        "data": _any_of(TEXT, TEXTS, _mapping(_any_of(TEXT, _ref("CustomerOptions"))), NOTHING),
        "by": ONE_OR_MANY,
        "customers": _any_of(TEXT, {"type": "array", "items": IDS}, NOTHING),
        "features": _any_of(TEXT, {**TEXTS, "minItems": 1}, NOTHING),
        "drop": ONE_OR_MANY,
        "class_weight": _any_of(
            {"const": "balanced"}, {**_mapping({"type": "number", "exclusiveMinimum": 0}), "minProperties": 1}, NOTHING
        ),
        "bounds": _any_of(
            {"enum": [AUTO, OFF]},
            {"type": "array", "items": {"type": ["number", "null"]}, "minItems": 2, "maxItems": 2},
        ),
        "split": _any_of({"enum": split_types}, _ref("SplitOptions")),
        "models": _any_of(
            _ref("model"), {"type": "array", "items": _ref("model"), "minItems": 1}, _by_name("model"), NOTHING
        ),
        "search_space": _space(),
        "portfolio": _any_of(
            {**TEXT, "minLength": 1}, {"type": "array", "items": {"type": "object"}, "minItems": 1}, NOTHING
        ),
        "baseline": _any_of({**TEXT, "minLength": 1}, {"type": "object", "minProperties": 1}, NOTHING),
        "algorithm": _ref("algorithm"),
        "scheduler": _ref("scheduler"),
        "stop": _any_of(_stop(), NOTHING),
        "time_budget": _any_of({"type": "number", "exclusiveMinimum": 0}, {**TEXT, "pattern": "^[0-9]"}, NOTHING),
        "objective": _any_of(IMPORT_PATH, NOTHING),
        "loggers": _any_of(LOGGERS, {"type": "array", "items": LOGGERS}),
        "mlflow": _any_of({"type": "boolean"}, {"enum": ["on", "off"]}, _ref("MLflowOptions")),
    }


def _any_of(*forms: Schema) -> Schema:
    return {"anyOf": list(forms)}


def _ref(part: str) -> Schema:
    return {"$ref": f"#/$defs/{part}"}


def _mapping(item: Schema) -> Schema:
    return {"type": "object", "additionalProperties": item}


def _space() -> Schema:
    return _any_of({"enum": presets.names()}, _ref("space"), _ref("parameters_by_name"), NOTHING)


def _algorithm() -> Schema:
    return _named((name, kind, kind.title) for name, kind in algorithms.registry().items())


def _scheduler() -> Schema:
    return _named((name, kind, kind.summary) for name, kind in specs().items())


def _named(kinds: Iterable[tuple[str, type[BaseModel], str]]) -> Schema:
    """A name, or a mapping of name and options; the kinds are name, class and sentence."""
    found = [(name, sentence, _options(kind)) for name, kind, sentence in kinds]
    names = [{"const": name, "description": sentence} for name, sentence, _ in found]
    mappings = [
        {
            **options,
            "description": sentence,
            "properties": {"name": {"const": name}, **{k: v for k, v in options["properties"].items() if k != "name"}},
            "required": ["name", *options.get("required", ())],
        }
        for name, sentence, options in found
    ]
    return {"anyOf": [*names, *mappings]}


def _options(kind: type[BaseModel]) -> Schema:
    """The options of an algorithm, scheduler or rule."""
    return {"properties": {}, **kind.model_json_schema(schema_generator=_Generator)}


def _stop() -> Schema:
    forms = {}
    for name, kind in rules().items():
        options = _options(kind)
        forms[name] = {"description": kind.summary, "anyOf": [options["properties"][kind.short], options]}
    return {"type": "object", "properties": forms, "additionalProperties": False}


def _model() -> Schema:
    estimator = _any_of({"enum": sorted(families())}, IMPORT_PATH)
    entry = {
        "type": "object",
        "properties": {
            "estimator": estimator,
            "name": {**TEXT, "description": "Value of `model` in configurations and tables."},
            "params": {"type": "object", "description": "Fixed parameters."},
            "search_space": {
                **_any_of(_ref("space"), _ref("parameters_by_name"), NOTHING),
                "description": "Parameters that vary, under the estimator's names (`svc__C` inside a pipeline).",
            },
            "input": {
                "enum": list(INPUTS),
                "description": "Whether the estimator gets encoded numbers or a DataFrame.",
            },
            "actors": {"type": "integer", "minimum": 1, "description": "Processes that train a trial together."},
            "cpus_per_actor": {"type": "number", "minimum": 0.01, "description": "CPUs of each of them."},
            "gpus_per_actor": {"type": "number", "minimum": 0, "maximum": 1, "description": "GPUs of each of them."},
            "recovery": {"enum": list(RECOVERIES), "description": "What follows when one of them is lost."},
        },
        "additionalProperties": False,
    }
    return _any_of(estimator, {**entry, "required": ["estimator"]})


def _by_name(part: str) -> Schema:
    """A mapping of name to entry, which has the key `estimator` for an entry alone."""
    return {**_mapping(_ref(part)), "minProperties": 1, "propertyNames": {"not": {"const": "estimator"}}}


def _compared() -> Schema:
    names = "|".join(algorithms.names())
    text = {"type": "string", "pattern": f"^({names})(\\s*\\+\\s*({'|'.join(schedulers.names())}))?$"}
    own = {"label": TEXT, "scheduler": _ref("scheduler"), "repeat": {"type": "integer", "minimum": 0}}
    full = {
        "type": "object",
        "properties": {"algorithm": _ref("algorithm"), **own},
        "required": ["algorithm"],
        "additionalProperties": False,
    }
    flat = {"type": "object", "properties": {"name": {"enum": algorithms.names()}, **own}, "required": ["name"]}
    return _any_of(TEXT, {"type": "array", "items": _any_of(text, full, flat), "minItems": 2})


def _unwrapped(schema: Schema, names: bool = False) -> Schema:
    """Descriptions as one line each, and no titles, which repeat the keys. names: whether the keys are names."""
    return {key: _one_line(value, "" if names else key) for key, value in schema.items() if names or key != "title"}


def _one_line(value: object, key: str = "") -> object:
    if isinstance(value, dict):
        return _unwrapped(value, names=key in ("properties", "$defs"))
    if isinstance(value, list):
        return [_one_line(item) for item in value]
    return " ".join(value.split()) if key == "description" and isinstance(value, str) else value
