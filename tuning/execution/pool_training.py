"""The training of a run's pool, before its studies: what a worker does that has it for a job.

As with a study, a worker that dies is followed by another one, which reads the marks of those before it. A customer
whose data has ended one is left out of the pool. What happens beyond that costs the run its pool, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tuning.basics.columnar import Columnar
from tuning.basics.seeds import derive
from tuning.basics.stopwatch import Clock
from tuning.basics.timing import hang_seconds
from tuning.data.customers import Customer, one_each
from tuning.definition.customer_limits import Limits
from tuning.errors import TuningError, code_of, reason_of
from tuning.evaluation.pooling import LEAST_CUSTOMERS, MOST_ROWS, MOST_ROWS_EACH, PoolRows, fitted_pool
from tuning.execution.context import WorkerContext, WorkerRun
from tuning.execution.crash_log import CONCLUDING, LOADING, STARTING, Crash, ProgressMarker, crashes
from tuning.execution.limits import MemoryLimit, TimeLimits, hard
from tuning.execution.nodes import Nodes, ray_nodes
from tuning.execution.reports import Listener, PartWritten, WorkerError
from tuning.execution.tune_reports import report_to_tune
from tuning.models.pooled import BOOSTERS, RunPool, booster_here
from tuning.notes import Note, PoolCode
from tuning.planning.pool_notes import AUTO, AUTO_CUSTOMERS, POOL_SECONDS
from tuning.records.ownership import check_there
from tuning.records.parts import pool_part
from tuning.records.schema import FAILED, FINISHED, MODEL, POOL_STUDY, StepRecord, TrialRecord
from tuning.runs.plan_file import RecordedPlan, read_beside, read_plan
from tuning.runs.pool_file import pool_settled, write_pool
from tuning.study.record import versions, worker_name
from tuning.study.study import customers_of
from tuning.user_code import ignore_warnings, own_settings

MOST_LEFT_OUT = 5  # customers whose data has ended a worker: beyond, the pool is given up


def work_pool(run: WorkerRun, shard: int, report: Listener, nodes: Nodes | None = None) -> None:
    """Train the pool of a run, settle it and record it, unless it is settled.

    shard: under which number its worker leaves marks and its record. nodes: as of `work_shard`.
    """
    directory = run.directory
    if pool_settled(directory):
        return
    plan = read_plan(directory, run.term, run.spec)
    limits = plan.spec.definition.limits
    found = [] if nodes is None else crashes(directory, run.term, shard, WORK, fetch=nodes.fetch, lost=nodes.lost)
    clock = Clock()
    with ExitStack() as stack:
        watch = PoolWatch()
        if nodes is not None:
            marker = stack.enter_context(ProgressMarker(directory, run.term, shard, nodes.name))
            stack.enter_context(MemoryLimit(limits.memory_gb, slots=1))
            watch = MarkedPoolWatch(marker, stack.enter_context(TimeLimits(Limits(), marker.stack)), limits)
        why = _why_not_again(found, limits)
        pool = _trained(run, plan, found, watch) if why is None else RunPool(why)
    check_there(directory, run.term)
    attempt = len(found) + (why is None)
    part, data = pool_part(run.term, shard, _recorded(plan, pool, clock, attempt))
    directory.write(part, data)
    write_pool(directory, pool)
    report(PartWritten(part))


def run_pool(run: WorkerRun, shard: int) -> None:
    """The same in a worker of Tune's; never raises, as `run_shard`."""
    try:
        work_pool(run, shard, report_to_tune, ray_nodes())
    except Exception as error:
        report_to_tune(WorkerError(f"{type(error).__name__}: {error}", code_of(error)))


class PoolWatch:
    """Hears what the worker turns to."""

    def loading(self, place: int, customer: Customer) -> None:
        """To a customer's data. place: of the customer in the plan."""

    def fitting(self) -> None:
        """To the fits."""


