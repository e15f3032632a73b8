"""The gangs of a plan: what the trials of models take that several processes train, and what cannot be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import schedulers
from search_spaces import SearchSpace
from search_spaces.parameters import Constant
from tuning.definition.definition import Definition
from tuning.definition.options import Resources
from tuning.errors import DefinitionError, PlanError
from tuning.models.gang import GANG_FIELDS, Gang
from tuning.models.registry import families
from tuning.planning.model_space import parameters_by_model
from tuning.study.study import Studies
from tuning.wording import name_list


def gangs_in(space: SearchSpace) -> dict[str, Gang]:
    """The models of a search space that several processes train, with their gangs.

    Raises:
        DefinitionError: a gang's value is not one, or varies.
    """
    found: dict[str, Gang] = {}
    for name, parameters in parameters_by_model(space).items():
        if name not in families() or families()[name].gang({}) is None:
            continue
        given = [parameter for parameter in parameters if parameter.name in GANG_FIELDS]
        if varied := [parameter.name for parameter in given if not isinstance(parameter, Constant)]:
            raise DefinitionError(
                f"search_space: {name_list(varied)} of {name!r} cannot vary; write a constant, or the value beside "
                f"`estimator: {name}` in models."
            )
        try:
            found[name] = Gang.of({parameter.name: parameter.default for parameter in given})
        except ValueError as error:
            raise DefinitionError(f"search_space: {error}") from error
    return found


def largest_gang(spaces: Iterable[SearchSpace]) -> Gang | None:
    """The gang with the most CPUs; None where trials are trained by one process."""
    found = [gang for space in spaces for gang in gangs_in(space).values()]
    return max(found, key=lambda gang: (gang.cpus, gang.gpus_per_actor), default=None)


def fitting(gang: Gang, driver: Resources, slots: int) -> int:
    """How many trials with a gang fit at once, one at least. driver: what a trial's own process takes."""
    return max(1, int(slots // (gang.cpus + driver.cpus)))


def check_gangs(definition: Definition, studies: Studies) -> None:
    """`PlanError` where trials with gangs cannot be: each must be a Tune trial with a placement group of its own."""
    if definition.objective is not None:
        return
    names = sorted({name for study in studies.first_of_each("space") for name in gangs_in(study.space)})
    if not names:
        return
    need = f"models: several processes train each trial of {name_list(names)}, which needs placement: spread"
    if definition.placement == "packed":
        raise PlanError(f"{need}; change `placement`, or take `xgboost`.")
    specs = (study.scheduler for study in studies.first_of_each("scheduler"))
    refused = next((spec.name for spec in specs if schedulers.check_spread(spec)), None)
    if refused is not None:
        raise PlanError(f"{need}, and there the scheduler {refused} cannot pause trials; take asha, or `xgboost`.")


def gang_notes(definition: Definition, gang: Gang | None, slots: int) -> Iterator[str]:
    """What a trial with a gang takes of the slots."""
    if gang is None:
        return
    cpus = gang.cpus + definition.resources.cpus
    at_once = fitting(gang, definition.resources, slots)
    fits = f"{at_once} at once on {slots} slots" if cpus <= slots else f"more than the {slots} slots have"
    yield (
        f"a trial takes {cpus:g} CPUs, {definition.resources.cpus:g} of its own and {gang.cpus_per_actor:g} for each "
        f"of {gang.actors} actors: {fits}."
    )
