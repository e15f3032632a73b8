"""Which parameters exist in a configuration: checks of `when:` and the branches it makes.

A condition names parameters declared before and the values under which this one exists; all names must
hold, any of the listed values will do. Depth needs no rule of its own: a parameter whose parent does not
exist does not exist either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from search_spaces.errors import SpaceError, did_you_mean
from search_spaces.parameters import Choice, Parameter
from search_spaces.values import Point, Scalar, same

_MISSING = object()


def holds(when: Mapping[str, Sequence[Scalar]], config: Point) -> bool:
    """Return whether a condition holds for the part of a configuration that is already known."""
    return all(config.get(parent, _MISSING) in allowed for parent, allowed in when.items())


class Branch(NamedTuple):
    """The parameters that exist under exactly the same condition (the root branch has none)."""

    when: dict[str, tuple[Scalar, ...]]
    labels: tuple[str, ...]


def branches(labelled: Mapping[str, Parameter]) -> list[Branch]:
    """Parameters by condition, in the order in which they can be decided."""
    found: list[tuple[dict[str, tuple[Scalar, ...]], list[str]]] = []
    for label, parameter in labelled.items():
        when = dict(parameter.when)
        for known, labels in found:
            if known == when:
                labels.append(label)
                break
        else:
            found.append((when, [label]))
    return [Branch(when, tuple(labels)) for when, labels in found]


def labels(parameters: Sequence[Parameter]) -> dict[str, Parameter]:
    """Return a unique label for every parameter: its name, with the condition where branches share the name."""
    count = Counter(parameter.name for parameter in parameters)
    return {
        parameter.name if count[parameter.name] == 1 else f"{parameter.name}[{text(parameter.when)}]": parameter
        for parameter in parameters
    }


def text(when: Mapping[str, Sequence[Scalar]]) -> str:
    """`model=ridge|lasso,solver=saga`."""
    return ",".join(f"{parent}={'|'.join(map(str, allowed))}" for parent, allowed in when.items())


def check(parameters: Sequence[Parameter]) -> None:
    """Refuse conditions that can never hold, cycles, and two parameters of one name that could both exist.

    Raises:
        SpaceError: with the path of the field, the value and the way out.
    """
    order: dict[str, int] = {}
    for index, parameter in enumerate(parameters):
        order.setdefault(parameter.name, index)
    _check_cycles(parameters)
    for index, parameter in enumerate(parameters):
        for parent, allowed in parameter.when.items():
            path = f"{parameter.name}.when.{parent}"
            if parent not in order:
                others = [name for name in order if name != parameter.name]
                raise SpaceError(
                    f"there is no parameter {parent!r}{did_you_mean(parent, others)}; declared before "
                    f"{parameter.name!r} are: {', '.join(p.name for p in parameters[:index]) or 'none'}",
                    path=path,
                )
            parents = [p for p in parameters[:index] if p.name == parent]
            if not parents:
                raise SpaceError(
                    f"{parent!r} is declared after {parameter.name!r}; move {parent!r} before it", path=path
                )
            _check_values(allowed, parents, path)
    _check_shared_names(parameters)


def _check_cycles(parameters: Sequence[Parameter]) -> None:
    parents: dict[str, set[str]] = {}
    for parameter in parameters:
        parents.setdefault(parameter.name, set()).update(parameter.when)
    done: set[str] = set()
    for start in parents:
        # Depth-first with an explicit stack, so that a chain of a thousand conditions is no recursion error.
        trail: list[str] = []
        stack: list[tuple[str, bool]] = [(start, False)]
        while stack:
            name, leaving = stack.pop()
            if leaving:
                done.add(trail.pop())
            elif name in trail:
                circle = " -> ".join([*trail[trail.index(name) :], name])
                raise SpaceError(f"conditions go in a circle ({circle}); remove one of them", path=f"{name}.when")
            elif name not in done:
                trail.append(name)
                stack.append((name, True))
                stack.extend((parent, False) for parent in sorted(parents.get(name, ())))


def _check_values(allowed: Sequence[Scalar], parents: Sequence[Parameter], path: str) -> None:
    if any(parent.kind == "float" for parent in parents):
        raise SpaceError(
            "a float is never exactly equal to a value; make the condition on a choice, an int or a constant",
            path=path,
        )
    choices = [parent for parent in parents if isinstance(parent, Choice)]
    alike: dict[tuple[bool, Scalar], list[Scalar]] = {}  # found by what `same` looks at: 1 for 1.0, but not for true
    for choice in choices:
        for each in choice.values:
            if not isinstance(each, list | dict):  # no condition names those
                alike.setdefault((isinstance(each, bool), each), []).append(each)
    for value in allowed:
        found = alike.get((isinstance(value, bool), value), [])
        if len(found) > max(1, len(choices)):
            raise SpaceError(
                f"a condition does not tell {' from '.join(map(repr, found))}; use texts, such as 'one' and 'all'",
                path=path,
            )
        if not any(parent.contains(value) for parent in parents):
            shown = "; ".join(parent.describe() for parent in parents)
            raise SpaceError(f"{value!r} is not a value of {parents[0].name!r} ({shown})", path=path)


def _check_shared_names(parameters: Sequence[Parameter]) -> None:
    closures: list[dict[str, tuple[Scalar, ...]]] = []
    for index, parameter in enumerate(parameters):
        closure = _closure(parameter, parameters[:index], closures)
        for known, other in zip(parameters, closures, strict=False):
            if known.name == parameter.name and not _exclusive(closure, other):
                raise SpaceError(
                    f"a second {parameter.name!r} can exist together with the first (conditions: "
                    f"{text(known.when) or 'none'}; {text(parameter.when) or 'none'}); give them conditions "
                    "that exclude each other, or two names",
                    path=parameter.name,
                )
        closures.append(closure)


def _closure(
    parameter: Parameter, before: Sequence[Parameter], closures: Sequence[dict[str, tuple[Scalar, ...]]]
) -> dict[str, tuple[Scalar, ...]]:
    """Return the parameter's condition together with those of its parents."""
    closure: dict[str, tuple[Scalar, ...]] = {name: tuple(allowed) for name, allowed in parameter.when.items()}
    for name, allowed in parameter.when.items():
        parents = [i for i, p in enumerate(before) if p.name == name and any(p.contains(v) for v in allowed)]
        if len(parents) != 1:
            continue  # several parents of that name: nothing is certain about theirs
        for key, values in closures[parents[0]].items():
            known = closure.get(key)
            closure[key] = values if known is None else tuple(v for v in known if v in values)
    return closure


def _exclusive(a: Mapping[str, Sequence[Scalar]], b: Mapping[str, Sequence[Scalar]]) -> bool:
    return any(not any(same(v, w) for v in a[key] for w in b[key]) for key in a.keys() & b.keys())
