"""The search space over a definition's models, and whether each of them can do what is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from search_spaces import SearchSpace, presets
from search_spaces.parameters import Choice, Constant, Parameter
from tuning.basics.wording import raised
from tuning.errors import DefinitionError, PlanError, RunError
from tuning.evaluation.metrics import needs_probabilities
from tuning.models.base import FRAME, EncodedRows, Family
from tuning.models.entries import ModelEntry
from tuning.models.own import OwnFamily
from tuning.models.registry import families
from tuning.models.registry import family as find_family
from tuning.notes import Note, PlanCode
from tuning.planning.model_process import ModelProcess
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, TASKS, Task
from tuning.records.schema import MODEL

Members = dict[str, list[Parameter]]  # model -> its parameters, free of the condition on the model


def space_of(space: SearchSpace | str | None, entries: Sequence[ModelEntry], task: str) -> SearchSpace:
    """`search_space` and `models` of a definition together.

    Without models: the given space, its preset, or the preset of the task. With models: those, each with its own
    or its preset's parameters, after the families of the preset named by `search_space`; a space of parameters
    is that of the only model, or says by a parameter `model` which values belong to which.
    """
    if space is None and not entries:
        space = "tabular-regression" if task == REGRESSION else "tabular-classification"
    if isinstance(space, str):
        preset = presets.load(space, task, optional=_optional_here())
        return _composed({**parameters_by_model(preset), **_of_entries(entries, task)}) if entries else preset
    if space is None:
        return _composed(_of_entries(entries, task))
    if any(parameter.name == MODEL for parameter in space.parameters):
        return space
    if len(entries) == 1:
        if entries[0].search_space is not None:
            raise DefinitionError(
                f"search_space: {entries[0].name!r} has a search_space of its own; give it in one place."
            )
        return SearchSpace([Constant(MODEL, entries[0].name), *space.parameters], space.constraints)
    if entries:
        raise DefinitionError(
            "search_space: it has no parameter `model`, and there are several models; write each one's parameters "
            "into its entry: models: [{estimator: …, search_space: …}]."
        )
    raise DefinitionError(
        "search_space: it has no parameter `model`; name the family by `models: ridge`, or add "
        "model: {type: constant, value: ridge}."
    )


def _optional_here() -> list[str]:
    """Return the families that need an optional package which is installed."""
    return [name for name, family in families().items() if family.requires and not family.missing()]


def parameters_by_model(space: SearchSpace) -> Members:
    """Return each model of a space with its parameters, in order."""
    found: Members = {}
    for parameter in space.parameters:
        if parameter.name == MODEL:
            for value in parameter.values if isinstance(parameter, Choice) else (parameter.default,):
                found.setdefault(str(value), [])
    for parameter in space.parameters:
        if parameter.name == MODEL:
            continue
        when = dict(parameter.when)
        names = [str(value) for value in when.pop(MODEL, found)]
        for name in names:
            found[name].append(dataclasses.replace(parameter, when=when))
    return found


def _of_entries(entries: Sequence[ModelEntry], task: str) -> Members:
    found: Members = {}
    for entry in entries:
        if entry.search_space is not None:
            if any(parameter.name == MODEL for parameter in entry.search_space.parameters):
                raise DefinitionError(
                    f"models: the search_space of {entry.name!r} must not have a parameter named `model`."
                )
            found[entry.name] = list(entry.search_space.parameters)
        elif entry.built_in and entry.name in presets.families(task):
            found[entry.name] = parameters_by_model(presets.load(entry.name, task))[entry.name]
        else:
            found[entry.name] = []
        worker_group = [Constant(name, value) for name, value in entry.worker_group.items()]
        found[entry.name] = [
            *(each for each in found[entry.name] if each.name not in entry.worker_group),
            *worker_group,
        ]
    return found


def _composed(models: Members) -> SearchSpace:
    if len(models) == 1:
        ((name, parameters),) = models.items()
        return SearchSpace([Constant(MODEL, name), *parameters])
    choice = Choice(MODEL, list(models), why="The model family.")
    return SearchSpace(
        [choice]
        + [
            dataclasses.replace(parameter, when={MODEL: name, **parameter.when})
            for name, parameters in models.items()
            for parameter in parameters
        ]
    )


def check_models(
    space: SearchSpace,
    own: Mapping[str, Family],
    task: str,
    metric: str,
    function: Callable[..., float] | None = None,
) -> tuple[SearchSpace, tuple[Note, ...]]:
    """Return the space with the models that can do it, and what was left out; `PlanError` when none is left.

    own: the families of the user's own models. function: the metric, where it is the user's own.
    """
    refused: dict[str, Note] = {}
    chosen = parameters_by_model(space)
    probabilities = task != REGRESSION and needs_probabilities(metric, task, function)
    for name in chosen:
        family = own.get(name) or find_family(name)
        reason = _refusal(family, space, name, task, metric, probabilities)
        if reason:
            refused[name] = reason
    if not refused:
        return space, ()
    left = {name: parameters for name, parameters in chosen.items() if name not in refused}
    if not left or space.constraints:
        raise PlanError(f"models: {' '.join(map(str, refused.values()))}")
    return _composed(left), tuple(refused.values())


def common_tasks(
    space: SearchSpace | str | None, entries: Sequence[ModelEntry], own: Mapping[str, Family]
) -> frozenset[str]:
    """Return the tasks that all models can do which a definition names. own: see `check_models`."""
    known = {**families(), **own}
    names = [space if isinstance(space, str) else "", *(entry.name for entry in entries)]
    return frozenset(TASKS).intersection(*(_able(known[name]) for name in names if name in known))


def _able(family: Family) -> frozenset[str]:
    return family.able() if isinstance(family, OwnFamily) else family.tasks


def check_configurations(
    space: SearchSpace,
    own: Mapping[str, Family],
    task: str,
    written: bool = True,
    process: ModelProcess | None = None,
) -> None:
    """Raise `DefinitionError` for a parameter that a model does not have, or a value of a kind that it does not take.

    Every model of a space that a user has written is fitted on a few made-up rows, with its defaults and with both
    ends of each range: what is wrong there would fail every trial, or be ignored in each.

    written: whether the space is the user's; of a preset only their own models are tried.
    process: where the user's own code is tried, which may do anything; None for here.
    """
    for name, parameters in parameters_by_model(space).items():
        if not written and name not in own:
            continue
        family = own.get(name) or find_family(name)
        if family.encoding == FRAME:
            continue  # it names columns that made-up rows do not have
        default = {key: value for key, value in space.complete({MODEL: name}).items() if key != MODEL}
        ends = [
            {**default, parameter.name: parameter.at(end)}
            for parameter in parameters
            if parameter.name in default
            for end in (0.0, 1.0 - 1e-9)
        ]
        configs = [default, *ends]
        if process is not None and isinstance(family, OwnFamily) and not family.surely_savable:
            process.tried(name, _check_fits, family, configs, task)
        else:
            _check_fits(family, configs, task)


def _check_fits(family: Family, configs: Sequence[dict[str, object]], task: str) -> None:
    for config in configs:
        try:
            family.fit(config, _few_rows(task), Task(task, CLASSES[task]), 0, 1)
        except DefinitionError:
            raise
        except (Exception, SystemExit) as error:
            # An unknown name is a TypeError, and what scikit-learn says of a wrong value is one and a ValueError.
            # Nothing else is proved by these rows: real ones may do.
            if isinstance(error, TypeError) and (not isinstance(family, OwnFamily) or isinstance(error, ValueError)):
                fixed = getattr(family, "params", {})
                key = "search_space" if config else "models"
                raise DefinitionError(f"{key}: {family.name!r} does not take {fixed | config}: {error}") from error


CLASSES = {REGRESSION: (), BINARY: ("a", "b"), MULTICLASS: ("a", "b", "c")}


def _few_rows(task: str) -> EncodedRows:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(24, 3))
    codes = np.arange(24) % max(1, len(CLASSES[task]))
    return EncodedRows(rows, rows[:, 0] if task == REGRESSION else codes)


def check_installed(space: SearchSpace) -> None:
    """Raise `PlanError` when a model of the space needs a package that is not here.

    It is not left out in silence: a worker that has the package would search another space.
    """
    for name in parameters_by_model(space):
        sentence = families()[name].untrainable() if name in families() else ""
        if sentence:
            raise PlanError(f"models: {sentence}")


def check_savable(own: Mapping[str, Family], process: ModelProcess) -> None:
    """Raise `PlanError` for an own model that is known to be refused when its winner is saved, hours later."""
    for name, family in own.items():
        if isinstance(family, OwnFamily) and not family.surely_savable:
            process.tried(name, _check_saved, family)


def _check_saved(family: OwnFamily) -> None:
    try:
        family.save(family.build({}))
    except RunError as error:
        raise PlanError(f"models: {error}") from error
    except (Exception, SystemExit) as error:  # of its own code
        raise PlanError(
            f"models: the model {family.name!r} cannot be saved: {raised(error)}. Correct it, or set "
            "`save_models: false`."
        ) from error


def _refusal(family: Family, space: SearchSpace, name: str, task: str, metric: str, probabilities: bool) -> Note | None:
    able = _able(family)
    if task not in able:
        return PlanCode.MODEL_FOR_OTHER_TASKS(name, tasks=" and ".join(sorted(able)) or "no task of ours", task=task)
    config = {key: value for key, value in space.complete({MODEL: name}).items() if key != MODEL}
    if isinstance(family, OwnFamily):
        try:
            family.build(config)
        except DefinitionError:
            raise
        except Exception as error:
            raise DefinitionError(f"models: {name!r} cannot be built: {type(error).__name__}: {error}") from error
    if probabilities and not family.probabilities(config):
        offers = not isinstance(family, OwnFamily) and family.probabilities({**config, "probability": True})
        constant = "`probability: true`" if offers else ""
        return PlanCode.MODEL_WITHOUT_PROBABILITIES(name, metric=metric, constant=constant)
    return None
