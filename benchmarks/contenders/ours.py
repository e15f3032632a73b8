"""The service, as a user calls it; what it did is read from its own records."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.contenders.outcome import Outcome, all_warm
from benchmarks.workload import Scenario, definition
from schedulers.direction import worth_of


def everything(scenario: Scenario) -> Outcome:
    """Records, models of all customers, every trial in MLflow.

    Models are not logged there as well: by default that ends at a hundred customers, and `benchmarks.mlflow_cost`
    reports it apart.
    """
    return _run(scenario, mlflow={"record_models": "none"})


def without_mlflow(scenario: Scenario) -> Outcome:
    return _run(scenario, mlflow=False)


def bare(scenario: Scenario) -> Outcome:
    """What can be switched off is off; the records cannot."""
    return _run(scenario, mlflow=False, save_models=False)


def _run(scenario: Scenario, **options: Any) -> Outcome:
    from tuning.driver.runner import TuneRunner

    folder = f"{scenario.folder}/runs/{time.time_ns()}"
    runner = TuneRunner(definition(scenario, **options))
    result = runner.run(folder, progress=False)
    result.leaderboard()
    returned = time.time()
    trials = result.trial_records
    return Outcome(
        began=returned,
        returned=returned,
        events=[(record.started + record.seconds, 1) for record in trials],
        warm=all_warm((record.started + record.seconds, record.worker) for record in result.study_records),
        winners={
            record.customer: tuple(worth_of(score, record.mode) for score in (record.cv_score, record.test_score))
            for record in result.study_records
        },
        details={
            "folder": folder,
            "fit_seconds": sum(record.fit_seconds for record in trials),
            "suggest_seconds": sum(record.suggest_seconds for record in trials),
            "steps": sum(len(record.steps) for record in trials),
            "without_model": sum(record.status != "ok" for record in result.study_records),
        },
    )
