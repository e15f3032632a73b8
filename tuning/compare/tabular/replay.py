"""Searching recorded evaluations again, in simulated time: 20 seeds cost seconds.

The searchers, the schedulers and their driver are those of a real run; only the training is a look-up. Seconds
are the recorded ones of the evaluation plus the measured ones of the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Unpack

import pandas as pd

from schedulers.direction import Mode
from schedulers.protocols import Scheduler
from search_spaces import SearchSpace
from search_spaces.values import Point
from tuning.basics.seeds import derive
from tuning.compare.comparison import AnalysisOptions, Comparison, analyse
from tuning.compare.tabular.table import Evaluations, Table
from tuning.definition.compared_methods import Method, parse_methods
from tuning.errors import PlanError, StudyError
from tuning.notes import Note
from tuning.planning.search_checks import random_starts
from tuning.planning.studies import distinct
from tuning.records.schema import FAILED, canonical
from tuning.steps import Step
from tuning.study.core import StudyCore, one_family
from tuning.study.local_trial import LocalTrial
from tuning.study.loop import TrialLoop, any_shape, in_process
from tuning.study.trial import TrialShape

TRIALS = 50  # of a search, where no budget is given


def replay(
    table: Table,
    algorithms: str | Iterable[str | Mapping[str, object] | Method],
    seeds: int = 10,
    trials: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the curves of every method on every task of a table, with `seeds` repetitions.

    Args:
        table: recorded evaluations.
        algorithms: see `parse_methods`.
        seeds: repetitions.
        trials: per search (default: 50, or no limit where `seconds` are given).
        seconds: simulated, per search; the trial that crosses the limit still counts.
        seed: of everything random.

    Raises:
        PlanError: fewer than two methods, or a budget that makes no sense.
    """
    methods = parse_methods(algorithms)
    for method in methods:
        if method.scheduler.mutates:
            raise PlanError(
                f"{method.label}: {method.scheduler.name} changes configurations in the middle of a trial, which a "
                "table does not hold; compare it on the data itself."
            )
    if seeds < 1 or (trials is not None and trials < 1) or (seconds is not None and not seconds > 0):
        raise PlanError(f"seeds, trials and seconds must be above 0 (got {seeds}, {trials}, {seconds}).")
    limit = trials if trials is not None else TRIALS if seconds is None else 100 * len(table.configs)
    frames = []
    for method, task, number in product(methods, table.tasks, range(seeds)):
        replicates = table.evaluations[task]
        # Paired: the same task and repetition start every method from the same seed; a twin differs on purpose.
        own = derive(seed, "replay", task, number, *([method.repeat] if method.repeat else []))
        problem = _problem(table, replicates[number % len(replicates)], table.modes[task])
        curve = simulate(problem, method, limit, own, math.inf if seconds is None else seconds)
        frames.append(curve.assign(method=method.label, task=task, seed=number, mode=table.modes[task]))
    return pd.concat(frames, ignore_index=True)


def compare_on_table(
    table: Table,
    algorithms: str | Iterable[str | Mapping[str, object] | Method],
    seeds: int = 10,
    trials: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    source: str = "",
    **options: Unpack[AnalysisOptions],
) -> Comparison:
    """Replay, then `analyse` with the table's optimum and median as bounds.

    Args:
        table, algorithms, seeds, trials, seconds, seed: as in `replay`.
        source, options: as in `analyse`.
    """
    methods = parse_methods(algorithms)
    curves = replay(table, methods, seeds, trials, seconds, seed)
    options.setdefault("axis", "trials" if seconds is None else "seconds")
    remarks: Iterable[Note] = ()
    if seconds is None:
        used = distinct(method.algorithm for method in methods)
        remarks = random_starts(used, table.levels.grid, trials or TRIALS)
    return analyse(curves, bounds=table.bounds(), source=source, remarks=remarks, **options)


def _problem(table: Table, evaluations: Evaluations, mode: Mode) -> Problem:
    def evaluate(config: Point) -> Iterator[tuple[float, float]]:
        row = table.row[canonical(config)]
        last = int(evaluations.counts[row])
        return zip(evaluations.scores[row, :last].tolist(), evaluations.seconds[row, :last].tolist(), strict=True)

    return Problem(
        space=table.levels.grid,
        evaluate=evaluate,
        mode=mode,
        max_steps=lambda family: table.max_steps[family],
        family=table.family,
        shape=lambda config: TrialShape(best_prefix=bool(evaluations.best_step[table.row[canonical(config)]])),
    )


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


def simulate(problem: Problem, method: Method, n_trials: int, seed: int, seconds: float = math.inf) -> pd.DataFrame:
    """Run one search in simulated time; columns trial, score, steps, seconds, state of a curves table.

    Where its searcher or scheduler raises, a search keeps what it had and ends in a failed trial.

    Args:
        problem: what is to be solved.
        method: algorithm and scheduler.
        n_trials: at most this many.
        seed: of everything random.
        seconds: simulated, the measured ones of the searcher included; the trial that crosses the limit still counts.
    """

    def scheduler_for(config: Point) -> Scheduler:
        family = problem.family(config)
        return method.scheduler.build(
            metric="score",
            mode=problem.mode,
            max_steps=problem.max_steps(family),
            seed=derive(seed, "scheduler", family),
        )

    core = StudyCore(
        method.algorithm.build(
            problem.space,
            metric="score",
            mode=problem.mode,
            seed=seed,
            n_trials=n_trials,
            points=[problem.space.default()],  # which every study tries first, and to its end
        ),
        scheduler_for,
        LocalTrial,
        n_trials=n_trials,
        metric="score",
        mode=problem.mode,
        family=problem.family,
        protect=frozenset({0}),
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
