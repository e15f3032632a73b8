"""Studies that no machine has room for are not waited for: they are recorded with that as their reason."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tuning.basics.columnar import DictionaryColumn
from tuning.definition.options import Resources
from tuning.errors import RunError
from tuning.execution.context import WorkerContext
from tuning.execution.packed import recorded
from tuning.execution.part_writer import PartWriter
from tuning.execution.reports import Listener
from tuning.execution.spread.journal import DRIVER, written_by_driver
from tuning.execution.study_record import abandoned
from tuning.notes import EndCode
from tuning.planning.room import alive_machines
from tuning.planning.run_plan import Plan
from tuning.planning.shortages import Shortage, find_shortages, with_shortage
from tuning.records.parts import accepted, read_trials
from tuning.records.schema import TrialRecord
from tuning.runs.begin import OwnedRun
from tuning.study.study import PACKED, SPREAD, StudyTable, placed


def record_shortages(owned: OwnedRun, listener: Listener) -> frozenset[Resources]:
    """Record the studies that ask for more than any machine has; gives the resources of shards that are not to begin.

    listener: receives what is recorded here.

    Raises:
        PlanError: all customers ask for too much, or the definition does.
        RunError: such a customer has trials already, which its reason would end.
    """
    plan = owned.plan
    shortages = find_shortages(
        plan.spec.definition, plan.studies, plan.workers, owned.directory, alive_machines(), owned.timing.room_s
    )
    if shortages is None:
        return frozenset()
    context, writers = WorkerContext.open(owned.directory, owned.run, plan.spec), []
    for number, studies, found in _by_part_number(plan, shortages):
        known, finished = recorded(owned.directory, owned.term, number)
        begun = {*known, *(record.study for record in _spread_trials(owned) if number == DRIVER)}
        left = [(study, shortage) for study, shortage in zip(studies, found, strict=True) if study.id not in finished]
        for study, shortage in left:
            if study.id in begun:
                where = "in such a folder" if shortage.of_folder else "where there is a larger machine"
                begun_by = f"customer {study.customer.id!r} has trials already"
                raise RunError(f"{begun_by}, and now {shortage.why}. Resume {where}.")
        budgets = {study.id: study.budget for study, _ in left}
        writer = PartWriter(owned.directory, owned.term, number, listener, budgets=budgets)
        for study, shortage in left:
            code = EndCode.SHORTAGE_OF_FOLDER if shortage.of_folder else EndCode.SHORTAGE
            writer.add([abandoned(context, study, code(shortage.key, why=shortage.why, remedy=shortage.remedy))])
        writers.append(writer)
    for writer in writers:
        writer.flush()
    packed = plan.studies.take(with_shortage(shortages) & placed(plan.studies, PACKED))
    return frozenset(packed.shared("resources").distinct)


def _by_part_number(plan: Plan, shortages: DictionaryColumn) -> Iterator[tuple[int, StudyTable, list[Shortage]]]:
    """The studies with a shortage and what that is, by the number under which they are recorded."""
    short = with_shortage(shortages)
    spread = np.flatnonzero(placed(plan.studies, SPREAD))
    for number, places in [*enumerate(plan.shards), (DRIVER, spread)]:
        if len(some := places[short[places]]):
            yield number, plan.studies.take(some), shortages.take(some).values(0, len(some))


def _spread_trials(owned: OwnedRun) -> list[TrialRecord]:
    return read_trials(owned.directory, written_by_driver(accepted(owned.directory, owned.term)), lambda *_: None)
