"""One search in simulated time: real searcher and scheduler, training that costs what somebody says it costs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pandas as pd

from schedulers.direction import Mode
from schedulers.protocols import Scheduler
from search_spaces import SearchSpace
from search_spaces.values import Point
from tuning.basics.seeds import derive
from tuning.definition.compared_methods import Method
from tuning.errors import StudyError
from tuning.records.schema import FAILED
from tuning.steps import Step
from tuning.study.core import StudyCore, one_family
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, any_shape, in_process
from tuning.study.trial import TrialShape

DEFAULT_FIRST, NO_START = "default", "none"
STARTS = (DEFAULT_FIRST, NO_START)

#: A configuration's steps as (score, simulated seconds of this step); raise to fail.
Evaluate = Callable[[Point], Iterable[tuple[float, float]]]


@dataclass(frozen=True)
class Problem:
    """What is to be solved: a space, and what training a configuration gives and costs.

    mode: "max" or "min". max_steps: of a full trial of a family. family, shape: as in
        `tuning.study.loop.TrialLoop`.
    """

    space: SearchSpace
    evaluate: Evaluate
    mode: Mode
    max_steps: Callable[[str], int] = field(default=lambda _family: 1)
    family: Callable[[Point], str] = one_family
    shape: Callable[[Point], TrialShape] = any_shape


def simulate(
    problem: Problem, method: Method, n_trials: int, seed: int, seconds: float = math.inf, start: str = DEFAULT_FIRST
) -> pd.DataFrame:
    """One search: columns trial, score, steps, seconds, state of a curves table.

    A search whose searcher or scheduler raises keeps what it had and ends in a failed trial.

    Args:
        problem: what is to be solved.
        method: algorithm and scheduler.
        n_trials: at most this many.
        seed: of everything random.
        seconds: simulated, the measured ones of the searcher included; the trial that crosses the limit still counts.
        start: "default" tries the default configuration first and to its end, as every study does; "none" does not.
    """

    def scheduler_for(config: Point) -> Scheduler:
        family = problem.family(config)
        return method.scheduler.build(
            metric="score",
            mode=problem.mode,
            max_steps=problem.max_steps(family),
            seed=derive(seed, "scheduler", family),
        )

    with_default = start == DEFAULT_FIRST
    core = StudyCore(
        method.algorithm.build(
            problem.space,
            metric="score",
            mode=problem.mode,
            seed=seed,
            n_trials=n_trials,
            points=[problem.space.default()] if with_default else [],
        ),
        scheduler_for,
        LocalTrial,
        n_trials=n_trials,
        metric="score",
        mode=problem.mode,
        family=problem.family,
        protect=frozenset({0} if with_default else ()),
    )

    def steps(config: Point, _number: int, _state: object) -> Iterator[Step]:
        return (Step(number, score, seconds=spent) for number, (score, spent) in enumerate(problem.evaluate(config), 1))

    loop = TrialLoop(core, in_process(steps), pauses=method.scheduler.pauses, shape=problem.shape)
    rows: list[tuple[object, ...]] = []
    try:
        for trial in loop:
            score = math.nan if trial.score is None else trial.score
            rows.append((len(rows) + 1, score, trial.spent_steps, trial.spent_seconds, trial.state))
            if trial.spent_seconds >= seconds:
                break
    except StudyError:
        rows.append((len(rows) + 1, math.nan, loop.core.spent_steps, loop.core.spent_seconds, FAILED))
    finally:
        loop.close()
    return pd.DataFrame(rows, columns=["trial", "score", "steps", "seconds", "state"])
