"""A study, and its trials as records; the loop itself is in `tuning/study/loop.py`.

Everything a study draws comes from its own seed, so the same study gives the same trials wherever it runs, and
replaying its records puts its searcher and schedulers where they were.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tuning.data.customers import Customer
from tuning.evaluation.study_data import MODEL
from tuning.steps import Step
from tuning.study.mutations import longest

# The metric's name towards searchers and schedulers; the user's metric may have any name.
SCORE = "score"


@dataclass(frozen=True)
class Study:
    """One customer's data × one search space × one algorithm × one scheduler × one seed.

    id: unique in the run, and all a study's seed depends on. algorithm, scheduler: specs of `search_spaces` and
    `schedulers`. space: a `SearchSpace`; None is the run's. trials: None is the run's number.
    resources: `tuning.definition.options.Resources` of its worker; None is the run's.
    """

    id: str
    customer: Customer
    algorithm: Any
    scheduler: Any
    seed: int
    space: Any = None
    trials: int | None = None
    resources: Any = None


@dataclass(frozen=True)
class Training:
    """How one study's trials train.

    start: gives the generator of a trial's steps for (config, seed, state of an earlier one or None). family: names
    the race a configuration takes part in. full_steps: the steps of a trial that nobody stops. length: the parameter
    that says how many those are, if one does. best_prefix: every prefix is a model of its own, so a trial's score is
    that of its best step; otherwise that of its last one. progress: the steps are one training's, and not folds: it
    may end on its plateau. frozen: the parameters that cannot change while this
    configuration's model grows; None where a trial cannot go on from another one's state at all.
    """

    start: Callable[[Mapping[str, Any], int, Any], Iterable[Step]]
    family: Callable[[Mapping[str, Any]], str]
    full_steps: Callable[[Mapping[str, Any]], int]
    best_prefix: Callable[[Mapping[str, Any]], bool]
    progress: Callable[[Mapping[str, Any]], bool]
    frozen: Callable[[Mapping[str, Any]], Collection[str] | None] = lambda _: ()
    length: Callable[[Mapping[str, Any]], str | None] = lambda _: None

    def race_steps(self, config: Mapping[str, Any], space: Any) -> int:
        """The steps of the longest trial that this configuration's race can have."""
        length = self.length(config)
        return self.full_steps(config if length is None else longest(space, config, length, MODEL))
