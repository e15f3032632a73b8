"""Learning from other customers: who is searched first, who tries what these have found, who goes without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tuning.definition.run_spec import RunSpec
from tuning.seeds import derive
from tuning.study.study import CONTROL, FOLLOWER, PILOT, Studies, Study, as_columns
from tuning.study.warm_start import Start, points_to_try

#: A fifth of the customers is searched in full, within these bounds: a portfolio learned on 20 tables was as good as it
#: got, one on five half as good.
FEWEST_PILOTS, MOST_PILOTS, SHARE = 10, 20, 5
FEWEST = 3 * FEWEST_PILOTS  # customers, for that to be worth it
CONTROLS = 30  # searched without it, so that the run says what it gained
LESSON = 4  # a lesson takes a quarter of the trials that the portfolio leaves


def with_transfer(spec: RunSpec, studies: Studies) -> tuple[RunSpec, Studies, list[str]]:
    """The spec and the studies with what `transfer` makes of them, and a note on that.

    Pilots and controls are spread over the customers' sizes; who it is of equal ones depends on seed and ids only.
    """
    definition = spec.definition
    if not definition.transfer:
        return spec, studies, []
    usual = [study for study in studies if _usual(spec, study)]
    if why := _no_effect(spec, len(usual)):
        return spec, studies, [f"transfer: no effect, since {why}."]
    pilots = _spread(definition.seed, usual, min(MOST_PILOTS, max(FEWEST_PILOTS, len(usual) // SHARE)))
    rest = [study for study in usual if study.id not in pilots]
    controls = _spread(definition.seed, rest, CONTROLS) if len(rest) >= 2 * CONTROLS else set[str]()
    group = {study.id: FOLLOWER for study in rest} | dict.fromkeys(pilots, PILOT) | dict.fromkeys(controls, CONTROL)
    grouped = as_columns(replace(study, group=group.get(study.id, "")) for study in studies)
    return replace(spec, transfer=True), grouped, [_note(len(pilots), len(rest) - len(controls), len(controls))]


def lesson_size(spec: RunSpec) -> int:
    """How many configurations a follower tries that others have found."""
    return max(0, spec.definition.trials - len(points_to_try(spec.space, Start(spec.portfolio)))) // LESSON


def _no_effect(spec: RunSpec, usual: int) -> str:
    """Why nobody can learn from others; empty where they can. usual: how many customers are searched alike."""
    if spec.task is None:
        return "an objective is tuned"
    if spec.definition.compare is not None:
        return "searchers are compared"
    if usual < FEWEST:
        return f"{usual} customers are fewer than {FEWEST}"
    if not lesson_size(spec):
        return f"the portfolio leaves fewer than {LESSON} of {spec.definition.trials} trials"
    return ""


def learning(spec: RunSpec, studies: Studies) -> Studies:
    """Studies of customers that join a run later: they learn from its pilots, if it has any."""
    if not spec.transfer:
        return studies
    return as_columns(replace(study, group=FOLLOWER) if _usual(spec, study) else study for study in studies)


def _usual(spec: RunSpec, study: Study) -> bool:
    """Customers with a search space, a number of trials, resources or a placement of their own are searched as they
    ask.
    """
    usual = (spec.space, spec.definition.trials, spec.definition.resources, None)
    own = study.customer.options
    return (study.space, study.n_trials, study.resources, own and own.placement) == usual


def _spread(seed: int, studies: Sequence[Study], count: int) -> set[str]:
    """The ids of so many studies, one of each class of size."""
    ordered = sorted(studies, key=lambda study: (study.customer.about_rows, study.id))
    classes = np.array_split(np.arange(len(ordered)), count)
    names = [[ordered[position].id for position in each] for each in classes]
    return {min(each, key=lambda name: derive(seed, "transfer", name)) for each in names}


def _note(pilots: int, followers: int, controls: int) -> str:
    said = (
        f"transfer: {pilots} customers are searched first; {followers} others try what these have found, and end "
        "earlier where that is their best. "
    )
    if controls:
        return said + f"{controls} are searched without it, so that the run says what it gained."
    return said + f"What it gained is not measured: that takes {2 * CONTROLS} customers beside the first."
