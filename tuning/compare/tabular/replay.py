"""Searching recorded evaluations again, in simulated time: 20 seeds cost seconds.

The searchers, the schedulers and their driver are those of a real run; only the training is a look-up. Seconds
are the recorded ones of the evaluation plus the measured ones of the sampler.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Unpack

import numpy as np
import pandas as pd

from schedulers.direction import Mode
from search_spaces.values import Point
from tuning.basics.seeds import derive
from tuning.compare.comparison import AnalysisOptions, Comparison, analyse
from tuning.compare.tabular.simulation import DEFAULT_FIRST, STARTS, Problem, simulate
from tuning.compare.tabular.table import Evaluations, Table
from tuning.definition.compared_methods import Method, parse_methods
from tuning.errors import PlanError
from tuning.notes import Note
from tuning.planning.search_checks import random_starts
from tuning.planning.studies import distinct
from tuning.records.schema import canonical
from tuning.study.trial import TrialShape

TRIALS = 50  # of a search, where no budget is given


def replay(
    table: Table,
    algorithms: str | Iterable[str | Mapping[str, object] | Method],
    seeds: int = 10,
    trials: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    start: str = DEFAULT_FIRST,
    workers: int = 1,
) -> pd.DataFrame:
    """The curves of every method on every task of a table, with `seeds` repetitions.

    Args:
        table: recorded evaluations.
        algorithms: see `parse_methods`.
        seeds: repetitions.
        trials: per search (default: 50, or no limit where `seconds` are given).
        seconds: simulated, per search; the trial that crosses the limit still counts.
        seed: of everything random.
        start: "default" tries the default configuration first, as every study does, so that all methods start at the
            same point; "none" starts with the searcher's own.
        workers: processes.

    Raises:
        PlanError: fewer than two methods, or a budget or start that makes no sense.
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
    if start not in STARTS:
        raise PlanError(f"start is {start!r}; it must be one of {', '.join(STARTS)}.")
    limit = trials if trials is not None else TRIALS if seconds is None else 100 * len(table.configs)
    arguments = (table, limit, seconds if seconds is not None else math.inf, seed, start)
    jobs = [(method, task, number) for method in methods for task in table.tasks for number in range(seeds)]
    if workers > 1:
        from joblib import Parallel, delayed

        chunks = [jobs[first::workers] for first in range(workers)]
        done = Parallel(n_jobs=workers)(delayed(_searches)(chunk, *arguments) for chunk in chunks)
        frames = [frame for part in done for frame in part]
        place = {method.label: position for position, method in enumerate(methods)}
        frames.sort(key=lambda frame: place[frame["method"].iloc[0]])
    else:
        frames = _searches(jobs, *arguments)
    return pd.concat(frames, ignore_index=True)


def compare_on_table(
    table: Table,
    algorithms: str | Iterable[str | Mapping[str, object] | Method],
    seeds: int = 10,
    trials: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
    start: str = DEFAULT_FIRST,
    workers: int = 1,
    source: str = "",
    **options: Unpack[AnalysisOptions],
) -> Comparison:
    """`replay`, then `analyse` with the table's optimum and median as bounds and its exact random search.

    Args:
        table, algorithms, seeds, trials, seconds, seed, start, workers: as in `replay`.
        source, options: as in `analyse`.
    """
    methods = parse_methods(algorithms)
    curves = replay(table, methods, seeds, trials, seconds, seed, start, workers)
    options.setdefault("axis", "trials" if seconds is None else "seconds")
    remarks: Iterable[Note] = ()
    if seconds is None:
        used = distinct(method.algorithm for method in methods)
        remarks = random_starts(used, table.levels.grid, trials or TRIALS)
    bounds = table.bounds()
    exact = exact_random_regret(table, bounds, int(curves["trial"].max()), start)
    return analyse(curves, bounds=bounds, random_search=exact, source=source, remarks=remarks, **options)


def exact_random_regret(table: Table, bounds: pd.DataFrame, n_trials: int, start: str) -> dict[str, np.ndarray]:
    """Per task the normalised regret of random search's exact expectation after 1, 2, … trials."""
    counts = np.arange(1, n_trials + 1)
    first = table.levels.grid.default() if start == DEFAULT_FIRST else None
    limits = zip(bounds["task"], bounds["best"].to_numpy(float), bounds["reference"].to_numpy(float), strict=True)
    found = {}
    for task, best, reference in limits:
        if best != reference:
            found[task] = (table.random_search(task, counts, first) - best) / (reference - best)
    return found


def _searches(
    jobs: Sequence[tuple[Method, str, int]], table: Table, n_trials: int, seconds: float, seed: int, start: str
) -> list[pd.DataFrame]:
    frames = []
    for method, task, number in jobs:
        replicates = table.evaluations[task]
        # Paired: the same task and repetition start every method from the same seed; a twin differs on purpose.
        own = derive(seed, "replay", task, number, *([method.repeat] if method.repeat else []))
        problem = _problem(table, replicates[number % len(replicates)], table.modes[task])
        curve = simulate(problem, method, n_trials, own, seconds, start)
        frames.append(curve.assign(method=method.label, task=task, seed=number, mode=table.modes[task]))
    return frames


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
