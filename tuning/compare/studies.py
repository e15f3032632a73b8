"""From the records of a run to a curves table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pandas as pd

from tuning.basics.wording import command
from tuning.compare.analysis.result import Unfinished
from tuning.definition.compared_methods import CompareOptions, Method
from tuning.errors import RunError
from tuning.planning.studies import compared_id
from tuning.records.schema import FAILED, OK, StudyRecord, TrialRecord
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult


def options_of(result: RunResult) -> CompareOptions:
    """What a run compares; `RunError` when it is no comparison."""
    options = frozen_definition(result.directory, result.term).compare
    if options is None:
        raise RunError(
            f"{result.directory.shown} is not the run of a comparison: its definition has no `compare`. "
            "Start one with: tuning compare DEFINITION --algorithms random,optuna"
        )
    return options


def curves_of(result: RunResult) -> pd.DataFrame:
    """The curves table of a run, of the repetitions that every algorithm has finished.

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
    """The hold-out score of each of these studies' winners: columns method, task, seed, score, mode."""
    rows = [
        (method.label, study.customer, number, study.test_score, study.mode)
        for method, number, study in _studies(result)
    ]
    frame = pd.DataFrame(rows, columns=["method", "task", "seed", "score", "mode"])
    return frame.astype({"score": float})


def unfinished_of(result: RunResult) -> Unfinished | None:
    """How much of a comparison is still to run; None when it is complete."""
    left, planned = result.unfinished, len(result.planned)
    return Unfinished(left, planned, planned - left - sum(1 for _ in _studies(result))) if left else None


def _studies(result: RunResult) -> Iterator[tuple[Method, int, StudyRecord]]:
    """The studies that are compared: method, repetition, record.

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
    """One study's rows of a curves table, in the order in which its trials ended."""
    rows: list[tuple[object, ...]] = [
        (number, record.score, record.spent_steps, record.spent_seconds, record.state)
        for number, record in enumerate(sorted(trials, key=lambda record: record.told), 1)
    ]
    if study.status != OK:
        number, _, *spent, _ = rows[-1] if rows else (1, None, 0, 0.0, FAILED)
        rows = [(number, math.nan, *spent, FAILED)]
    frame = pd.DataFrame(rows, columns=["trial", "score", "steps", "seconds", "state"])
    return frame.astype({"score": float}).assign(mode=study.mode)
