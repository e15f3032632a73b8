"""The `models` of a definition: built-in families by name and the user's own estimators, and their search space.

An entry is a family's name, `package.module:factory` (a class, a function that makes an estimator, or an estimator),
`file.py:factory`, a scikit-learn estimator or pipeline itself, or a mapping with

    estimator     one of these
    name          the value of `model` in configurations and tables (default: made from the estimator)
    params        fixed parameters
    search_space  parameters that vary, under the estimator's names (`svc__C` inside a pipeline is written so too)
    input         "encoded", "frame" or "auto" (see `tuning.models.own`)
    actors, cpus_per_actor, gpus_per_actor, recovery
                  of a family whose trials are trained by several processes (see `tuning.models.worker_group`)

An entry without a search space is one point. Estimators given as objects travel to the workers as import path and
parameters where that says everything, else as a file that the run writes into its directory and knows by digest.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import cloudpickle

from search_spaces import SearchSpace
from tuning.basics.documents import Json
from tuning.basics.wording import did_you_mean, name_list
from tuning.errors import DefinitionError, RunError
from tuning.models.base import Config, Family
from tuning.models.own import OwnFamily
from tuning.models.registry import families as built_in
from tuning.models.skops_format import dump_skops, load_skops
from tuning.models.worker_group import GROUP_FIELDS, ActorGroup
from tuning.storage.names import slug
from tuning.storage.run_directory import RunDirectory
from tuning.user_code import check_form, copy_into, dump_pickle, is_file, load_function, name_inside

FOLDER = "estimators"
FIELDS = ("estimator", "name", "params", "search_space", "input", *GROUP_FIELDS)
INPUTS = ("auto", "encoded", "frame")


@dataclass(frozen=True)
class ModelEntry:
    """One checked entry of `models`.

    Attributes:
        name: the value of `model` in configurations and tables.
        estimator: a family's name, an import path, an estimator, what makes one, or a `Stored` one.
        params: fixed parameters.
        search_space: parameters that vary; None for the family's own, or for none.
        input: "encoded", "frame" or "auto".
        worker_group: values that the entry gives of a family's actors.
    """

    name: str
    estimator: object
    params: Config = field(default_factory=dict)
    search_space: SearchSpace | None = None
    input: str = "auto"
    worker_group: Config = field(default_factory=dict)

    @property
    def built_in(self) -> bool:
        """Whether this is a family of ours."""
        return isinstance(self.estimator, str) and ":" not in self.estimator

    def to_dict(self) -> str | dict[str, object]:
        """Return the entry's YAML form; an estimator that cannot be written down is shown by its own text."""
        if self.built_in and self.search_space is None and not self.worker_group:
            return str(self.estimator)
        path, params = _described(self.estimator) or (repr(self.estimator), {})
        document: dict[str, object] = {"name": self.name, "estimator": path}
        if params or self.params:
            document["params"] = {**params, **self.params}
        if isinstance(self.estimator, Stored):
            document["estimator"] = {"file": self.estimator.file, "sha256": self.estimator.sha256}
        if self.search_space is not None:
            document["search_space"] = self.search_space.to_dict()
        if self.input != "auto":
            document["input"] = self.input
        return {**document, **self.worker_group}


@dataclass(frozen=True)
class Stored:
    """An unfitted estimator in a file that the run itself has written."""

    file: str
    sha256: str

    @classmethod
    def write(cls, estimator: object, name: str, directory: RunDirectory) -> Stored:
        try:
            content, suffix = dump_skops(estimator), "skops"
        except Exception:  # skops refuses in many ways; the file is only for this run's own workers
            content, suffix = dump_pickle(estimator), "pkl"
        file = f"{FOLDER}/{slug(name)}.{suffix}"
        directory.write(file, content)
        return cls(file, hashlib.sha256(content).hexdigest())

    def read(self, directory: RunDirectory | None) -> object:
        if directory is None:
            raise DefinitionError(
                f"models: {self.file!r} belongs to another run; give the estimator itself or its import path."
            )
        content = directory.read(self.file)
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise RunError(f"{directory.display(self.file)} is not what this run has written: its SHA-256 differs.")
        if self.file.endswith(".skops"):
            return load_skops(content)
        return cloudpickle.loads(content)


class _UnknownFamilyError(ValueError):
    """An entry names a model family that there is not."""


