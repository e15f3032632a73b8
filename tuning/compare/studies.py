"""From the records of a run to a curves table."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pandas as pd

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
    """The curves table of a run's finished studies.

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
        raise RunError(f"{result.directory.shown} has no finished study yet: resume the run.")
    return pd.concat(frames, ignore_index=True)


def hold_out_of(result: RunResult) -> pd.DataFrame:
    """The hold-out score of every finished study's winner: columns method, task, seed, score, mode."""
    rows = [
        (method.label, study.customer, number, study.test_score, study.mode)
        for method, number, study in _studies(result)
    ]
    frame = pd.DataFrame(rows, columns=["method", "task", "seed", "score", "mode"])
    return frame.astype({"score": float})


def _studies(result: RunResult) -> Iterator[tuple[Method, int, StudyRecord]]:
    """The finished studies of a comparison: method, repetition, record."""
    options = options_of(result)
    ended = {record.study: record for record in result.study_records}
    customers = dict.fromkeys(record.customer for record in ended.values())
    for method in options.algorithms:
        for customer in customers:
            for number in range(options.seeds):
                study = ended.get(compared_id(customer, method, number))
                if study is not None:
                    yield method, number, study


def _curve(study: StudyRecord, trials: Iterable[TrialRecord]) -> pd.DataFrame:
    """One study's rows of a curves table, in the order in which its trials ended."""
    rows: list[tuple[object, ...]] = []
    steps, seconds = 0, 0.0
    for number, record in enumerate(sorted(trials, key=lambda record: record.told), 1):
        steps += max(1, sum(step.seconds > 0 for step in record.steps))  # a donor's steps cost this trial nothing
        seconds += record.seconds + record.suggest_seconds
        score = math.nan if record.score is None else record.score
        rows.append((number, score, steps, seconds, record.state))
    if study.status != OK:
        rows = [(max(1, len(rows)), math.nan, steps, seconds, FAILED)]
    frame = pd.DataFrame(rows, columns=["trial", "score", "steps", "seconds", "state"])
    return frame.assign(mode=study.mode)
