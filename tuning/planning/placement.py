"""The placement of each study: packed into a batch with others, or spread, with a Tune trial for each of its trials.

A batch is what one Tune trial works through; studies come into one by their resources, customers and files.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.columnar import DictionaryColumn, FieldColumn
from tuning.data.balancing import batch_count, divide
from tuning.data.customers import Customers, about_rows, unpartitioned
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError
from tuning.models.worker_group import WorkerGroup
from tuning.notes import Note, PlanCode
from tuning.planning.capacity import memory
from tuning.planning.worker_groups import check_groups, with_group
from tuning.study.study import PACKED, SPREAD, StudyTable, customers_of, work_amounts

LONG_ROWS = 25_000  # from here on even a linear model takes about half a second per trial
TRIAL_BYTES = 15.0  # of memory that a trial takes for each byte of its rows' file: 9 to 14 where it was measured
FEW_ROWS = 4  # so few hardly make a model
SHARE_OF_MEMORY = 0.8  # of a machine, for trials


def placements(
    spec: RunSpec, studies: StudyTable, slots: int, workers: WorkerGroup | None = None
) -> tuple[FieldColumn, list[Note]]:
    """Return the placements of a run's studies and a note on small ones; `PlanError` where one is not possible.

    A customer's placement in the manifest counts before the definition's. With `auto` a study is spread where one slot
    would take longer for it than all slots for the whole run, or lacks the memory. It is packed if its scheduler pauses
    trials, if the run is a comparison, or if its configuration is fixed. A study with groups is spread in any case.

    workers: of the trainers that an objective makes.

    Rows are all that is known of a trial before it runs; a model's own factor is the same for most studies of a run.
    """
    definition = spec.definition
    usual = None if definition.placement == "auto" else definition.placement
    options = customers_of(studies).shared("options")
    own = options.map(lambda options: options and options.placement)
    wanted = own.map(lambda placement: placement or usual)
    pauses = studies.shared("scheduler").test(lambda spec: bool(spec.pauses))
    spread, packed = wanted.test(lambda each: each == SPREAD), wanted.test(lambda each: each == PACKED)
    _check_own(studies, pauses & own.test(lambda each: each == SPREAD))
    spread &= ~pauses  # helpers train their trials
    several = with_group(definition, studies, workers)
    fixed = studies.present("fixed")  # there is one fit
    spread &= ~fixed
    check_groups(studies.take(several & packed), studies.take(several & pauses), workers)
    amounts, needs = work_amounts(studies), TRIAL_BYTES * customers_of(studies).numbers("size")
    free = ~(spread | packed | several | pauses | fixed) & (definition.compare is None)
    late = tail(amounts / max(1.0, float(amounts.sum())), slots) & _long(spec, studies)
    spread |= several | (free & (late | (needs > slot_bytes(slots))))
    chosen = options.test(lambda options: bool(options and options.search_space))  # actors for this very customer
    small = int((several & ~chosen & ~_long(spec, studies)).sum()) if len(studies) > 1 else 0
    note = PlanCode.SMALL_WITH_WORKERS(small=small, studies=len(studies), rows=LONG_ROWS)
    return DictionaryColumn(spread.astype(np.int32), [PACKED, SPREAD]), [note] * bool(small)


def tail(shares: np.ndarray, slots: int) -> np.ndarray:
    """(n,) whether a study would be the run's tail: one slot takes longer for it than all slots for the whole run.

    shares: (n,) of the run's work.
    """
    return shares * slots > 1 + 1e-9


def slot_bytes(slots: int) -> float:
    """Return a slot's share of this machine's memory."""
    return SHARE_OF_MEMORY * memory() / slots


def _long(spec: RunSpec, studies: StudyTable) -> np.ndarray:
    """Return (n,) whether a study's trials are worth a Tune trial each: they are long, or of unknown length."""
    if spec.definition.objective is not None:
        return np.ones(len(studies), dtype=bool)
    return np.asarray(about_rows(customers_of(studies)) > LONG_ROWS)


def _check_own(studies: StudyTable, wrong: np.ndarray) -> None:
    """Raise `PlanError` where a manifest spreads a study under a scheduler that pauses trials."""
    if wrong.any():
        study = studies[int(np.argmax(wrong))]
        raise PlanError(
            f"customer {study.customer.id!r}: placement: spread: the scheduler {study.scheduler.name} pauses trials, "
            "so one process decides; take asha, or leave the customer's placement out."
        )


def make_batches(studies: StudyTable, slots: int) -> tuple[np.ndarray, ...]:
    """Return positions of studies, one group per Tune trial; studies of other resources are in other groups.

    Customers with hardly any rows come first: they end at once, so that progress knows sooner how much there is to do.
    """
    batches: list[np.ndarray] = []
    for positions in _groups(studies):
        positions = positions[_row_order(customers_of(studies.take(positions)))]
        customers = customers_of(studies.take(positions))
        sizes = customers.numbers("size")
        keyed = int(sizes[customers.present("key")].sum())
        count = max(1, batch_count(len(customers), slots, keyed) * len(positions) // len(studies))
        batches += [positions[group] for group in divide(sizes, _reading_units(customers), count)]
    return tuple(batches)


def _groups(studies: StudyTable) -> list[np.ndarray]:
    """Return positions of the studies that may share a batch, by their turn."""
    resources = studies.shared("resources")
    needs = list(dict.fromkeys(resources.distinct))
    need = np.array([needs.index(each) for each in resources.distinct], dtype=np.int64)[resources.codes]
    customers = customers_of(studies)
    rows = np.where(customers.present("key"), FEW_ROWS, about_rows(customers))  # tables are read in one go
    turns = (rows >= FEW_ROWS).astype(np.int64)
    codes = turns * len(needs) + need
    found, first = np.unique(codes, return_index=True)
    order = sorted(range(len(found)), key=lambda each: (turns[first[each]], first[each]))
    return [np.flatnonzero(codes == found[each]) for each in order]


def _row_order(customers: Customers) -> np.ndarray:
    """Return positions of the customers in the order in which their rows lie."""
    where = pa.table({"table": pa.array(customers.numbers("table")), "id": customers.texts("id")})
    found: np.ndarray = pc.sort_indices(where, [("table", "ascending"), ("id", "ascending")]).to_numpy()
    return found


def _reading_units(customers: Customers) -> np.ndarray:
    """(n,) a number per study, the same where a worker should read the data in one go: of one customer, or one file."""
    files = customers.shared("files").codes
    ids: np.ndarray = customers.texts("id").dictionary_encode().indices.to_numpy()
    return np.where(customers.present("key") & ~unpartitioned(customers), -1 - files, ids)
