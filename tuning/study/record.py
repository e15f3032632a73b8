"""The record of a trial that has ended."""

from __future__ import annotations

import json
import os
import platform
import socket
import time
from dataclasses import asdict
from functools import cache

from tuning.basics.environment import installed_version
from tuning.basics.seeds import trial_seed
from tuning.records.schema import StepRecord, TrialRecord
from tuning.study.study import Study
from tuning.study.trial import Trial

LIBRARIES = ("ray", "optuna", "hyperopt", "scikit-learn", "xgboost", "xgboost-cpu", "numpy", "pandas")


def trial_record(trial: Trial, study: Study, run: str, metric: str, mode: str) -> TrialRecord:
    """Return the record of a trial that has ended. run: its id. metric, mode: the user's."""
    steps = [
        StepRecord(step.step, step.score, seconds, step.metrics)
        for step, seconds in zip(trial.steps, trial.step_seconds, strict=True)
    ]
    best = trial.steps[trial.best] if trial.best is not None else None
    return TrialRecord(
        run=run,
        study=study.id,
        customer=study.customer.id,
        trial=trial.number,
        attempt=trial.attempt,
        suggested=trial.suggested,
        told=trial.told,
        config=trial.config,
        family=trial.family,
        algorithm=study.algorithm.name,
        scheduler=study.scheduler.name,
        metric=metric,
        mode=mode,
        state=trial.state,
        reason=trial.reason,
        steps=steps,
        best_step=best.step if best is not None else None,
        score=trial.score,
        fold_scores=best.fold_scores if best is not None else (),
        metrics=best.metrics if best is not None else {},
        study_seed=study.seed,
        seed=trial_seed(study.seed, trial.number),
        started=trial.started or time.time(),
        seconds=trial.seconds,
        fit_seconds=trial.fit_seconds,
        suggest_seconds=trial.suggest_seconds,
        worker=trial.worker or worker_name(),
        versions=versions(),
        error=trial.error,
        lineage=json.dumps([asdict(exploit) for exploit in trial.lineage]) if trial.lineage else None,
        schedule=json.dumps(trial.schedule) if trial.lineage else None,
        spent_steps=trial.spent_steps,
        spent_seconds=trial.spent_seconds,
    )


def worker_name() -> str:
    """Return host:pid of this process."""
    return f"{socket.gethostname()}:{os.getpid()}"


@cache
def versions() -> str:
    """Return the versions that a result depends on, as a JSON object of them by name."""
    found = {name: installed_version(name) for name in ("tuning-service", *LIBRARIES)}
    there = {name: number for name, number in found.items() if number}
    return json.dumps({"python": platform.python_version(), **there})
