"""Which hyperparameters of a search space may change while a trial trains (population-based training)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import schedulers


def mutations(space: Any, config: Mapping[str, Any], frozen: Collection[str], race: str) -> schedulers.Mutations:
    """What a scheduler may change in the race that `config` takes part in.

    space: a `search_spaces.SearchSpace`. frozen: parameters that a growing model cannot change. race: the parameter
    whose value is the same for all trials of a race (the model family).

    Parameters that others depend on never change, since another value would ask for other parameters.
    """
    parents = {name for parameter in space.parameters for name in parameter.when}
    found: list[schedulers.Mutation] = []
    for parameter in space.parameters:
        fixed = parameter.name in parents or parameter.name in frozen or parameter.name == race
        when = dict(parameter.when)
        elsewhere = race in when and config.get(race) not in when.pop(race)
        if fixed or elsewhere or parameter.single:
            continue
        if parameter.kind == "choice":
            found.append(schedulers.Choices((parameter.name,), tuple(parameter.values), when))
        else:
            found.append(
                schedulers.Range(
                    (parameter.name,),
                    parameter.low,
                    parameter.high,
                    log=parameter.log,
                    step=parameter.step,
                    whole=parameter.kind == "int",
                    when=when,
                )
            )
    return schedulers.Mutations(tuple(found), space.allows if space.constraints else None)
