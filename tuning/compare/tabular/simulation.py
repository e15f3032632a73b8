"""One search in simulated time: real searcher and scheduler, training that costs what somebody says it costs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pandas as pd

from schedulers.protocols import Scheduler
from schedulers.spec import Mode
from search_spaces import SearchSpace
from search_spaces.outcome import Result
from search_spaces.values import Point
from tuning.definition.compared_methods import Method
from tuning.errors import StudyError
from tuning.records.schema import FAILED
from tuning.seeds import derive
from tuning.steps import Step
from tuning.study.core import one_family
from tuning.study.interleaved import InterleavedLoop
from tuning.study.loop import TrialLoop, any_shape
from tuning.study.trial import TrialShape

DEFAULT_FIRST, NO_START = "default", "none"
STARTS = (DEFAULT_FIRST, NO_START)

#: A configuration's steps as (score, simulated seconds of this step); raise to fail.
Evaluate = Callable[[Point], Iterable[tuple[float, float]]]


@dataclass(frozen=True)
class Problem:
    """What is searched: a space, and what training a configuration gives and costs.

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
        problem: what is searched.
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

    clock = _Clock()
    with_default = start == DEFAULT_FIRST
    loop = (InterleavedLoop if method.scheduler.pauses else TrialLoop)(
        _Timed(method, problem, n_trials, seed, clock, with_default),
        scheduler_for,
        lambda config, _number, _state: clock.run(problem.evaluate(config)),
        n_trials=n_trials,
        metric="score",
        mode=problem.mode,
        family=problem.family,
        shape=problem.shape,
        protect=frozenset({0} if with_default else ()),
    )
    rows: list[tuple[object, ...]] = []
    try:
        for trial in loop:
            score = math.nan if trial.score is None else trial.score
            rows.append((len(rows) + 1, score, clock.steps, clock.seconds, trial.state))
            if clock.seconds >= seconds:
                break
    except StudyError:
        rows.append((len(rows) + 1, math.nan, clock.steps, clock.seconds, FAILED))
    finally:
        loop.close()
    return pd.DataFrame(rows, columns=["trial", "score", "steps", "seconds", "state"])


class _Clock:
    """What the search has cost so far."""

    def __init__(self) -> None:
        self.steps, self.seconds = 0, 0.0

    def run(self, steps: Iterable[tuple[float, float]]) -> Iterator[Step]:
        for number, (score, seconds) in enumerate(steps, 1):
            self.steps += 1
            self.seconds += seconds
            yield Step(number, score)


class _Timed:
    """A searcher whose own time is added to the clock."""

    def __init__(
        self, method: Method, problem: Problem, n_trials: int, seed: int, clock: _Clock, with_default: bool
    ) -> None:
        self._clock = clock
        before = time.perf_counter()
        self._searcher = method.algorithm.build(
            problem.space,
            metric="score",
            mode=problem.mode,
            seed=seed,
            n_trials=n_trials,
            points=[problem.space.default()] if with_default else [],
        )
        clock.seconds += time.perf_counter() - before

    def suggest(self, trial_id: str) -> object:
        before = time.perf_counter()
        found = self._searcher.suggest(trial_id)
        self._clock.seconds += time.perf_counter() - before
        return found

    def on_trial_result(self, trial_id: str, result: Result) -> None:
        before = time.perf_counter()
        self._searcher.on_trial_result(trial_id, result)
        self._clock.seconds += time.perf_counter() - before

    def on_trial_complete(self, trial_id: str, result: Result | None = None, error: bool = False) -> None:
        before = time.perf_counter()
        self._searcher.on_trial_complete(trial_id, result=result, error=error)
        self._clock.seconds += time.perf_counter() - before
