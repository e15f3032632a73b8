"""A user's own function or generator as training code.

A function `objective(config)` returns a number, or a dict that holds the metric. A generator function yields one
of them per step, and is closed when the scheduler stops the trial. An objective may also take `data` (the
customer's frame, when the definition has data), `files` (the paths of what the frame is read from), `seed`, and
`state`: what the `get_state` of a yielded `tuning.steps.Step` returned, when a trial goes on from another one's
(population-based training), else None.

A function may give back a trainer of Ray Train: each report of its workers is a step (`tuning.models.trainers`).
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Never, TypeAlias

import pandas as pd

from search_spaces.values import own_copy
from tuning.basics.wording import encodable, name_list, shorten
from tuning.errors import DefinitionError, RunError, StudyError
from tuning.models.trainers.trainer import is_trainer, maker_of
from tuning.models.trainers.training import Home, keep_ray_data_here, reports
from tuning.notes import EndCode
from tuning.records.schema import Config
from tuning.steps import Step
from tuning.user_code import signature_of

Objective: TypeAlias = Callable[..., object]  # what it reports is looked at by `_step`

Numbered: TypeAlias = Generator[tuple[int, object], None, None]

OFFERED = ("config", "data", "files", "seed", "state")


def resolve_objective(found: object, given: object) -> Objective:
    """Return what a trial calls: the function that was found, or what makes trainers like the one that was.

    given: what the definition says, such as its name.
    """
    objective = maker_of(found) if is_trainer(found) else found
    if not callable(objective):
        raise DefinitionError(f"objective: {given!r} is not a function.")
    _check_signature(objective)
    return objective


def _check_signature(objective: Objective) -> None:
    """`DefinitionError` where a trial could only end in a `TypeError`."""
    if (found := signature_of(objective)) is None:
        return
    wanted = found.values()
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each.name for each in wanted if each.default is inspect.Parameter.empty and each.kind not in several]
    name = getattr(objective, "__name__", repr(objective))
    if not wanted:
        raise DefinitionError(f"objective: {name} takes no argument; it is given the configuration.")
    strange = [each for each in needed if each not in OFFERED]
    if strange and len(wanted) > 1:
        raise DefinitionError(
            f"objective: {name} wants {strange[0]!r}, which a trial does not have; it is given {', '.join(OFFERED)}. "
            "Give it a default, or another name."
        )


class PortableFunction:
    """A function on its way to workers, which find its module where this process has found it.

    Ray passes a function of an imported module by name, and a worker that cannot import the module dies without a
    word. What arrives calls the function, or raises a `StudyError` with the reason.
    """

    __slots__ = ("__wrapped__", "function")  # no __dict__, of which `functools.wraps` would make a copy

    def __init__(self, function: Objective) -> None:
        self.function = function
        self.__wrapped__ = function  # inspect.signature goes through it

    def __call__(self, *args: object, **kwargs: object) -> object:
        return self.function(*args, **kwargs)

    def __reduce__(self) -> tuple[object, ...]:
        from ray import cloudpickle

        places = [os.path.abspath(place) for place in sys.path if not place or os.path.isdir(place)]
        return _arrived, (cloudpickle.dumps(self.function), places)


def _arrived(content: bytes, places: list[str]) -> PortableFunction:
    from ray import cloudpickle

    sys.path += [place for place in places if place not in sys.path and os.path.isdir(place)]
    try:
        found: Objective = cloudpickle.loads(content)
    except Exception as error:
        reason = EndCode.OBJECTIVE_NOT_LOADED(error=f"{type(error).__name__}: {error}")

        def found(config: object) -> object:  # noqa: ARG001  # objectives are called by their arguments' names
            raise StudyError(reason)

    return PortableFunction(found)  # Tune's registry unpacks and packs it once more on the way


def takes_state(objective: Objective) -> bool:
    """Return whether its trials can go on from another one's state; True also where its signature does not say."""
    found = signature_of(objective)
    return found is None or "state" in found


def reads_files(objective: Objective) -> bool:
    """Return whether it takes a customer's files instead of its rows."""
    wanted = signature_of(objective) or {}
    return "files" in wanted and "data" not in wanted


