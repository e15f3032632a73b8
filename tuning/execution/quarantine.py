"""A study whose trial ends its workers again and again: it is left, with the reason and a command that shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tuning.basics.wording import command
from tuning.definition.plain_values import IN_MEMORY
from tuning.execution.context import WorkerContext
from tuning.execution.pool_answers import saved_without_rows
from tuning.execution.study_record import abandoned
from tuning.notes import EndCode
from tuning.records.schema import QUARANTINED, StudyRecord, TrialRecord
from tuning.runs.plan_file import plain
from tuning.study.study import Study


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
    """The record of a study without a winner.

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
