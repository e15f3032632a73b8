"""Ready-made search spaces as files: one per model family, and compositions of families.

A family's file holds its parameters under the estimator's own argument names, each with a `why`, which is a
sentence, and a `source`, a page or a library. A parameter may name the `tasks` that it is for, and differ
`by_task`. `parameters_of` names the family whose parameters these are. Numbers of trees, rounds and epochs are in
none of them: those are a trial's steps, and every prefix is scored. A composition's file lists families; its space
has the choice `model`, under which each family brings its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from search_spaces.documents import parameter_from_dict
from search_spaces.errors import SpaceError, did_you_mean
from search_spaces.parameters import Choice, Constant, Parameter
from search_spaces.space import SearchSpace
from search_spaces.yaml_text import read_yaml

#: What a preset's file holds: title, tasks, and `parameters` of a family (or whose they are), or the `families` of a
#: composition.
Preset = Mapping[str, Any]

TASKS = ("regression", "binary", "multiclass")
_FOLDER = Path(__file__).parent


@cache
def _document(name: str) -> Preset:
    document: Preset = read_yaml(_FOLDER / f"{name}.yaml")
    if "parameters_of" in document:
        return {**document, "parameters": _document(document["parameters_of"])["parameters"]}
    return document


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def names() -> list[str]:
    """All presets, families and compositions."""
    return list(_names())


def families(task: str | None = None) -> list[str]:
    """Return the model families that have a preset, or those that fit a task."""
    return [name for name in _names() if "parameters" in _document(name) and fits(name, task)]


def fits(name: str, task: str | None) -> bool:
    """Return whether a preset can do a task ("regression", "binary" or "multiclass"; None asks nothing)."""
    if task is not None and task not in TASKS:
        raise SpaceError(f"{task!r} is not a task{did_you_mean(task, list(TASKS))}; it is one of {', '.join(TASKS)}")
    return task is None or task in _known(name)["tasks"]


def title(name: str) -> str:
    """One sentence on a preset."""
    return str(_known(name)["title"])


def load(name: str, task: str | None = None, optional: Collection[str] = ()) -> SearchSpace:
    """Return a preset's search space. Its default configuration is the first family at its library's defaults.

    Args:
        name: one of `names()`.
        task: leaves out the families that cannot do it.
        optional: the families that need an optional package and may be used; a composition that names them under
            `optional` has them too.

    Raises:
        SpaceError: an unknown name, or a preset that cannot do the task.
    """
    document = _known(name)
    if not fits(name, task):
        raise SpaceError(f"preset {name!r} is for {', '.join(document['tasks'])}, not {task}")
    found = [*document.get("families", [name]), *(each for each in document.get("optional", ()) if each in optional)]
    return _composed(tuple(family for family in found if fits(family, task)), task)


def compose(families: Sequence[str], task: str | None = None) -> SearchSpace:
    """One space over several families: the choice `model`, the first being its default, and their conditions.

    Raises:
        SpaceError: no family, one named twice, an unknown one, or one that cannot do the task.
    """
    for family in families:
        if "parameters" not in _known(family):
            members = ", ".join(_known(family)["families"])
            raise SpaceError(f"{family!r} is a composition of {members}; name families", path="families")
        if not fits(family, task):
            raise SpaceError(f"{family!r} is for {', '.join(_known(family)['tasks'])}, not {task}", path="families")
    return _composed(tuple(families), task)


@cache
def _composed(families: tuple[str, ...], task: str | None) -> SearchSpace:
    if not families:
        raise SpaceError("no model family given; name at least one, as in ridge", path="families")
    several = len(families) > 1
    parameters: list[Parameter] = [
        Choice("model", list(families), why="The model family.") if several else Constant("model", families[0])
    ]
    for family in families:
        for name, fields in _known(family)["parameters"].items():
            if task not in fields.get("tasks", (task,)):
                continue
            own = {key: value for key, value in fields.items() if key not in ("tasks", "by_task")}
            own |= fields.get("by_task", {}).get(task, {})
            own["when"] = {**({"model": family} if several else {}), **own.get("when", {})}
            parameters.append(parameter_from_dict(name, own))
    return SearchSpace(parameters)


def _known(name: str) -> Preset:
    if name not in _names():
        raise SpaceError(f"there is no preset {name!r}{did_you_mean(name, names())}; presets: {', '.join(names())}")
    return _document(name)
