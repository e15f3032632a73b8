"""The run's pool as a job: a fixed fit over the rows of all customers, in a batch of its own before all others.

To its worker each customer's data is what a trial is to a study. A customer with data that has ended a worker is
left out of the pool. What happens beyond that costs the run its pool, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np

from tuning.basics.columnar import Columnar
from tuning.basics.seeds import derive
from tuning.basics.stopwatch import Clock
from tuning.basics.timing import hang_seconds
from tuning.data.customers import one_each, places_of
from tuning.definition.customer_limits import Limits
from tuning.errors import TuningError, reason_of
from tuning.evaluation.fleet import fleet_weights
from tuning.evaluation.pooling import LEAST_CUSTOMERS, MOST_ROWS, MOST_ROWS_EACH, PoolRows, fitted_pool
from tuning.evaluation.study_data import StudyData
from tuning.execution.crash_log import CONCLUDING, Crash
from tuning.execution.limits import hard
from tuning.execution.worker import Worker, planned_study
from tuning.models.compute import trains_with
from tuning.models.pooled import BOOSTERS, RunPool, booster_here
from tuning.notes import Note, PoolCode
from tuning.planning.plan_notes import AUTO, AUTO_CUSTOMERS
from tuning.records.schema import FAILED, FINISHED, MODEL, POOL_STUDY, StepRecord, TrialRecord
from tuning.runs.plan_file import RecordedPlan, read_pool_only
from tuning.study.record import versions, worker_name
from tuning.study.recorded_study import RecordedStudy
from tuning.study.study import Study, customers_of
from tuning.user_code import own_settings

POOL_SECONDS = 900.0  # for which a run waits for its pool
PANEL = 16  # customers that say what the fleet's weights are, each by the first trial of its study
MOST_LEFT_OUT = 5  # customers with data that has ended a worker; with more, the pool is given up


def train_pool(worker: Worker, plan: RecordedPlan, found: Sequence[Crash]) -> tuple[RunPool, TrialRecord]:
    """Return the pool of a run's customers, or why there is none, and its record. found: how earlier workers ended."""
    clock = Clock()
    why = _why_not_again(found, plan.spec.definition.limits)
    pool = _trained(worker, plan, found) if why is None else RunPool(why)
    return pool, _record(plan, pool, clock, attempt=len(found) + (why is None))


def _why_not_again(found: Sequence[Crash], limits: Limits) -> Note | None:
    """Return why its training is given up after these ends of its workers; None where it is tried."""
    fits = [crash for crash in found if crash.trial == CONCLUDING]
    lost = [crash for crash in found if crash.trial >= 0]
    if any(crash.timed_out for crash in fits):
        return PoolCode.POOL_TOOK_LONGER(limit=POOL_SECONDS)
    if len(fits) >= limits.crashes_before_quarantine:
        return PoolCode.POOL_ENDED_WORKER(times=len(fits), cause=fits[-1].cause)
    if len(lost) > MOST_LEFT_OUT:
        return PoolCode.POOL_DATA_ENDED_WORKER(customers=len(lost), cause=lost[-1].cause)
    return None


def _trained(worker: Worker, plan: RecordedPlan, found: Sequence[Crash]) -> RunPool:
    with own_settings():
        try:
            return _fitted(worker, plan, {crash.trial: crash.cause for crash in found if crash.trial >= 0})
        except TuningError:
            raise
        except (Exception, SystemExit) as error:  # of the user's own code, or for lack of memory
            return RunPool(reason_of(error))


