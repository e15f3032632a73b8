"""The record of a study that has ended: what its evaluation has found out, and who it was.

A study with a trial that ends its workers again and again is left, with the reason and a command that shows it. The
run's pool answers for who has no model, saved as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields

from tuning.basics.stopwatch import Clock
from tuning.basics.wording import command
from tuning.data.customers import Customer
from tuning.definition.plain_values import IN_MEMORY
from tuning.errors import StorageError, reason_of
from tuning.evaluation.stand_in import LEAST_ROWS, is_typical, stand_in
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import StudyOutcome
from tuning.execution.worker import TrialData, WorkerContext
from tuning.models.customer_model import CustomerModel, Saved
from tuning.models.pooled import POOL
from tuning.notes import EndCode, Note, PoolCode
from tuning.records.schema import FAILED, MODEL, NO_MODEL, OK, QUARANTINED, STOPPED, StudyRecord, TrialRecord
from tuning.runs.plan_file import plain
from tuning.storage.names import slug
from tuning.study.record import versions, worker_name
from tuning.study.study import Study

#: Columns that are called in an outcome what they are called in a record.
_OF_OUTCOME = [each.name for each in fields(StudyRecord) if hasattr(StudyOutcome, each.name)]


def quarantine(
    context: WorkerContext,
    study: Study,
    records: Sequence[TrialRecord],
    *,
    what: str,
    times: int,
    cause: str,
    error: str | None = None,
) -> StudyRecord:
    """Return the record of a study without a winner.

    records: its trials so far. what: the trial that ended its worker, `times` times. error: a stack, when one was seen.
    """
    reason = EndCode.QUARANTINED(what, times=times, cause=cause, command=_command(context, study))
    saved = saved_without_rows(context, study)
    return abandoned(context, study, reason, QUARANTINED, records, error or None, saved)


def _command(context: WorkerContext, study: Study) -> str:
    customer, written = study.customer.id, plain(context.spec.definition)
    data = written.get("data")
    if IN_MEMORY in (data.get(customer) if isinstance(data, Mapping) else data, written.get("objective")):
        return f"TuneRunner(…, customers=[{customer!r}]).run(in_process=True)"
    path = context.directory.display("definition.yaml")
    return command("run", path, "--customer", customer, "--in-process")


def asked_pool(
    context: WorkerContext, customer: Customer, reason: Note | None
) -> tuple[CustomerModel | None, Note | None]:
    """Read the rows of a customer and return the pool as its model, or a note why it cannot be.

    reason: why there is no own model, which needs no second note.
    """
    pool, customers = context.customers.pool, context.customers
    if pool is None or pool.typical is None or not context.spec.definition.save_models:
        return None, None
    try:
        rows = customers.rows(customer)
        frame = customers.code.frame(rows, customer.id)
        found = stand_in(pool, customer.id, context.spec.definition, frame, customers.code.preparation(rows))
    except StorageError:
        raise
    except (Exception, SystemExit) as error:  # of the rows, or of the user's `prepare`
        why = reason_of(error)
        return None, None if why == reason else PoolCode.POOL_NOT_ASKED(why=why)
    typical = isinstance(found, CustomerModel) and is_typical(found, pool)
    return found, PoolCode.POOL_TYPICAL_UNIT(least=LEAST_ROWS) if typical else None


def saved_without_rows(context: WorkerContext, study: Study) -> Saved | None:
    """Return the pool as the model of a customer without reading its rows, which may end this process, too."""
    pool, definition = context.customers.pool, context.spec.definition
    if pool is None or definition.prepare is not None or not definition.save_models:
        return None
    model = stand_in(pool, study.customer.id, definition)
    if model is None:
        return None
    saved = model.save(context.background, context.background.folder("models", slug(study.id)))
    context.background.flush()
    return saved


def abandoned(
    context: WorkerContext,
    study: Study,
    reason: Note,
    status: str = NO_MODEL,
    records: Sequence[TrialRecord] = (),
    error: str | None = None,
    saved: Saved | None = None,
) -> StudyRecord:
    """Return the record of a study that is given up.

    records: its trials so far. error: a stack behind the reason. saved: the pool's answer in place of its model.
    """
    outcome = StudyOutcome(None, None, reason)
    return study_record(context, study, records, status, outcome, Clock(), saved=saved, error=error)


def study_record(
    context: WorkerContext,
    study: Study,
    records: Sequence[TrialRecord],
    status: str,
    outcome: StudyOutcome,
    clock: Clock,
    *,
    data: TrialData = None,
    saved: Saved | None = None,
    error: str | None = None,
) -> StudyRecord:
    """Return what came of a study.

    records: all of its trials. saved: its model on disk. error: the traceback or stack behind the reason.
    """
    values = {
        **{name: getattr(outcome, name) for name in _OF_OUTCOME},
        **_of_model(outcome, saved),
        **_of_others(outcome),
        **_of_data(data),
        "reason": None if status == OK else outcome.reason,
    }
    return StudyRecord(
        run=context.run,
        study=study.id,
        customer=study.customer.id,
        algorithm=study.algorithm.name,
        scheduler=study.scheduler.name,
        study_seed=study.seed,
        status=status,
        task=context.spec.task or "objective",
        metric=context.spec.metric,
        mode=context.spec.mode,
        trials=len(records),
        stopped=sum(record.state == STOPPED for record in records),
        failed=sum(record.state == FAILED for record in records),
        started=clock.started,
        seconds=clock.wall,
        fit_seconds=clock.cpu,
        worker=worker_name(),
        versions=versions(),
        error=error,
        **values,
    )


def _of_model(outcome: StudyOutcome, saved: Saved | None) -> dict[str, object]:
    """Return what the model is, and where."""
    winner, constant, ensemble = outcome.winner, outcome.constant, outcome.ensemble
    found: dict[str, object] = {"ensemble": ensemble.to_json() if ensemble else None}
    if outcome.fixed is not None:
        first = outcome.fixed.members[0]
        found = {"family": first.family, "best_step": first.steps, "config": first.config}
        found["ensemble"] = outcome.fixed.ensemble
    elif constant is not None and outcome.is_constant:
        found |= {"family": str(constant.config[MODEL]), "config": constant.config, "cv_score": constant.score}
    elif winner is not None:
        found |= {name: getattr(winner, name) for name in ("family", "trial", "best_step", "config")}
        found |= {"cv_score": winner.score, "stages": len(winner.stages) if len(winner.stages) > 1 else None}
    elif saved is not None:
        found["family"] = POOL
    if saved is not None:
        found |= {"model_path": saved.path, "model_sha256": saved.sha256, "model_bytes": saved.size}
        found["final_fit"] = None if outcome.model is None else outcome.model.final_fit
    return found


def _of_others(outcome: StudyOutcome) -> dict[str, object]:
    """Return what the model is compared with."""
    found: dict[str, object] = {"baseline": None}
    if (baseline := outcome.baseline) is not None:
        found |= {"baseline": baseline.name, "baseline_cv_score": baseline.score}
        found["baseline_test_score"] = baseline.test_score
    if (constant := outcome.constant) is not None:
        found |= {"constant_cv_score": constant.score, "constant_test_score": constant.test_score}
    if outcome.ensemble is not None:
        found["ensemble_score"] = outcome.ensemble.score
    return found


def _of_data(data: TrialData) -> dict[str, object]:
    """Return what the customer's rows are."""
    if not isinstance(data, StudyData):
        return {"rows": 0, "test_rows": 0, "features": 0}
    label = data.task.positive
    return {
        "rows": len(data.y),
        "test_rows": len(data.split.test),
        "rare_rows": data.rare_rows,
        "without_target": data.without_target or None,
        "features": len(data.columns),
        "positive": None if label is None else str(label),
    }
