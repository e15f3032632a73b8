"""Comparing algorithms on data: a run of the engine, then its analysis."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, Unpack

import pandas as pd

from tuning.basics.wording import command
from tuning.compare.analysis.curves import Curves
from tuning.compare.analysis.result import Unfinished
from tuning.compare.comparison import AnalysisOptions, Comparison, analyse
from tuning.definition.compared_methods import CompareOptions, Method
from tuning.definition.definition import Definition, define
from tuning.definition.given import definition_of, keys_of
from tuning.driver.runner import TuneRunner
from tuning.errors import DefinitionError, RunError
from tuning.planning.search_checks import random_starts
from tuning.planning.studies import compared_id, distinct
from tuning.records.schema import FAILED, OK, StudyRecord, TrialRecord
from tuning.runs.plan_file import frozen_definition, read_spec
from tuning.runs.results import RunResult

CUSTOMER = "customer"
CURVES, PAGE = "curves.parquet", "comparison.html"
# Of a study under a budget of seconds; reaching it first would be a surprise.
MOST_TRIALS = 10_000
Given: TypeAlias = Definition | TuneRunner | Mapping[str, object] | str | Path | None


def compare(
    definition: Given = None,
    algorithms: str | Iterable[str | Mapping[str, object] | Method] | None = None,
    seeds: int | None = None,
    *,
    trials: int | None = None,
    seconds: float | None = None,
    baseline: str | None = None,
    run_dir: str | None = None,
    resume: bool = False,
    progress: bool | str = True,
    in_process: bool = False,
    **fields: Any,
) -> Comparison:
    """Run every algorithm on every customer with every seed, and compare.

    >>> found = compare(data="customers/*.csv", target="churned", algorithms="random,optuna,optuna+asha", seeds=5)
    ... # doctest: +SKIP
    >>> found                                  # the sentence and the table
    >>> found.plot.regret("seconds")
    >>> found.save("comparison.html")

    The run directory keeps `curves.parquet` and `comparison.html`; `comparison_of(run_dir)` gives the result again.
    What is not given comes from the definition's `compare`.

    Args:
        definition: a `Definition`, a mapping of its keys, a YAML file or a runner; or None and its fields as keywords.
        algorithms: see `parse_methods`; without `+scheduler` every trial runs to its end.
        seeds: repetitions (default 10).
        trials: of every study (default: the definition's).
        seconds: of every study, instead of `trials`.
        baseline: an algorithm named before looking at results.
        run_dir: of the new run; with `resume` that of a run to continue, if it is there.
        resume: continue when the folder holds this comparison already.
        progress: see `TuneRunner.run`.
        in_process: without Ray, for debugging.
        **fields: of the definition; they replace its own.

    Raises:
        DefinitionError: fewer than two algorithms, an unknown one, a missing extra.
        PlanError: an algorithm that cannot search the space. Otherwise as `TuneRunner.run`.
    """
    asked = {"algorithms": algorithms, "seeds": seeds, "baseline": baseline, "seconds": seconds}
    made = comparing(definition, {name: value for name, value in asked.items() if value is not None}, trials, fields)
    result = TuneRunner(made).run(run_dir, progress=progress, in_process=in_process, resume=resume)
    return keep(result)


def comparing(
    definition: Given,
    asked: Mapping[str, object],
    trials: int | None,
    fields: Mapping[str, object],
) -> Definition:
    """Return a definition with `compare` filled in; a comparison keeps no models."""
    if trials is not None and "seconds" in asked:
        raise DefinitionError("Give trials or seconds, not both: the budget decides what is compared.")
    budget = MOST_TRIALS if "seconds" in asked else trials
    changes = {**fields, "save_models": False} | ({} if budget is None else {"trials": budget})
    made = definition_of(definition, changes)
    before = {} if made.compare is None else made.compare.to_dict()
    if "algorithms" not in before and "algorithms" not in asked:
        raise DefinitionError("There are no algorithms to compare; give two or more, such as random,optuna.")
    return define({**keys_of(made), "compare": {**before, **asked}})


def comparison_of(run_dir: str | Path | RunResult, **options: Unpack[AnalysisOptions]) -> Comparison:
    """Return the comparison of a run; of an unfinished one, of the repetitions that every algorithm has finished.

    Args:
        run_dir: the run.
        **options: those of `analyse`; default: the run's own baseline and axis.

    Raises:
        RunError: it is no comparison, or no repetition is finished yet.
    """
    result = run_dir if isinstance(run_dir, RunResult) else RunResult(run_dir)
    compared = options_of(result)
    chosen: AnalysisOptions = {"noun": CUSTOMER, "axis": compared.axis, "baseline": compared.baseline, **options}
    spec = read_spec(result.directory, result.term)
    algorithms = distinct(method.algorithm for method in compared.algorithms)
    return analyse(
        Curves.from_frame(curves_of(result)),
        source=result.directory.shown,
        hold_out_scores=hold_out_of(result),
        unfinished=unfinished_of(result),
        remarks=random_starts(algorithms, spec.space, spec.definition.trials),
        **chosen,
    )


def keep(result: RunResult, **options: Unpack[AnalysisOptions]) -> Comparison:
    """Analyse a run, and keep its curves and its page in the run directory. options: as in `comparison_of`."""
    from tuning.compare.report.page import page

    found = comparison_of(result, **options)
    sink = io.BytesIO()
    curves_of(result).to_parquet(sink)
    result.directory.write(CURVES, sink.getvalue())
    result.directory.write(PAGE, page(found).encode())
    return found


def options_of(result: RunResult) -> CompareOptions:
    """Return what a run compares; `RunError` when it is no comparison."""
    options = frozen_definition(result.directory, result.term).compare
    if options is None:
        raise RunError(
            f"{result.directory.shown} is not the run of a comparison: its definition has no `compare`. "
            "Start one with: tuning compare DEFINITION --algorithms random,optuna"
        )
    return options


def curves_of(result: RunResult) -> pd.DataFrame:
    """Return the curves table of a run, of the repetitions that every algorithm has finished.

    A study that ended without a model failed, whatever its trials: the user has nothing from it.
    """
    trials: dict[str, list[TrialRecord]] = {}
    for record in result.trial_records:
        trials.setdefault(record.study, []).append(record)
    frames = [
        _curve(study, trials.get(study.study, ())).assign(method=method.label, task=study.customer, seed=number)
        for method, number, study in _studies(result)
    ]
    if not frames:
        raise RunError(
            f"{result.directory.shown} has no repetition yet that every algorithm has finished. "
            f"Go on with: {command('resume', result.directory.shown)}"
        )
    return pd.concat(frames, ignore_index=True)


def hold_out_of(result: RunResult) -> pd.DataFrame:
    """Return the hold-out score of each of these studies' winners: columns method, task, seed, score, mode."""
    rows = [
        (method.label, study.customer, number, study.test_score, study.mode)
        for method, number, study in _studies(result)
    ]
    frame = pd.DataFrame(rows, columns=["method", "task", "seed", "score", "mode"])
    return frame.astype({"score": float})


def unfinished_of(result: RunResult) -> Unfinished | None:
    """Return how much of a comparison is still to run; None when it is complete."""
    left, planned = result.unfinished, len(result.planned)
    return Unfinished(left, planned, planned - left - sum(1 for _ in _studies(result))) if left else None


def _studies(result: RunResult) -> Iterator[tuple[Method, int, StudyRecord]]:
    """Yield the compared studies: method, repetition, record.

    Algorithms are paired by customer and repetition, so one of them that has not finished leaves out the others.
    """
    options = options_of(result)
    unfinished = set(result.unfinished_studies.to_pylist())
    ended = {record.study: record for record in result.study_records if record.study not in unfinished}
    repetitions = [
        (customer, number)
        for customer in dict.fromkeys(sorted(result.planned.values()))
        for number in range(options.seeds)
        if all(compared_id(customer, method, number) in ended for method in options.algorithms)
    ]
    for method in options.algorithms:
        for customer, number in repetitions:
            yield method, number, ended[compared_id(customer, method, number)]


def _curve(study: StudyRecord, trials: Iterable[TrialRecord]) -> pd.DataFrame:
    """Return one study's rows of a curves table, in the order in which its trials ended."""
    rows: list[tuple[object, ...]] = [
        (number, record.score, record.spent_steps, record.spent_seconds, record.state)
        for number, record in enumerate(sorted(trials, key=lambda record: record.told), 1)
    ]
    if study.status != OK:
        number, _, *spent, _ = rows[-1] if rows else (1, None, 0, 0.0, FAILED)
        rows = [(number, math.nan, *spent, FAILED)]
    frame = pd.DataFrame(rows, columns=["trial", "score", "steps", "seconds", "state"])
    return frame.astype({"score": float}).assign(mode=study.mode)
