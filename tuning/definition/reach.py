"""Where a definition reaches outside itself: to files, URIs, databases and code.

Each key says so where it is declared, by one of the `Reach` values below; numbers, switches and names from a list need
none. So a program that lets others send definitions can ask what they would touch before it reads one as a
`Definition`, which may already import code that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Annotated, Literal, TypeAlias, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from tuning.storage.names import is_uri

ReachKind: TypeAlias = Literal["plain", "path", "uri", "code", "parameter"]


@dataclass(frozen=True)
class Reference:
    """Something outside that a definition names.

    Attributes:
        key: that names it, with dots, such as `data.acme.path` or `search_space.constraints`.
        kind: a local `path`; a `uri`, also of a database; `code`, which a run imports and executes; or the value of a
            `parameter` of a model family, a file or an address that its library opens by itself.
        text: as it stands there: of code an import path or `file.py:function`; of a parameter the texts that it may
            be, empty for numbers alone.
    """

    key: str
    kind: ReachKind
    text: str

    def below(self, key: str) -> Reference:
        """Return the same reference inside a key that is a mapping."""
        return replace(self, key=f"{key}.{self.key}" if self.key else key)


References: TypeAlias = Iterator[Reference]


def _nothing(_: object) -> References:
    return iter(())


@dataclass(frozen=True)
class Reach:
    """How far a key's value reaches; stands among the annotations of a field.

    Attributes:
        kind: of what it may name; of a `path` a value may be a URI all the same.
        find: what a value names, as it stands in YAML or JSON, before anything has checked it. The keys are those below
            the field's own.
    """

    kind: ReachKind
    find: Callable[[object], References] = _nothing


def texts(value: object) -> Iterator[str]:
    """Yield the text that a value is, or the texts of a list."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from texts(item)


def file_or_uri(value: object) -> References:
    """Return references to one or several paths and URIs."""
    return (Reference("", "uri" if is_uri(text) else "path", text) for text in texts(value))


def _uris(value: object) -> References:
    return (Reference("", "uri", text) for text in texts(value))


def _code(value: object) -> References:
    """Return references to import paths and `file.py:function`; a name without a colon is one of ours."""
    return (Reference("", "code", text) for text in texts(value) if ":" in text)


def _switch(value: object) -> References:
    return iter(()) if value in (None, False) else iter([Reference("", "code", str(value))])


def _of_space(value: object) -> References:
    """Yield the constraints of a search space, which are functions, also of spaces inside it."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if key == "constraints":
                yield from (found.below("constraints") for found in _code(item))
            else:
                yield from (found.below(str(key)) for found in _of_space(item))


def _of_models_space(value: object) -> References:
    """Return the constraints of a space for our own families, and files that their parameters name."""
    return chain(_of_space(value), _parameters(value))


def _parameters(value: object) -> References:
    from tuning.models.registry import families

    opens = frozenset[str]().union(*(family.opens for family in families().values()))
    for key, item in _named_items(value):
        if key in opens:
            yield Reference(key, "parameter", ", ".join(_values_of(item)))
        else:
            yield from (found.below(key) for found in _parameters(item))


def _texts_only(found: References) -> References:
    """Return the references with text: numbers of a user's own estimator are its own matter."""
    return (reference for reference in found if reference.text)


def _named_items(value: object) -> Iterator[tuple[str, object]]:
    """Yield the items of a mapping, or the mappings of a list by their `name`, as parameters may be written."""
    if isinstance(value, Mapping):
        yield from ((str(key), item) for key, item in value.items())
    elif isinstance(value, list | tuple):
        yield from ((str(item["name"]), item) for item in value if isinstance(item, Mapping) and "name" in item)


def _values_of(parameter: object) -> Iterator[str]:
    """Yield the texts that a parameter may be."""
    if isinstance(parameter, Mapping):
        yield from (text for key in ("values", "value", "default") for text in texts(parameter.get(key)))
    else:
        yield from texts(parameter)


def _of_models(value: object) -> References:
    """Yield the estimators of the user's own: import paths, files of code, and pickles."""
    if isinstance(value, list | tuple):
        for item in value:
            yield from _of_models(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if key == "search_space":
                built_in = ":" not in str(value.get("estimator", ""))
                found = _of_models_space(item) if built_in else chain(_of_space(item), _texts_only(_parameters(item)))
            elif key == "params":  # of an estimator of the user's own
                found = _texts_only(_parameters(item))
            elif key == "estimator" and isinstance(item, Mapping):  # of another run
                found = iter([Reference("", "code", str(item.get("file")))])
            elif key == "estimator" or "estimator" not in value:
                found = _of_models(item)
            else:
                continue
            yield from (each.below(str(key)) for each in found)
    else:
        yield from _code(value)


PLAIN = Reach("plain")
PATH = Reach("path", file_or_uri)
URI = Reach("uri", _uris)
CODE = Reach("code", _code)
CODE_SWITCH = Reach("code", _switch)
MODELS = Reach("code", _of_models)
SPACE = Reach("code", _of_models_space)

PlainText: TypeAlias = Annotated[str, PLAIN]
"""A text that names nothing outside, such as a column."""


def reach_of(name: str, field: FieldInfo) -> Reach | None:
    """Return how far a field's values reach; None for options, numbers, switches and names from a list.

    `TypeError` where a field does not say so and could hold any text.
    """
    found = [item for item in field.metadata if isinstance(item, Reach)] or [*_marks(field.annotation)]
    if not found and not all(_is_closed(kind) for kind in _leaves(field.annotation)):
        raise TypeError(
            f"{name}: its values may be any text. Say with a Reach (tuning.definition.reach) whether they name a "
            "path, a URI or code, or are PLAIN."
        )
    return next(iter(found), None)


def references(kind: type[BaseModel], values: Mapping[str, object]) -> References:
    """Yield what values of a class of options name outside; see `Options.references`."""
    for name, field in kind.model_fields.items():
        value, reach = values.get(name), reach_of(name, field)
        inner = [each for each in _leaves(field.annotation) if _is_options(each)] if reach is None else []
        found = reach.find(value) if reach is not None else _nothing(value)
        for options in inner:
            assert isinstance(options, type)
            found = chain(found, *(references(options, each) for each in _mappings(value)))
        yield from (each.below(name) for each in found)


def _mappings(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _mappings(each)


def _marks(annotation: object) -> Iterator[Reach]:
    if get_origin(annotation) is Annotated:
        yield from (item for item in get_args(annotation)[1:] if isinstance(item, Reach))
    for inner in get_args(annotation):
        yield from _marks(inner)


def _leaves(annotation: object) -> Iterator[object]:
    """Yield the types that an annotation is made of."""
    if get_origin(annotation) is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif get_origin(annotation) is Literal or not get_args(annotation):
        yield annotation
    else:
        for inner in get_args(annotation):
            yield from _leaves(inner)


def _is_options(kind: object) -> bool:
    return isinstance(kind, type) and hasattr(kind, "references")  # `Options`, whose module uses this one


def _is_closed(kind: object) -> bool:
    """Return whether values of a type name nothing: numbers, switches, names from a list, and options."""
    return kind in (int, float, bool, None, type(None), ...) or get_origin(kind) is Literal or _is_options(kind)
