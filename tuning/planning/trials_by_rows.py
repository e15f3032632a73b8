"""How many trials a study has where nobody says it: by the task and its customer's rows (`trials: auto`).

Few rows cannot tell configurations apart, and then further trials choose what fits the folds by chance. The numbers are
learned on tables that the portfolio was not learned on: docs/decisions/the-answer.md#trials-by-rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tuning.basics.columnar import DictionaryColumn, constant
from tuning.basics.wording import amount
from tuning.data.customers import Customers
from tuning.data.row_counts import estimated_rows
from tuning.definition.baselines import configuration_of
from tuning.definition.fields import SHIPPED
from tuning.definition.run_spec import RunSpec
from tuning.definition.trial_numbers import AUTO, USUAL_TRIALS
from tuning.planning.portfolios.sources import lacks_families
from tuning.preprocessing.task import REGRESSION
from tuning.study.study import StudyTable, customers_of
from tuning.study.warm_start import fitting

#: By task: customers with fewer rows than the first number have so many trials; all others `USUAL_TRIALS`.
FEWER: Mapping[str, Sequence[tuple[int, int]]] = {REGRESSION: ((200, 10), (600, 14))}


def trials_by_rows(spec: RunSpec, customers: Customers) -> DictionaryColumn:
    """What `trials: auto` gives each customer; 0 where the number is given."""
    if spec.definition.trials != AUTO:
        return constant(0, len(customers))
    if why_usual(spec):
        return constant(USUAL_TRIALS, len(customers))
    steps = FEWER[spec.task or ""]
    place = np.searchsorted([rows for rows, _ in steps], estimated_rows(spec.definition, customers), side="right")
    place[customers.shared("options").test(lambda own: bool(own and own.search_space))] = len(steps)
    return DictionaryColumn(place, [*(trials for _, trials in steps), USUAL_TRIALS])


def why_usual(spec: RunSpec) -> str:
    """Why `trials: auto` is the same for everybody, as the end of a sentence; empty where rows decide."""
    definition = spec.definition
    if definition.compare is not None:
        return "algorithms are compared"
    given = definition.warm_start or configuration_of(definition.baseline)
    if definition.portfolio != SHIPPED or given or spec.task is None:
        return "studies do not begin with the shipped portfolio"
    if lacks_families(spec.task):
        return "some families of the shipped portfolio are not installed"
    if len(fitting(spec.portfolio, spec.space)) < len(spec.portfolio):
        return "the search space lacks some of the shipped portfolio"
    if definition.scheduler.pauses:
        return f"under {definition.scheduler.name} the trials of a study are one race"
    if not definition.wants_ensembles:
        return "models are no ensembles"
    if spec.task not in FEWER:
        return "fewer make models of classes worse"
    return ""


def trials_notes(spec: RunSpec, studies: StudyTable) -> Iterator[str]:
    """What the plan says of `trials: auto`."""
    searched = studies.numbers("n_trials") > 0  # the others have a fixed configuration
    if spec.definition.trials != AUTO or not searched.any():
        return
    if why := why_usual(spec):
        yield f"trials: auto is {USUAL_TRIALS} here, since {why}."
        return
    found, counts = np.unique(studies.numbers("auto_trials")[searched], return_counts=True)
    parts = [f"{trials} for {amount(int(count), 'customer')}" for trials, count in zip(found, counts, strict=True)]
    known = customers_of(studies).present("rows")
    guessed = "" if known.all() else " (from the sizes of their files, a few of which were counted)"
    yield f"trials: auto is {', '.join(parts)}, by their rows{guessed} (docs/models.md#how-many-trials)."
