"""Loads what studies use before any limit of time counts."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pandas as pd

from tuning.data.customers import Customer
from tuning.definition.definition import define
from tuning.definition.run_spec import RunSpec
from tuning.evaluation.study_data import study_data, train
from tuning.execution.context import WorkerContext, planned_study
from tuning.execution.study_run import run_study
from tuning.execution.worker import Worker
from tuning.models.skops_format import dump_skops
from tuning.records.schema import MODEL
from tuning.study.study import Study
from tuning.user_code import ignore_warnings


def load_libraries(spec: RunSpec, study: Study) -> None:
    """Load what each fork of this process would load for itself: the libraries of searchers, of Ray, and for models."""
    if spec.definition.loggers:
        import ray.tune.logger  # noqa: F401  # for the time that it takes
    if spec.definition.objective is None and spec.definition.save_models:
        dump_skops([])
    with contextlib.suppress(Exception):  # its study says why
        planned = planned_study("", spec, study)
        planned.searcher()
        planned.scheduler({}, 1)


def spare_loading(worker: Worker, study: Study | None) -> None:
    """Load what a worker's studies use, and take back its grace, which is for that; also where no limit needs it.

    study: the first one; None without any.
    """
    limits = worker.context.spec.definition.limits
    timed = limits.trial_seconds is not None or limits.study_seconds is not None
    if study is None or not timed or warm_up(worker.context, study):
        worker.guard.grace = 0.0


def warm_up(context: WorkerContext, study: Study) -> bool:
    """Load and start up all libraries that studies like this one use, so that no limit of time counts it.

    A few trials on twelve made-up rows, and a step of every family. False when that is not possible: an objective
    loads what only it knows.
    """
    task = context.spec.task
    if context.objective is not None or task is None:
        return False
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"number": rng.normal(size=12), "text": list("abcdefabcdef")})
    frame["target"] = rng.normal(size=12) if task == "regression" else [0, 1] * 6
    with contextlib.suppress(Exception), ignore_warnings():
        dump_skops([])
        plain = {"name": "warm-up", "data": "-", "target": "target", "split": {"folds": 2}, "trials": 3}
        definition = define({**plain, "save_models": False})
        data = study_data(frame, definition, task, 0, context.customers.code.families)
        customer = Customer("warm-up")
        spec = replace(context.spec, definition=definition, stop=())
        other = replace(context, spec=spec, _kept={customer.id: (0, data)})
        for _ in run_study(Worker(other), replace(study, id="warm-up", customer=customer, n_trials=3, fixed=None), []):
            pass
        metric = context.customers.metric(data)
        seen = set()
        for config in (study.space.sample(rng) for _ in range(100)):
            if config.get(MODEL) not in seen:
                seen.add(config.get(MODEL))
                next(iter(train(config, data, metric, 0)), None)
    return True
