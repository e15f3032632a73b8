"""What schedulers have to know of a search space: which hyperparameters may change while a trial trains (population-
based training), and how long the trials of a race can be.
"""

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


def longest(space: Any, config: Mapping[str, Any], length: str, race: str) -> dict[str, Any]:
    """This configuration with the largest `length` (trees, rounds, epochs) that its race allows.

    Rungs and budgets are those of a race, so they follow its longest trials and not the one that comes first.
    """
    found: list[Any] = []
    for parameter in space.parameters:
        if parameter.name != length or (race in parameter.when and config.get(race) not in parameter.when[race]):
            continue
        if parameter.kind == "choice":
            found += [value for value in parameter.values if isinstance(value, int | float)]
        else:
            found.append(parameter.value if parameter.kind == "constant" else parameter.high)
    return {**config, length: max(found)} if found else dict(config)
