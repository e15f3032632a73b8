"""What schedulers need of a search space.

These are the hyperparameters that may change while a trial trains (population-based training), and the length of a
cohort's longest trials.
"""

from __future__ import annotations

from collections.abc import Collection

import schedulers
from search_spaces import Choice, Float, Int, SearchSpace
from tuning.study.interfaces import Configuration


def mutations(space: SearchSpace, config: Configuration, frozen: Collection[str], cohort: str) -> schedulers.Mutations:
    """Return what a scheduler may change in the cohort that `config` takes part in.

    space: a `search_spaces.SearchSpace`. frozen: parameters that a growing model cannot change. cohort: the parameter
    with the same value for all trials of a cohort (the model family).

    Parameters that others depend on never change, since another value would ask for other parameters.
    """
    parents = {name for parameter in space.parameters for name in parameter.when}
    found: list[schedulers.Mutation] = []
    for parameter in space.parameters:
        fixed = parameter.name in parents or parameter.name in frozen or parameter.name == cohort
        when = dict(parameter.when)
        elsewhere = cohort in when and config.get(cohort) not in when.pop(cohort)
        if fixed or elsewhere or parameter.single:
            continue
        if isinstance(parameter, Choice):
            found.append(schedulers.Choices((parameter.name,), tuple(parameter.values), when))
        elif isinstance(parameter, Float | Int):
            found.append(
                schedulers.Range(
                    (parameter.name,),
                    parameter.low,
                    parameter.high,
                    log=parameter.log,
                    step=parameter.step,
                    whole=isinstance(parameter, Int),
                    when=when,
                )
            )
    return schedulers.Mutations(tuple(found), space.allows if space.constraints else None)


def longest(space: SearchSpace, config: Configuration, length: str, cohort: str) -> Configuration:
    """Return this configuration with the largest `length` (trees, rounds, epochs) that its cohort allows.

    Rungs and budgets are those of a cohort, so they follow its longest trials and not the one that comes first.
    """
    found: list[float] = []
    for parameter in space.parameters:
        if parameter.name != length or (cohort in parameter.when and config.get(cohort) not in parameter.when[cohort]):
            continue
        if isinstance(parameter, Float | Int):
            found.append(parameter.high)
            continue
        values = parameter.values if isinstance(parameter, Choice) else [parameter.value]
        found += [value for value in values if isinstance(value, int | float)]
    return {**config, length: max(found)} if found else dict(config)