def parse_models(value: object) -> tuple[ModelEntry, ...]:
    """Checked entries from the value of `models`; `ValueError` names all that is wrong.

    value: one entry, a list of them, or a mapping of name to entry. Nothing is imported here.
    """
    if isinstance(value, Mapping) and "estimator" not in value:
        items: list[object] = [
            {"name": str(name), **(item if isinstance(item, Mapping) else {"estimator": item})}
            for name, item in value.items()
        ]
    else:
        items = list(value) if isinstance(value, list | tuple) else [value]
    if not items:
        raise ValueError("the list is empty; leave it out to search among the built-in families.")
    entries, wrong, known = list[ModelEntry](), list[str](), set[str]()
    for place, item in enumerate(items, start=1):
        try:
            entries.append(item if isinstance(item, ModelEntry) else _entry(item))
        except ValueError as error:
            wrong.append(f"entry {place}: {error}")
            if isinstance(error, _UnknownFamilyError):
                known = {f"Known: {', '.join(sorted(built_in()))}; your own is written package.module:factory."}
    if wrong:
        raise ValueError(" ".join([*wrong, *known]))
    return _with_unique_names(entries)


def _entry(given: object) -> ModelEntry:
    item: Json = given if isinstance(given, Mapping) else {"estimator": given}
    if unknown := [key for key in item if key not in FIELDS]:
        hint = did_you_mean(unknown[0], FIELDS)
        raise ValueError(f"unknown key {unknown[0]!r}.{hint} Allowed: {', '.join(FIELDS)}.")
    if "estimator" not in item:
        raise ValueError("there is no `estimator`: a family's name, an import path or an object.")
    estimator, params = _estimator(item["estimator"]), item.get("params") or {}
    name, how = item.get("name", ""), item.get("input", "auto")
    if not isinstance(params, Mapping):
        raise ValueError(f"params: {params!r} is not a mapping of parameter to value.")
    if how not in INPUTS:
        raise ValueError(f"input: {how!r} is not one of {', '.join(INPUTS)}.")
    if not isinstance(name, str):
        raise ValueError(f"name: {name!r} is not text.")
    group = {field: item[field] for field in GROUP_FIELDS if field in item}
    entry = ModelEntry(name, estimator, dict(params), _space(item.get("search_space")), how, group)
    _check_group(entry)
    if not entry.built_in:
        if name in built_in():
            raise ValueError(f"name: {name!r} is a built-in family; give your own another name.")
        return entry
    if name not in ("", estimator):
        raise ValueError(f"name: the built-in family {estimator!r} keeps its name.")
    if params or how != "auto":
        raise ValueError(f"{estimator!r} is a built-in family; fix a parameter by a constant in its search_space.")
    return replace(entry, name=str(estimator))


def _check_group(entry: ModelEntry) -> None:
    """Raise `ValueError` for what an entry says of the processes that train a trial together."""
    given, families = entry.worker_group, built_in()
    if given and not (entry.built_in and families[str(entry.estimator)].worker_groups):
        able = ", ".join(name for name, family in families.items() if family.worker_groups)
        raise ValueError(f"{name_list(given)} are for models that several processes train: {able}.")
    ActorGroup.of(given)
    varying = entry.search_space.parameters if entry.search_space else ()
    if twice := [each.name for each in varying if each.name in given]:
        raise ValueError(f"give {name_list(twice)} next to the estimator or in its search_space, not in both.")


def _estimator(given: object) -> object:
    """Return an estimator as an entry holds it; `ValueError` for what is none."""
    if isinstance(given, Mapping):
        if set(map(str, given)) != {"file", "sha256"}:
            raise ValueError(f"estimator: {dict(given)!r} is not an estimator.")
        return Stored(str(given["file"]), str(given["sha256"]))
    if isinstance(given, str):
        if ":" in given:
            check_form(given)
        elif given not in built_in():
            raise _UnknownFamilyError(f"{given!r} is not a model family.{did_you_mean(given, built_in())}")
    elif not (isinstance(given, Stored) or callable(given) or (hasattr(given, "fit") and hasattr(given, "predict"))):
        raise ValueError(
            f"{given!r} is not an estimator (it has no fit and predict), a class, a function that makes one, an import "
            "path or a family's name."
        )
    return given


def _space(value: object) -> SearchSpace | None:
    if value is None or isinstance(value, SearchSpace):
        return value
    try:
        return SearchSpace.parse(value)
    except ValueError as error:
        raise ValueError(f"search_space: {error}") from error


def _with_unique_names(entries: Sequence[ModelEntry]) -> tuple[ModelEntry, ...]:
    """Return names made from estimators: the class's, with its changed parameters where that is not enough."""
    short = [entry.name or _class_name(entry.estimator) for entry in entries]
    names = [
        entry.name or (plain if short.count(plain) == 1 or short.index(plain) == position else _long_name(entry))
        for position, (entry, plain) in enumerate(zip(entries, short, strict=True))
    ]
    doubled = {name for name in names if names.count(name) > 1}
    if doubled:
        raise ValueError(f"{', '.join(map(repr, sorted(doubled)))} is listed twice; give each entry a `name`.")
    return tuple(replace(entry, name=name) for entry, name in zip(entries, names, strict=True))


