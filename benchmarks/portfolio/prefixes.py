"""What one study would have handed over after each of its trials: the error on rows that it was not given, its cost.

A study with fewer trials is the beginning of one with more: the same configurations, seeds and folds. So one search
with the most trials answers for every smaller number, ensemble and last fit included, and each trial is fitted again
once.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

import numpy as np

from benchmarks.quality.defaults import nothing
from benchmarks.quality.rounds import Round, error
from benchmarks.quality.sets import CLASSES, TARGET
from benchmarks.quality.tools import METRICS, SPLITS
from schedulers.direction import loss_of
from tuning.definition.definition import define
from tuning.evaluation.constant import find_constant
from tuning.evaluation.ensemble import find_ensemble
from tuning.evaluation.refit import AllRows, Refits
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import choose
from tuning.execution.worker import WorkerContext, planned_study
from tuning.models.compute import trains_with
from tuning.models.customer_model import CustomerModel
from tuning.models.member import Member
from tuning.models.pooled import POOL, PooledMember
from tuning.planning.plan import make_plan
from tuning.records.schema import FINISHED, TrialRecord
from tuning.storage.run_directory import RunDirectory
from tuning.study.recorded_study import RecordedStudy

T = TypeVar("T")


@dataclass(frozen=True)
class Prefixes:
    """What came of one table.

    rows, columns: of what was given. nothing: the error of what is known without a model. trial_s: CPU seconds of each
    trial. after: one entry per number of trials.
    """

    table: str
    task: str
    rows: int
    columns: int
    nothing: float
    trial_s: list[float]
    after: list[After]


@dataclass(frozen=True)
class After:
    """What is handed over after so many trials.

    error: on the rows that nobody was given; alone: that of the winner without its ensemble. folds: the score that the
    folds give it, smaller is better. s: CPU seconds of all trials, the ensemble and the fits. members: of the ensemble.
    """

    error: float
    alone: float
    folds: float
    s: float
    members: int


def prefixes(one: Round, trials: int) -> Prefixes:
    """What a study of this many trials, everything else at its default, would have handed over after each of them."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "given.parquet")
        one.given.to_parquet(path)
        keys = {"target": TARGET, "metric": METRICS[one.customer.task], "trials": trials, "storage": folder}
        keys["split"] = SPLITS[one.customer.task]
        plan = make_plan(define({"data": {one.key.replace("/", "_"): str(path)}, **keys}), in_process=True)
        study = plan.studies[0]
        context = WorkerContext.open(RunDirectory(folder), "prefixes", plan.spec, [study])
        with trains_with(study.resources.compute):
            data = context.data(study.customer)
            assert isinstance(data, StudyData)
            searched = iter(RecordedStudy(planned_study("prefixes", plan.spec, study), context.training(study, data)))
            records: list[TrialRecord] = []
            trial_s: list[float] = []
            while (found := _timed(lambda: next(searched, None)))[0] is not None:
                records.append(found[0])
                trial_s.append(found[1])
            answers = FittedOnce(one, data, context)
            after = [answers.after(records[:count], sum(trial_s[:count])) for count in range(1, len(records) + 1)]
    return Prefixes(
        table=one.key,
        task=plan.spec.task or "",
        rows=len(one.given),
        columns=one.given.shape[1] - 1,
        nothing=error(one, nothing(one)),
        trial_s=trial_s,
        after=after,
    )


@dataclass
class FittedOnce:
    """Fits each trial once, on the rows of the search and on all, and asks each mixture of trials once.

    pooled: what answers in place of a record of the pool.
    """

    one: Round
    data: StudyData
    context: WorkerContext
    pooled: PooledMember | None = None
    _fitted: dict[int, tuple[Member, float]] = field(default_factory=dict)
    _errors: dict[tuple[tuple[int, int], ...], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._refits, self._all_rows = Refits(self.data), AllRows(self.data)
        self._metric = self.context.customers.metric(self.data)
        self._mode = self.context.spec.mode
        self._constant = find_constant(self.data, self._metric)

    def after(self, records: list[TrialRecord], spent: float) -> After:
        """What is handed over after these trials. spent: CPU seconds for them."""
        winner = choose(records).winner
        if winner is None or winner.score is None:
            return After(math.inf, math.inf, math.inf, spent, 0)
        ensemble, seconds = _timed(lambda: find_ensemble(records, winner, self.data, self._metric))
        picked = ((winner, 1),) if ensemble is None else ensemble.members
        score = winner.score if ensemble is None else ensemble.score
        alone = self.error_of(((winner, 1),))
        baseline = [record for record in records[:1] if record.state == FINISHED]
        fits = {record.trial: record for record in (*baseline, *(record for record, _ in picked))}
        seconds += sum(self._fit(record)[1] for record in fits.values())
        if self._constant is not None and not loss_of(score, self._mode) < loss_of(self._constant.score, self._mode):
            found = self._error_of_members((self._constant.member(self.data, all_rows=True),))
            return After(found, alone, loss_of(self._constant.score, self._mode), spent + seconds, 0)
        return After(self.error_of(picked), alone, loss_of(score, self._mode), spent + seconds, len(picked))

    def _fit(self, record: TrialRecord) -> tuple[Member, float]:
        """(its model of all rows, CPU seconds of both fits)."""
        if record.trial not in self._fitted:
            self._fitted[record.trial] = _timed(lambda: self._all_rows.of(self._refits.of(record)[0], record))
        return self._fitted[record.trial]

    def _member(self, record: TrialRecord) -> Member:
        if record.family == POOL:
            assert self.pooled is not None
            return self.pooled
        return self._fit(record)[0]

    def error_of(self, picked: tuple[tuple[TrialRecord, int], ...]) -> float:
        """On the rows that nobody was given, of the mean of these trials, each with how often it was picked."""
        key = tuple(sorted((record.trial, times) for record, times in picked))
        if self.pooled is not None or key not in self._errors:
            picks = sum(times for _, times in picked)
            members = [replace(self._member(record), weight=times / picks) for record, times in picked]
            self._errors[key] = self._error_of_members(tuple(members))
        return self._errors[key]

    def _error_of_members(self, members: tuple[Member, ...]) -> float:
        one, model = self.one, CustomerModel("", self.data.task, members, self.data.example)
        if one.customer.task != CLASSES:
            return error(one, np.asarray(model.predict(one.unseen)))
        order = [list(model.classes_).index(label) for label in one.labels]
        return error(one, np.asarray(model.predict_proba(one.unseen))[:, order])


def _timed(call: Callable[[], T]) -> tuple[T, float]:
    """(what it gives, CPU seconds of this process)."""
    began = time.process_time()
    found = call()
    return found, time.process_time() - began