@dataclass
class MarkedPoolWatch(PoolWatch):
    """Notes what the worker turns to, and ends it where that takes too long."""

    marker: ProgressMarker
    guard: TimeLimits
    limits: Limits

    def loading(self, place: int, customer: Customer) -> None:
        self.marker.at(place, LOADING)
        allowed = [hard(each, grace=0.0) for each in (self.limits.trial_seconds, self.limits.study_seconds)]
        self.guard.beside(min(hang_seconds(customer.about_rows, of_objective=False), *allowed))

    def fitting(self) -> None:
        self.marker.at(STARTING, CONCLUDING)
        self.guard.beside(POOL_SECONDS)


def _why_not_again(found: Sequence[Crash], limits: Limits) -> Note | None:
    """Return why its training is given up after these ends of its workers; None where it is tried."""
    fits = [crash for crash in found if crash.position == STARTING]
    if any(crash.timed_out for crash in fits):
        return PoolCode.POOL_TOOK_LONGER(limit=POOL_SECONDS)
    if len(fits) >= limits.crashes_before_quarantine:
        return PoolCode.POOL_ENDED_WORKER(times=len(fits), cause=fits[-1].cause)
    if len(found) - len(fits) > MOST_LEFT_OUT:
        return PoolCode.POOL_DATA_ENDED_WORKER(customers=len(found) - len(fits), cause=found[-1].cause)
    return None


def _trained(run: WorkerRun, plan: RecordedPlan, found: Sequence[Crash], watch: PoolWatch) -> RunPool:
    """The pool of a run's customers, or why there is none. found: how earlier workers ended.

    A customer whose rows cannot be used is left out with the reason, which its own study will find, too.
    """
    with ignore_warnings(), own_settings():
        try:
            return _fitted(run, plan, found, watch)
        except TuningError:
            raise
        except (Exception, SystemExit) as error:  # of the user's own code, or for lack of memory
            return RunPool(reason_of(error))


def _fitted(run: WorkerRun, plan: RecordedPlan, before: Sequence[Crash], watch: PoolWatch) -> RunPool:
    definition = plan.spec.definition
    seed, least = definition.seed, AUTO_CUSTOMERS if definition.pool == AUTO else LEAST_CUSTOMERS
    beside = read_beside(run.directory, plan.spec)
    planned = [plan.studies, plan.ended, *([] if beside is None else [beside])]
    customers = one_each(customers_of(Columnar.joined(planned)))
    names = customers.texts("id").to_pylist()
    order = sorted(range(len(names)), key=lambda place: derive(seed, "pool", names[place]))  # of very many a sample
    context = WorkerContext.open(run.directory, plan.run, plan.spec)
    found: dict[str, PoolRows] = {}
    lost = {crash.position: crash.cause for crash in before if crash.position != STARTING}
    left_out = {names[place]: PoolCode.POOL_READING_ENDED_WORKER(cause=cause) for place, cause in lost.items()}
    rows, metric = 0, None
    for place in order:
        if rows >= MOST_ROWS:
            break
        if place in lost:
            continue
        name = names[place]
        try:
            watch.loading(place, customers[place])
            data = context.customers.prepared(customers[place])
        except (Exception, SystemExit) as error:  # of the rows, or of the user's `prepare`
            left_out[name] = reason_of(error)
        else:
            found[name], metric = PoolRows.of(data), metric or context.customers.metric(data)
            rows += min(len(found[name].search), MOST_ROWS_EACH)
    watch.fitting()
    return fitted_pool(dict(sorted(found.items())), left_out, seed, metric, least)


WORK = _fitted.__code__.co_filename


def _recorded(plan: RecordedPlan, pool: RunPool, clock: Clock, attempt: int) -> TrialRecord:
    """The pool as a trial of its run."""
    family = pool.whole.family if pool.whole is not None else booster_here()
    scores = pool.fold_scores
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
        metrics={"customers": float(len(pool.customers)), "left_out": float(len(pool.left_out))},
        study_seed=plan.spec.definition.seed,
        seed=plan.spec.definition.seed,
        started=clock.started,
        seconds=clock.wall,
        fit_seconds=clock.cpu,
        suggest_seconds=0.0,
        worker=worker_name(),
        versions=versions(),
    )
