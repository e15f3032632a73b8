"""YAML as its authors mean it: no tags, no aliases, no key twice, 1e-4 is a number and `no` is a word.

PyYAML's safe loader follows YAML 1.1, where `1e-4` is text, `on`, `off`, `yes` and `no` are booleans, `12:30` is 750
and `007` is 7; here numbers and booleans follow YAML 1.2, and digits after a leading zero are text, as ids are.
Aliases are refused because a page of them expands to gigabytes. `dump_yaml` writes what `parse_yaml` reads back.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from search_spaces.errors import SpaceError

# Deeper is nobody's definition, and the parser in C has no recursion limit of its own.
DEEPEST = 100
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_INT = re.compile(r"^(?:[-+]?(?:0|[1-9][0-9_]*)|0x[0-9a-fA-F]{1,16}|0b[01]{1,64})$")
_FLOAT = re.compile(
    r"^(?:[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
)
_OURS = {"bool": (_BOOL, "tTfF"), "int": (_INT, "-+0123456789"), "float": (_FLOAT, "-+0123456789.")}


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # in C, where PyYAML was built so
    """Safe, YAML 1.2 scalars, no duplicate keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class-level table, replaced rather than mutated
        first: [(tag, pattern) for tag, pattern in resolvers if tag.endswith(":null")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        found: dict[object, object] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, list | dict):
                raise _RefusedError(key_node, "a key must be a plain value")
            if key in found:
                raise _RefusedError(key_node, f"the key {key!r} occurs twice; remove one of them")
            found[key] = self.construct_object(value_node, deep=deep)
        return found


class _RefusedError(Exception):
    """What YAML allows and we do not, with the node or event where it is."""

    def __init__(self, where: yaml.Node | yaml.Event, message: str) -> None:
        super().__init__(message)
        assert where.start_mark is not None
        self.line = where.start_mark.line + 1


class _Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]  # as above: fifty times as fast
    """Quotes text that YAML 1.1 or `parse_yaml` would read as something else."""


for _name, (_pattern, _first) in _OURS.items():
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", _pattern, list(_first))


def parse_yaml(text: str, source: str = "the text") -> Any:
    """Return the values of a YAML text.

    Raises:
        SpaceError: names the line; a syntax error, a tag, an alias, a key given twice.
    """
    try:
        _refuse(text)
        loader = _Loader(text)
        try:
            return loader.get_single_data()
        finally:
            loader.dispose()
    except _RefusedError as error:
        raise SpaceError(f"{source}, line {error.line}: {error}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.context_mark or error.problem_mark  # where it begins, not where it was noticed
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        context = f" {error.context}:" if error.context else ""
        raise SpaceError(f"{source}{where} is not YAML:{context} {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:  # also a number of more digits than Python converts
        raise SpaceError(f"{source} is not YAML: {' '.join(str(error).split())}") from None


def _refuse(text: str) -> None:
    """What must not even be built, seen from the events, which take no more memory than the text."""
    loader = _Loader(text)
    depth = 0
    try:
        while loader.check_event():
            event = loader.get_event()
            tag = getattr(event, "tag", None)
            if isinstance(event, yaml.AliasEvent):
                raise _RefusedError(event, f"*{event.anchor} is an alias; write the value out")
            if tag not in (None, "!"):
                raise _RefusedError(event, f"the tag {tag} is not allowed; write a plain value")
            if isinstance(event, yaml.CollectionStartEvent | yaml.CollectionEndEvent):
                depth += 1 if isinstance(event, yaml.CollectionStartEvent) else -1
            if depth > DEEPEST:
                raise _RefusedError(event, f"more than {DEEPEST} levels inside each other; write it flatter")
    finally:
        loader.dispose()


def read_yaml(path: Path) -> Any:
    """Return the values of a YAML file (UTF-8)."""
    return parse_yaml(path.read_text(encoding="utf-8"), str(path))


def dump_yaml(values: Any, **options: Any) -> str:
    """Plain values as YAML text in their own order; `options` are PyYAML's."""
    return str(yaml.dump(values, Dumper=_Dumper, **{"sort_keys": False, "allow_unicode": True, **options}))
