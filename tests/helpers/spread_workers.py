"""What the tests of spread studies share: studies, and workers that run their trials without a cluster."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import schedulers
from schedulers import stopping
from search_spaces import Float, SearchSpace, algorithms
from tuning.basics.seeds import trial_seed
from tuning.data.customers import Customer
from tuning.definition.options import Resources
from tuning.execution.jobs import EndedStudy, TrialJob
from tuning.execution.reports import StepReport, TrialLength
from tuning.execution.spread.open_studies import OpenStudies
from tuning.execution.spread.spread_study import SpreadStudy, SpreadTrial
from tuning.execution.spread.worker import step_reports
from tuning.planning.capacity import Capacity
from tuning.records.ownership import Term
from tuning.records.schema import TrialRecord
from tuning.steps import Step
from tuning.storage.run_directory import RunDirectory
from tuning.study.build import PlannedStudy
from tuning.study.study import Study, StudyTraining

SPACE = SearchSpace([Float("x", -5, 5, default=4.0)])
STEPS = 9
EASY, HARD = 0.0, 100.0  # the level of a customer's scores


def study(
    name: str,
    algorithm: str = "optuna",
    n_trials: int = 20,
    scheduler: str = "asha",
    stop: dict[str, Any] | None = None,
) -> SpreadStudy:
    customer = Customer(name, "")
    spec = Study(
        id=name,
        customer=customer,
        algorithm=algorithms.parse(algorithm),
        scheduler=schedulers.parse(scheduler),
        seed=len(name),
        space=SPACE,
        n_trials=n_trials,
        resources=Resources(),
    )
    rules = [rule.build(metric="score", mode="min") for rule in stopping.parse(stop)]
    return SpreadStudy(PlannedStudy("run", spec, "loss", "min", rules))


def score(name: str, config: Any, step: int) -> float:
    level = HARD if name == "hard" else EASY
    return level + (config["x"] - 1) ** 2 + 3.0 / step


def step_report(step: int, score: float, seconds: float = 0.1) -> StepReport:
    """What the worker of one of these trials reports."""
    return StepReport(Step(step, score), seconds, 0.1, TrialLength(STEPS, True, True, STEPS))


class Workers:
    """Runs trials of `OpenStudies` as Tune would: some slots, one step of each in turn."""

    def __init__(self, studies: OpenStudies, slots: int) -> None:
        self.studies, self.slots = studies, slots
        self.running: list[tuple[str, Any, int]] = []
        self.steps = 0

    def work(self, events: int | None = None) -> None:
        """Until nothing is left, or for some steps only (the driver dies then)."""
        while events is None or self.steps < events:
            while len(self.running) < self.slots and (found := self.studies.next()) is not None:
                self.running.append((*found, 0))
            if not self.running:
                return
            trial_id, job, done = self.running.pop(0)
            self.steps += 1
            report = step_report(done + 1, score(job.study, job.config, done + 1))
            if self.studies.result(trial_id, report) or done + 1 == STEPS:
                self.studies.end(trial_id)
            else:
                self.running.append((trial_id, job, done + 1))


def job_of_one_process(study: SpreadStudy, trial: SpreadTrial) -> TrialJob:
    return TrialJob.from_trial(study.study, trial, trial.checkpoint)


def together(
    tmp_path: Path,
    lives: Iterable[SpreadStudy],
    folder: str = "0001-a",
    ended: list[EndedStudy] | None = None,
    **fields: Any,
) -> OpenStudies:
    """Studies without a run, opened. ended: receives those that have ended."""
    directory = RunDirectory(str(tmp_path))
    last_fit = [] if ended is None else ended
    studies = OpenStudies(
        directory,
        Term(1, folder),
        lives,
        0,
        lambda report: None,
        Capacity(list),
        last_fit.append,
        **{"job_of": job_of_one_process, **fields},
    )
    studies.open()
    return studies


def decisions(live: SpreadStudy) -> list[tuple[Any, ...]]:
    ordered = sorted(live.records, key=lambda record: record.trial)
    return [(r.trial, r.config["x"], r.state, len(r.steps), r.score, r.suggested, r.told) for r in ordered]


def one_at_a_time(study: Study, training: StudyTraining, **fields: Any) -> tuple[list[TrialRecord], str]:
    """A study's records when each trial runs alone, its steps reported as a worker does, and why it ended early."""
    live = SpreadStudy(PlannedStudy("run", study, **fields))
    while (trial := live.next()) is not None:
        seed = trial_seed(study.seed, trial.number)
        reports = step_reports(training, trial.config, seed)
        for report, _ in reports:
            if live.result(trial.number, report):
                break
        live.end(trial.number)
    return live.records, live.core.ended_by
