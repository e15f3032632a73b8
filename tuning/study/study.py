"""A study, and how its trials train.

Everything a study draws comes from its own seed, so the same study gives the same trials wherever it runs, and
replaying its records puts its searcher and schedulers where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from schedulers import SchedulerSpec
from search_spaces import SearchSpace
from search_spaces.algorithms import Algorithm
from tuning.basics.columnar import Columnar, DictionaryColumn, combined
from tuning.data.customers import Customer, Customers, about_rows
from tuning.definition.options import Resources
from tuning.evaluation.fixed import FixedConfiguration
from tuning.records.parts import ENDING, Budget
from tuning.records.schema import MODEL, Config
from tuning.steps import Step
from tuning.study.interfaces import Configuration
from tuning.study.trial import TrialShape

# The metric's name towards searchers and schedulers; the user's metric may have any name.
SCORE = "score"

TRIAL_ROWS = 1000  # which take as long as what a trial does whatever its customer's rows are

PACKED, SPREAD = "packed", "spread"

STUDY_NAME = "/"  # stands in a study's id between its customer's and what the study is called


@dataclass(frozen=True)
class Study:
    """One customer's data × one search space × one algorithm × one scheduler × one seed.

    Attributes:
        id: unique in the run; the seed depends on it alone.
        customer: the owner of the data.
        algorithm: proposes configurations.
        scheduler: decides how long a trial lives.
        seed: of everything random in the study.
        space: the customer's own search space, or the run's.
        n_trials: the study's budget; 0 with a fixed configuration.
        resources: of the worker that runs it.
        placement: `PACKED`, a Tune trial works through a batch of studies in process; `SPREAD`, each of its trials is a
            Tune trial.
        fixed: what is fitted in place of a search; None for a search.
        points_to_evaluate: configurations that a search tries first, as far as its space has them.
    """

    id: str
    customer: Customer
    algorithm: Algorithm
    scheduler: SchedulerSpec
    seed: int
    space: SearchSpace
    n_trials: int
    resources: Resources
    placement: str = PACKED
    fixed: FixedConfiguration | None = None
    points_to_evaluate: Sequence[Config] = ()

    @property
    def budget(self) -> Budget:
        """The most that it takes; work is counted in rows that a trial goes through."""
        return Budget(self.n_trials, TRIAL_ROWS + self.customer.about_rows)


#: Many studies as columns; a study becomes an object when it is asked for.
StudyTable: TypeAlias = Columnar[Study]


def as_columns(studies: Iterable[Study]) -> StudyTable:
    """Return the studies as columns."""
    if isinstance(studies, Columnar):
        return studies
    held = list(studies)
    return Columnar.of(Study, held, customer=Columnar.of(Customer, [study.customer for study in held]))


def budgets(options: DictionaryColumn, fixed: DictionaryColumn, usual: int) -> DictionaryColumn:
    """Return how many trials studies have: their customers' own number or the usual one, none with a fixed one."""
    known = fixed.map(lambda each: each is not None)
    return combined(lambda own, fitted: 0 if fitted else own.trials or usual, options, known)


def customers_of(studies: StudyTable) -> Customers:
    """Return the customer of each study."""
    column = studies.columns["customer"]
    assert isinstance(column, Columnar)
    return column


def work_amounts(studies: StudyTable, *, ending: bool = True) -> np.ndarray:
    """Return (n,) the work of each study, in the unit of `Study.budget`. ending: whether last fits are included."""
    each = TRIAL_ROWS + about_rows(customers_of(studies))
    return np.asarray((studies.numbers("n_trials") + ending * ENDING) * each)


def total_work(studies: StudyTable, *, ending: bool = True) -> float:
    """Return the work of all studies together."""
    return float(work_amounts(studies, ending=ending).sum())


def placed(studies: StudyTable, placement: str) -> np.ndarray:
    """Return (n,) whether a study has this placement."""
    return studies.shared("placement").test(lambda each: each == placement)


@dataclass(frozen=True)
class StudyTraining:
    """How one study's trials train.

    start: gives the generator of a trial's steps for (config, seed, state of an earlier one or None).
    shape: how long a configuration's trial is, and what its steps are.
    frozen: the parameters that cannot change while this configuration's model grows; None where a trial cannot go on
        from another one's state at all.
    longest: the configuration with the longest trial of this configuration's cohort.
    exact: whether a trial that goes on from a state of its own has the same steps as one that never stopped.
    """

    start: Callable[[Configuration, int, object], Iterable[Step]]
    shape: Callable[[Configuration], TrialShape]
    frozen: Callable[[Configuration], Collection[str] | None] = lambda _: ()
    longest: Callable[[Configuration], Configuration] = lambda config: config
    exact: Callable[[Configuration], bool] = lambda _: True

    def cohort_steps(self, config: Configuration) -> int:
        """Return the steps of the longest trial that this configuration's cohort can have."""
        return int(self.shape(self.longest(config)).full_steps)


def family_of(config: Configuration) -> str:
    """Return the model family of a configuration, by which trials are one cohort; "objective" of a function."""
    return str(config.get(MODEL, "objective"))
