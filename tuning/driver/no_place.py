"""Packed studies without room on any machine are recorded with that as their reason; a resume tries them again."""

from __future__ import annotations

from tuning.execution.context import WorkerContext
from tuning.execution.packed import recorded
from tuning.execution.part_writer import PartWriter
from tuning.execution.reports import Listener, WorkerError
from tuning.execution.study_record import abandoned
from tuning.notes import Note
from tuning.records.parts import POOL_SHARD
from tuning.runs.begin import OwnedRun


def record_no_place(owned: OwnedRun, report: Listener, shard: int, reason: Note) -> None:
    """Record the studies that are left of a shard; the pool is left to a resume. report: told of that."""
    if shard == POOL_SHARD:
        report(WorkerError(str(reason)))
        return
    context = WorkerContext.open(owned.directory, owned.run, owned.plan.spec)
    known, finished = recorded(owned.directory, owned.term, shard)
    left = [study for study in owned.plan.studies.take(owned.plan.shards[shard]) if study.id not in finished]
    budgets = {study.id: study.budget for study in left}
    writer = PartWriter(owned.directory, owned.term, shard, report, budgets=budgets)
    writer.add(abandoned(context, study, reason, records=known.get(study.id, ())) for study in left)
    writer.flush()
