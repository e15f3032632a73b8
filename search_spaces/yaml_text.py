"""YAML as its authors mean it: no tags, no aliases, no key twice, and 1e-4 is a number.

PyYAML's safe loader follows YAML 1.1, where `1e-4` is text and `on`, `off`, `yes` and `no` are booleans; here
numbers and booleans follow YAML 1.2. Aliases are refused because a page of them expands to gigabytes.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from search_spaces.errors import SpaceError


class _Loader(yaml.SafeLoader):
    """Safe, YAML 1.2 scalars, no aliases, no tags, no duplicate keys."""

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own class-level table, replaced rather than mutated
        first: [
            (tag, pattern)
            for tag, pattern in resolvers
            if tag not in ("tag:yaml.org,2002:bool", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")
        ]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise SpaceError(f"{_place(event)}: *{event.anchor} is an alias; write the value out")
        event = self.peek_event()
        tag = getattr(event, "tag", None)
        if tag is not None and tag != "!":
            raise SpaceError(f"{_place(event)}: the tag {tag} is not allowed; write a plain value")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, list | dict):
                raise SpaceError(f"{_place(key_node)}: a key must be a plain value")
            if key in seen:
                raise SpaceError(f"{_place(key_node)}: the key {key!r} occurs twice; remove one of them")
            seen.add(key)
        return super().construct_mapping(node, deep=deep)


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$"
    ),
    list("-+0123456789."),
)


def _place(node: Any) -> str:
    mark = node.start_mark
    return f"{mark.name}, line {mark.line + 1}"


def parse_yaml(text: str, source: str = "the text") -> Any:
    """The values of a YAML text.

    Raises:
        SpaceError: names the line; a syntax error, a tag, an alias, a key given twice.
    """
    loader = _Loader(text)
    loader.name = source
    try:
        return loader.get_single_data()
    except yaml.YAMLError as error:
        raise SpaceError(f"{source} is not YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise SpaceError(f"{source} is nested too deeply") from None
    finally:
        loader.dispose()


def read_yaml(path: Path) -> Any:
    """The values of a YAML file (UTF-8)."""
    return parse_yaml(path.read_text(encoding="utf-8"), str(path))
