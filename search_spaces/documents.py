"""The YAML form of a search space, to and fro.

```yaml
parameters:
  model: {type: choice, values: [ridge, xgboost], default: ridge}
  alpha: {type: float, low: 1.0e-4, high: 1.0e+3, log: true, default: 1.0, when: {model: ridge}}
constraints: [my_package.rules:shallow_or_slow]
```
Parameters may also be a list of mappings with a `name`, which two branches that share a name need; what is
written is always that list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from search_spaces.constraints import Constraint, code_digest, constraint_name, importable, load_constraint
from search_spaces.errors import SpaceError, did_you_mean
from search_spaces.parameters import Choice, Constant, Float, Int, Parameter
from search_spaces.values import UNSET, PlainValue

Document = dict[str, PlainValue]

_SHARED = ("when", "why", "source", "nested")
_REMARKS = ("why", "source", "cheap")  # no part of what algorithms draw from
KINDS: dict[str, tuple[Callable[..., Parameter], tuple[str, ...], tuple[str, ...]]] = {
    # type: (class, required fields, optional fields)
    "float": (Float, ("low", "high"), ("log", "step", "default", "cheap", *_SHARED)),
    "int": (Int, ("low", "high"), ("log", "step", "default", "cheap", *_SHARED)),
    "choice": (Choice, ("values",), ("default", *_SHARED)),
    "constant": (Constant, ("value",), _SHARED),
}


def parameter_to_dict(parameter: Parameter, prose: bool = True) -> Document:
    """Return one parameter as plain values, with its name; what equals the rule for leaving out is left out."""
    _, required, optional = KINDS[parameter.kind]
    result: Document = {"name": parameter.name, "type": parameter.kind}
    result |= {name: _plain(getattr(parameter, name)) for name in required}
    for name in optional:
        value = _plain(getattr(parameter, name))
        if (name == "default" or value) and (prose or name not in _REMARKS):
            result[name] = value
    if "when" in result:
        when = parameter.when.items()
        result["when"] = {key: allowed[0] if len(allowed) == 1 else list(allowed) for key, allowed in when}
    return result


def _plain(value: Any) -> PlainValue:
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple | list) else value


def parameter_from_dict(name: object, fields: object) -> Parameter:
    """Return one parameter; the path of an error starts with its name.

    Raises:
        SpaceError: an unknown type or field, a missing field, or what the class itself refuses.
    """
    if not isinstance(fields, Mapping):
        raise SpaceError(
            f"{fields!r} is not a parameter; write {{type: constant, value: …}} for a fixed value, or "
            "{type: float, low: …, high: …}",
            path=str(name),
        )
    kind = fields.get("type")
    if not isinstance(kind, str) or kind not in KINDS:
        known = ", ".join(KINDS)
        if kind is None:
            raise SpaceError(f"has no type; add type: one of {known}", path=str(name))
        raise SpaceError(
            f"{kind!r} is not a type{did_you_mean(kind, list(KINDS))}; it is one of {known}", path=f"{name}.type"
        )
    make, required, optional = KINDS[kind]
    for field in fields:
        if field not in (*required, *optional, "type", "name"):
            valid = [*required, *optional]
            raise SpaceError(
                f"a {kind} has no field {field!r}{did_you_mean(field, valid)}; it has {', '.join(valid)}",
                path=f"{name}.{field}",
            )
    for field in required:
        if field not in fields:
            raise SpaceError(f"a {kind} needs {field!r}", path=f"{name}.{field}")
    arguments = {field: fields[field] for field in (*required, *optional) if field in fields}
    arguments.setdefault("default", UNSET)
    if kind == "constant":
        del arguments["default"]
    elif arguments["default"] is None and kind != "choice":
        arguments["default"] = UNSET
    for field in ("why", "source"):
        arguments[field] = str(arguments.get(field, ""))
    parameter: Parameter = make(name, **arguments)
    return parameter


def space_to_dict(
    parameters: Sequence[Parameter],
    constraints: Sequence[Constraint],
    prose: bool = True,
    code: bool = False,
) -> Document:
    """Return a whole space; `code` adds the digest of each constraint's code (for fingerprints)."""
    # A list, because the order matters and many a writer of YAML or JSON sorts the keys of a mapping.
    document: Document = {"parameters": [parameter_to_dict(parameter, prose) for parameter in parameters]}
    if constraints:
        document["constraints"] = [
            f"{constraint_name(c)}#{code_digest(c)}" if code or not importable(c) else constraint_name(c)
            for c in constraints
        ]
    return document


def space_from_dict(mapping: object) -> tuple[list[Parameter], list[Constraint]]:
    """Return the parameters and constraints of a space's YAML form.

    Raises:
        SpaceError: names the path of the field, the value and the way out.
    """
    if not isinstance(mapping, Mapping) or "parameters" not in mapping:
        raise SpaceError(
            f"a search space is a mapping with the key 'parameters', not {_short(mapping)}; or the name of a "
            "preset, such as tabular-classification",
        )
    for key in mapping:
        if key not in ("parameters", "constraints"):
            raise SpaceError(
                f"a search space has no field {key!r}{did_you_mean(key, ['parameters', 'constraints'])}; it has "
                "parameters and constraints",
                path=str(key),
            )
    rows = mapping["parameters"]
    if isinstance(rows, Mapping):
        named = list(rows.items())
    elif isinstance(rows, list | tuple):
        named = []
        for index, row in enumerate(rows):
            if not isinstance(row, Mapping) or "name" not in row:
                raise SpaceError("in a list every parameter needs a name", path=f"parameters.{index}")
            named.append((row["name"], row))
    else:
        raise SpaceError(f"{_short(rows)} is not a mapping of name to parameter", path="parameters")
    try:
        parameters = [parameter_from_dict(name, fields) for name, fields in named]
    except SpaceError as error:
        raise error.under("parameters") from None
    constraints = mapping.get("constraints") or []
    if isinstance(constraints, str):
        constraints = [constraints]
    if not isinstance(constraints, list | tuple):
        raise SpaceError(
            f"{_short(constraints)} must be a list of functions, each as package.module:function", path="constraints"
        )
    return parameters, [load_constraint(text, f"constraints.{i}") for i, text in enumerate(constraints)]


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "…"
