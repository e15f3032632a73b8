"""Whether a run has a pool, and what its plan says of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tuning.basics.columnar import Columnar
from tuning.data.customers import Customers, about_rows, one_each
from tuning.definition.definition import Definition
from tuning.errors import PlanError
from tuning.notes import Note, PlanCode, PoolCode
from tuning.study.study import StudyTable, customers_of

AUTO, ON, OFF = "auto", "on", "off"
#: For `pool: auto`, as of `benchmarks.pooling`: with 2,000 rows each a pool gained nothing any more.
AUTO_CUSTOMERS, AUTO_MEDIAN_ROWS = 20, 1_000.0


def why_no_pool(definition: Definition, studies: StudyTable, beside: StudyTable | None = None) -> Note | None:
    """Return why a run has no pool; None where it has one. studies: all that were planned when it began.

    beside: as of `Plan`.
    """
    if definition.pool == OFF:
        return PoolCode.POOL_NOT_ASKED_FOR()
    if not definition.wants_ensembles:
        return PoolCode.POOL_WITHOUT_ENSEMBLES()
    fixed = studies.shared("fixed")
    searches = fixed.test(lambda each: each is None)
    is_member = fixed.test(lambda each: each is not None and each.pooled).any()
    if not (searches.any() or is_member):
        return PoolCode.POOL_ALL_FIXED()
    if definition.pool == ON:
        return None
    asking = _customers(studies if is_member else studies.take(searches), beside)
    if len(asking) < AUTO_CUSTOMERS:
        return PoolCode.POOL_SMALL_RUN(customers=len(asking), least=AUTO_CUSTOMERS)
    rows = float(np.median(about_rows(asking)))
    if rows > AUTO_MEDIAN_ROWS:
        return PoolCode.POOL_MANY_ROWS(rows=int(AUTO_MEDIAN_ROWS))
    return None


def _customers(studies: StudyTable, beside: StudyTable | None) -> Customers:
    return one_each(customers_of(studies if beside is None else Columnar.joined([studies, beside])))


def pool_notes(definition: Definition, studies: StudyTable, beside: StudyTable | None = None) -> Iterator[Note]:
    """Return a note on a run without the pool that it asks for; `PlanError` where nobody could ask it.

    beside: as of `Plan`.
    """
    if definition.pool == ON and not definition.wants_ensembles:
        raise PlanError(
            "pool: on asks for a model of all customers' rows as a member of each one's ensemble, and there are none "
            "with `compare`, `objective`, `ensemble: none` or `winner: one_standard_error`. Use `pool: off`."
        )
    if definition.pool != OFF and (why := why_no_pool(definition, studies, beside)):
        yield PlanCode.POOL_OFF_HERE(pool=definition.pool, why=why)