def _class_name(estimator: object) -> str:
    if isinstance(estimator, str):
        return estimator.rpartition(":")[2]
    if isinstance(estimator, Stored):
        return estimator.file.rpartition("/")[2].partition(".")[0]
    if hasattr(estimator, "steps"):
        return "+".join(type(step).__name__ for _, step in estimator.steps)
    return str(getattr(estimator, "__name__", type(estimator).__name__))


def _long_name(entry: ModelEntry) -> str:
    _, params = _described(entry.estimator) or ("", {})
    changed = {**params, **entry.params}
    if not changed:
        return _class_name(entry.estimator)
    return f"{_class_name(entry.estimator)}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def _described(estimator: object) -> tuple[str, Config] | None:
    """Return (import path, changed parameters) where this says everything, else None."""
    if isinstance(estimator, str):
        return estimator, {}
    if isinstance(estimator, Stored):
        return None
    kind = estimator if callable(estimator) and hasattr(estimator, "__qualname__") else type(estimator)
    module, name = kind.__module__, kind.__qualname__
    if module == "__main__" or module.startswith("tuning_user_code_") or "<" in name:
        return None
    path = f"{_public(module, name)}:{name}"
    if kind is estimator:
        return path, {}
    if not hasattr(estimator, "get_params"):
        return None
    defaults = {key: item.default for key, item in inspect.signature(kind).parameters.items()}
    given = estimator.get_params(deep=False)
    changed = {key: value for key, value in given.items() if repr(value) != repr(defaults.get(key))}
    if not all(isinstance(value, str | int | float | bool | None) for value in changed.values()):
        return None
    return path, changed


def _public(module: str, name: str) -> str:
    """`sklearn.tree` for `sklearn.tree._classes`, where the object is there too."""
    outer = module.split("._")[0]
    found = getattr(sys.modules.get(outer), name.partition(".")[0], None)
    return outer if found is not None and found.__module__ == module else module


def freeze_models(entries: Sequence[ModelEntry], directory: RunDirectory) -> tuple[ModelEntry, ...]:
    """Return the entries as the run's directory can hold them: objects written down or stored, files of code copied."""
    return tuple(_frozen(entry, directory) for entry in entries)


def _frozen(entry: ModelEntry, directory: RunDirectory) -> ModelEntry:
    estimator = entry.estimator
    if isinstance(estimator, str):
        return replace(entry, estimator=copy_into(estimator, directory)) if is_file(estimator) else entry
    if isinstance(estimator, Stored):
        return entry
    if (described := _described(estimator)) is not None:
        path, params = described
        return replace(entry, estimator=path, params={**params, **entry.params})
    return replace(entry, estimator=Stored.write(estimator, entry.name, directory))


def same_models(before: Sequence[ModelEntry], now: Sequence[ModelEntry], directory: RunDirectory) -> bool:
    """Return whether a run's entries say the same as those of a definition."""
    if len(before) != len(now):
        return False
    return all(_same_entry(there, here, directory) for there, here in zip(before, now, strict=True))


def _same_entry(there: ModelEntry, here: ModelEntry, directory: RunDirectory) -> bool:
    if isinstance(here.estimator, str) and is_file(here.estimator) and here.estimator != there.estimator:
        here = replace(here, estimator=name_inside(here.estimator))
    if isinstance(there.estimator, Stored) and not isinstance(here.estimator, Stored | str):
        if repr(there.estimator.read(directory)) != repr(here.estimator):
            return False
        here = replace(here, estimator=there.estimator)
    return bool(there.to_dict() == here.to_dict())


def own_families(
    entries: Sequence[ModelEntry], directory: RunDirectory | None = None, allow_code: bool = False
) -> dict[str, Family]:
    """Return the families of the entries that are not built in, by name.

    directory: of the run, where stored estimators and copied files are; None before there is one.
    """
    found: dict[str, Family] = {}
    for entry in entries:
        if entry.built_in:
            continue
        source = entry.estimator
        try:
            source = load_function(source, directory) if isinstance(source, str) else source
        except DefinitionError as error:
            raise DefinitionError(f"models: {error}") from error
        if isinstance(source, Stored):
            source = source.read(directory)
        try:
            found[entry.name] = OwnFamily(entry.name, source, entry.params, entry.input, allow_code)
        except DefinitionError:
            raise
        except Exception as error:
            raise DefinitionError(f"models: {entry.name!r} cannot be built: {type(error).__name__}: {error}") from error
    return found
