"""How long a plan's run will take, from a few trials that a child process makes now."""

from __future__ import annotations

import contextlib
import os
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tuning.basics.columnar import Columnar
from tuning.basics.wording import amount
from tuning.data.child_process import ChildProcess
from tuning.data.customers import Customer, about_rows
from tuning.data.prepared import CustomerData, OwnCode
from tuning.data.sampling import ROWS, sample_frames
from tuning.definition.definition import Definition
from tuning.definition.run_spec import RunSpec
from tuning.errors import CustomerError, NotLookedAtError
from tuning.evaluation.study_data import train
from tuning.models.compute import trains_with
from tuning.planning.plan import Plan
from tuning.planning.run_time import RunTime
from tuning.study import warm_start
from tuning.study.study import customers_of

TRIALS, CUSTOMERS = 5, 3  # that are timed, of each; small, typical and large ones
SECONDS = 0.7  # for which trials of one are timed
ENDING = 2.0  # times a trial that a study's end takes: the winner's score on the hold-out, its last fit
TIMED = (0.3, 3.0)  # of what timed trials say: they know neither trials that are stopped early nor full slots
START_S = 15.0  # more at most: Ray's start, the run's end
LARGE = 50_000_000  # bytes of frames in memory that are not passed on to a process
UNKNOWN = "no earlier run of this definition is in the storage, and"


@dataclass(frozen=True)
class TimedTrials:
    """What some full trials of one customer took.

    Attributes:
        rows: about how many it has.
        seconds: of each trial.
        ended: whether all that were begun have ended.
    """

    rows: float
    seconds: tuple[float, ...]
    ended: bool = True


def timed_run_time(plan: Plan, patience: float) -> RunTime:
    """What the plan takes if its trials take as long as a few that are timed now.

    patience: seconds for which the first customer's trials are waited for, the others' half as long.
    """
    if plan.spec.definition.objective is not None:
        return RunTime(f"{UNKNOWN} an objective is not tried before a run")
    if plan.gang is not None or plan.spec.definition.resources.gpus:
        return RunTime(f"{UNKNOWN} a trial takes more than one process here can tell")
    if _bytes_in_memory(plan.spec.definition) > LARGE:
        return RunTime(f"{UNKNOWN} frames in memory are too large to be tried in another process")
    found: list[TimedTrials] = []
    customers = _typical(plan)
    with ChildProcess() as child:
        for place, customer in enumerate(customers):
            limit = patience / 2 if place else patience
            try:
                found.append(child.call("it", limit, _timed, plan.spec, customer, not place))
            except CustomerError:
                continue  # a plan says nothing of those, nor does a run take long over them
            except NotLookedAtError:
                found.append(TimedTrials(customer.about_rows, (), ended=False))
                break
    return _of_timed(plan, found)


def _typical(plan: Plan) -> list[Customer]:
    """A small customer, a typical and a large one."""
    customers = customers_of(plan.studies)
    order = np.argsort(about_rows(customers), kind="stable")
    places = [order[len(order) * (2 * place + 1) // (2 * CUSTOMERS)] for place in range(CUSTOMERS)]
    return list({customers[place].id: customers[place] for place in places}.values())


def _bytes_in_memory(definition: Definition) -> int:
    given = definition.data
    frames = [given] if isinstance(given, pd.DataFrame) else given.values() if isinstance(given, Mapping) else ()
    return sum(int(frame.memory_usage().sum()) for frame in frames if isinstance(frame, pd.DataFrame))


def _timed(spec: RunSpec, customer: Customer, first: bool) -> TimedTrials:
    """In the child: some of the configurations that come first. first: libraries are to be loaded before."""
    with contextlib.ExitStack() as stack:
        quiet = stack.enter_context(open(os.devnull, "w"))
        stack.enter_context(contextlib.redirect_stdout(quiet))
        stack.enter_context(contextlib.redirect_stderr(quiet))
        stack.enter_context(warnings.catch_warnings(action="ignore"))
        stack.enter_context(trains_with(spec.definition.resources.compute))
        code = OwnCode(spec.definition).loaded()
        ((_, frame),) = sample_frames(spec.definition, Columnar.of(Customer, [customer]), code)
        if isinstance(frame, CustomerError):
            raise frame
        customers = CustomerData(spec, code, lambda _: frame)
        data = customers.divided(frame, 0)
        metric = customers.metric(data)
        rng = np.random.default_rng(0)
        configs = warm_start.fitting(spec.portfolio, spec.space)[:TRIALS]
        configs += [spec.space.sample(rng) for _ in range(TRIALS - len(configs))]
        for config in configs if first else ():
            next(iter(train(config, data, metric, 0)), None)
        part = max(1.0, customer.about_rows / len(frame)) if len(frame) in (ROWS, customer.rows) else 1.0
        seconds: list[float] = []
        until = time.perf_counter() + SECONDS
        for config in configs:
            began = time.perf_counter()
            for _ in train(config, data, metric, 0):
                if time.perf_counter() > until and seconds:
                    return TimedTrials(customer.about_rows, tuple(seconds))
            seconds.append(part * (time.perf_counter() - began))
    return TimedTrials(customer.about_rows, tuple(seconds))


def _of_timed(plan: Plan, timed: Sequence[TimedTrials]) -> RunTime:
    known = sorted((each for each in timed if each.seconds), key=lambda each: each.rows)
    if not known:
        return RunTime(f"{UNKNOWN} no trial of a small customer could be timed in a few seconds")
    rows, trials = about_rows(customers_of(plan.studies)), plan.studies.numbers("n_trials")
    per_trial = np.interp(rows, [each.rows for each in known], [float(np.mean(each.seconds)) for each in known])
    at_once = plan.slots if plan.spread else min(plan.slots, max(1, len(plan.shards)))  # packed, a study has one slot
    wall = float((per_trial * (trials + ENDING)).sum()) / at_once
    tried = amount(sum(len(each.seconds) for each in known), "trial")
    source = f"from {tried} of {amount(len(known), 'customer')} timed just now; after a run a plan knows more"
    least, most = TIMED
    upper = most * wall + START_S if all(each.ended for each in timed) else None
    return RunTime(source, least * wall, upper, plan.slots).within(plan.spec.definition.time_budget)