def steps_of(
    objective: Objective,
    config: Config,
    metric: str,
    seed: int,
    data: pd.DataFrame | None = None,
    state: object = None,
    *,
    steps: float,
    files: tuple[str, ...] = (),
    home: Home | None = None,
) -> Iterator[Step]:
    """Yield the steps of one trial of an objective, which a full trial has `steps` of.

    One beyond them fails the trial (`RunError`), several end the study (`StudyError`). Of a trainer of Ray Train one
    is left out: callbacks such as `RayTrainReportCallback` report the last round again after going on from a
    checkpoint.

    home: of a trainer of Ray Train that the objective makes; None where it makes none.
    """
    # What a trial writes into its frame is not there for the next one; pandas copies only what is written.
    frame = None if data is None else data.copy(deep=False)
    given = own_copy(config)  # what a trial changes in its lists is not there for records and other trials either
    offered = {"config": given, "data": frame, "files": files, "seed": seed, "state": state}
    wanted = inspect.signature(objective).parameters
    arguments = {name: offered[name] for name in OFFERED if name in wanted}
    if home is not None:
        keep_ray_data_here()
    answer = objective(**arguments or {next(iter(wanted)): given})  # whatever its only argument is called
    if is_trainer(answer):
        answer.train_loop_per_worker = PortableFunction(answer.train_loop_per_worker)
        numbered: Numbered = reports(answer, home)
    elif inspect.isgenerator(answer):
        numbered = _numbered(answer)
    else:
        yield _step(1, answer, metric)
        return
    last, at_its_end = 0, True  # until a report says otherwise: a trial goes on from its last checkpoint
    with closing(numbered):
        for number, value in numbered:
            if home is not None and number > steps and (at_its_end or next(numbered, None) is None):
                return
            step = _step(number, value, metric)
            if step.step > steps:
                one = home is None and next(numbered, None) is None
                raise (RunError if one else StudyError)(EndCode.MORE_STEPS(step=step.step, steps=steps))
            if home is None and step.step <= last:
                raise DefinitionError(
                    f"objective: reported step {step.step} after step {last}; each step has a larger number."
                )
            last, at_its_end = step.step, False
            yield step if home is None else replace(step, get_state=_nothing)


def _numbered(answer: Generator[object, Never, object]) -> Numbered:
    with closing(answer):
        yield from enumerate(answer, start=1)


def _nothing() -> None:
    """The state of a trainer: its own checkpoints are; but a trial that is told of one also keeps its seconds."""


def _step(number: int, value: object, metric: str) -> Step:
    if isinstance(value, Step):
        return _checked(value)
    score = _number(value)
    if score is not None:
        return Step(number, score)
    if isinstance(value, Mapping):
        if metric not in value:
            raise DefinitionError(f"objective: reported {name_list(value)} without the metric {metric!r}.")
        if _number(value[metric]) is None:
            raise DefinitionError(
                f"objective: reported {metric!r} as {shorten(repr(value[metric]))}, which is no number."
            )
        figures = _figures(value)
        return Step(number, figures.pop(metric), metrics=figures)
    raise DefinitionError(f"objective: reported a {type(value).__name__}; a number or a dict of numbers is expected.")


def _checked(step: Step) -> Step:
    """Return a step that a user has made, with what records can hold."""
    score = _number(step.score)
    if not isinstance(step.step, Integral) or not 0 < step.step < 2**31 or score is None:
        raise DefinitionError(
            f"objective: reported step {shorten(repr(step.step))} with the score {shorten(repr(step.score))}; a whole "
            "number from 1 and a number are expected."
        )
    return replace(
        step,
        step=int(step.step),
        score=score,
        fold_scores=tuple(map(float, step.fold_scores)),
        metrics=_figures(step.metrics),
    )


def _figures(values: Mapping[object, object]) -> dict[str, float]:
    """Return those that are numbers, by names that are text."""
    numbers = {encodable(str(name)): _number(value) for name, value in values.items()}
    return {name: number for name, number in numbers.items() if number is not None}


def _number(value: Any) -> float | None:
    """Return a real number as a float, also one in an array or tensor without dimensions; None for anything else."""
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        value = value.item()
    return float(value) if isinstance(value, Real | Decimal) else None
