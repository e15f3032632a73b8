"""The types of a definition's keys as keyword arguments, for type checkers and editors, made from the definition.

python docs/keyword_types.py     # writes keywords.py; run it at the top of the repository
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Union, get_args, get_origin

from tuning.definition.definition import Definition
from tuning.definition.json_schema import Schema, definition_schema
from tuning.definition.options import Options

MODULE = "tuning/definition/keywords.py"
HEAD = '''"""The keys of a definition as keyword arguments: what type checkers and editors know of `TuneRunner(...)`.

Made by `python docs/keyword_types.py`; not edited by hand. `object`: what only a run can check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class DefinitionKeys(TypedDict, total=False):
    """Keyword arguments of `TuneRunner`; docs/definition.md says what they mean."""

'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
TEXTS = "Sequence[str]"


def module_text() -> str:
    """The module's text."""
    schema = definition_schema()
    lines = []
    for name, field in Definition.model_fields.items():
        of_python = any(map(_of_python, _leaves(field.annotation)))
        found = ["object"] if of_python else dict.fromkeys(_forms(schema["properties"][name], schema))
        lines.append(f"    {name}: {' | '.join(found)}\n")
    return HEAD + "".join(lines)


def _leaves(annotation: object) -> Iterator[object]:
    """The types that an annotation is made of."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif origin in (Union, types.UnionType, tuple, list, dict):
        for inner in get_args(annotation):
            yield from _leaves(inner)
    else:
        yield annotation


def _of_python(kind: object) -> bool:
    """Whether values of a type are given as objects that a YAML file cannot hold."""
    if get_origin(kind) is Literal or kind in (str, int, float, bool, None, type(None), ...):
        return False
    return not (isinstance(kind, type) and issubclass(kind, Options))


def _forms(form: Schema, whole: Schema) -> Iterator[str]:
    """The types that a JSON schema allows."""
    if "$ref" in form:
        yield from _forms(whole["$defs"][str(form["$ref"]).rpartition("/")[2]], whole)
    elif "anyOf" in form:
        for each in form["anyOf"]:
            yield from _forms(each, whole)
    elif "enum" in form or "const" in form:
        yield f"Literal[{', '.join(map(json.dumps, form.get('enum', [form.get('const')])))}]"
    elif form.get("type") == "array":
        yield TEXTS if form.get("items", {}).get("type") == "string" else "Sequence[object]"
    else:
        yield PLAIN.get(str(form.get("type")), "Mapping[str, object]")


if __name__ == "__main__":
    Path(MODULE).write_text(module_text(), encoding="utf-8")