def _fitted(worker: Worker, plan: RecordedPlan, lost: Mapping[int, str]) -> RunPool:
    """Return the pool. lost: how the data of customers has ended workers, by the customer's place in the plan.

    A customer with rows that cannot be used is left out with the reason, which its own study will find, too.
    """
    context, definition = worker.context, plan.spec.definition
    seed, limits = definition.seed, definition.limits
    allowed = min(hard(each, grace=0.0) for each in (limits.trial_seconds, limits.study_seconds))
    pool_only = read_pool_only(context.directory, plan.spec)
    planned = [plan.studies, plan.ended, *([] if pool_only is None else [pool_only])]
    customers = one_each(customers_of(Columnar.joined(planned)))
    names = customers.texts("id").to_pylist()
    left_out = {names[place]: PoolCode.POOL_READING_ENDED_WORKER(cause=cause) for place, cause in lost.items()}
    found: dict[str, PoolRows] = {}
    panel: dict[str, tuple[int, StudyData]] = {}
    rows, metric = 0, None
    for place in sorted(range(len(names)), key=lambda place: derive(seed, "pool", names[place])):
        if rows >= MOST_ROWS:  # of very many customers a sample
            break
        if place in lost:
            continue
        name, customer = names[place], customers[place]
        try:
            worker.part(place, min(hang_seconds(customer.about_rows, of_objective=False), allowed))
            data = context.customers.prepared(customer)
        except (Exception, SystemExit) as error:  # of the rows, or of the user's `prepare`
            left_out[name] = reason_of(error)
        else:
            found[name], metric = PoolRows.of(data), metric or context.customers.metric(data)
            rows += min(len(found[name].search), MOST_ROWS_EACH)
            if len(panel) < PANEL and len(found[name].search) <= MOST_ROWS_EACH:
                panel[name] = place, data
    worker.part(CONCLUDING, POOL_SECONDS)
    least = AUTO_CUSTOMERS if definition.pool == AUTO else LEAST_CUSTOMERS
    pool = fitted_pool(dict(sorted(found.items())), left_out, seed, metric, least)
    if metric is None or pool.whole is None:
        return pool
    first = {}
    for name, (place, data) in panel.items():
        worker.part(place, min(hang_seconds(customers[place].about_rows, of_objective=False), allowed))
        with suppress(Exception, SystemExit):  # its own study says why
            if (answer := _first_answer(worker, plan, name, data)) is not None:
                first[name] = data, answer
    worker.part(CONCLUDING, POOL_SECONDS)
    return replace(pool, weights=fleet_weights(pool, first, metric))


def _first_answer(worker: Worker, plan: RecordedPlan, name: str, data: StudyData) -> np.ndarray | None:
    """Return what the first trial of a customer's study says of the rows that the folds left out, fold after fold."""
    study = _study_of(plan, name)
    if study is None or data.kept is None or study.scheduler.pauses:
        return None
    planned = planned_study(plan.run, plan.spec, study)
    with trains_with(study.resources.compute):
        record = next(iter(RecordedStudy(planned, worker.context.training(study, data))), None)
    found = None if record is None else data.kept.of(record.config, record.seed)
    data.kept.clear()
    return None if found is None else np.concatenate(found.folds)


def _study_of(plan: RecordedPlan, name: str) -> Study | None:
    """Return the first study of a customer; None where it has none."""
    for studies in (plan.studies, plan.ended):
        (place,) = places_of([name], customers_of(studies))
        if place >= 0:
            return studies[int(place)]
    return None


def _record(plan: RecordedPlan, pool: RunPool, clock: Clock, attempt: int) -> TrialRecord:
    """Return the pool as a trial of its run."""
    family = pool.whole.family if pool.whole is not None else booster_here()
    scores = pool.forms[0].scores if pool.forms else ()
    means = [sum(scores[:count]) / count for count in range(1, len(scores) + 1)]
    return TrialRecord(
        run=plan.run,
        study=POOL_STUDY,
        customer="",
        trial=0,
        attempt=attempt,
        suggested=0,
        told=0,
        config={MODEL: family, **BOOSTERS[family]},
        family=family,
        algorithm="",
        scheduler="",
        metric=plan.spec.metric,
        mode=plan.spec.mode,
        state=FINISHED if pool.whole is not None else FAILED,
        reason=pool.without,
        steps=[StepRecord(step, score) for step, score in enumerate(means, 1)],
        best_step=len(scores) or None,
        score=means[-1] if means else None,
        fold_scores=scores,
        metrics={
            "customers": float(len(pool.customers)),
            "left_out": float(len(pool.left_out)),
            **{f"weight_{name}": weight for name, weight in pool.weights.items()},
        },
        study_seed=plan.spec.definition.seed,
        seed=plan.spec.definition.seed,
        started=clock.started,
        seconds=clock.wall,
        fit_seconds=clock.cpu,
        suggest_seconds=0.0,
        worker=worker_name(),
        versions=versions(),
    )
