"""Whether a run has a pool, and what its plan says of it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tuning.basics.columnar import Columnar
from tuning.basics.wording import amount, duration
from tuning.data.customers import Customers, about_rows, one_each
from tuning.definition.definition import Definition
from tuning.errors import PlanError
from tuning.evaluation.pooling import MOST_ROWS, MOST_ROWS_EACH
from tuning.study.study import StudyTable, customers_of

AUTO, ON, OFF = "auto", "on", "off"
#: For `pool: auto`, as of `benchmarks.pooling`: with 2,000 rows each a pool gained nothing any more.
AUTO_CUSTOMERS, AUTO_MEDIAN_ROWS = 20, 1_000.0
POOL_SECONDS = 900.0  # for which a run waits for its pool, which one worker trains

HINT = (
    "`pool: auto` would let each model learn from the rows of all customers, too: with as many customers and as few "
    "rows the typical error became 0 to 20 % smaller, by data set. It is off unless you ask for it, since it is for "
    "customers who may learn from each other's data."
)


def why_no_pool(definition: Definition, studies: StudyTable, beside: StudyTable | None = None) -> str:
    """Why a run has no pool, as a sentence; empty where it has one. studies: all that were planned when it began.

    beside: as of `Plan`.
    """
    if definition.pool == OFF:
        return "pool: off"
    if not definition.wants_ensembles:
        return "its models are no ensembles"
    fixed = studies.shared("fixed")
    searches = fixed.test(lambda each: each is None)
    is_member = fixed.test(lambda each: each is not None and each.pooled).any()
    if not (searches.any() or is_member):
        return "the configurations of all customers are known, and it is a member of none"
    if definition.pool == ON:
        return ""
    asking = _customers(studies if is_member else studies.take(searches), beside)
    if len(asking) < AUTO_CUSTOMERS:
        return f"{amount(len(asking), 'customer')}, fewer than {AUTO_CUSTOMERS}"
    rows = float(np.median(about_rows(asking)))
    if rows > AUTO_MEDIAN_ROWS:
        return f"half of its customers have more than {AUTO_MEDIAN_ROWS:,.0f} rows"
    return ""


def _without_ensembles(definition: Definition) -> str:
    """Why a definition's models are no ensembles."""
    if definition.compare is not None:
        return "a comparison"
    if definition.objective is not None:
        return "an objective"
    return "`ensemble: none`" if definition.ensemble == "none" else f"`winner: {definition.winner}`"


def _customers(studies: StudyTable, beside: StudyTable | None) -> Customers:
    return one_each(customers_of(studies if beside is None else Columnar.joined([studies, beside])))


def pool_notes(definition: Definition, studies: StudyTable, beside: StudyTable | None = None) -> Iterator[str]:
    """What the plan says of the pool; `PlanError` where one is wanted that nobody could ask. beside: as of `Plan`."""
    if definition.pool == ON and not definition.wants_ensembles:
        raise PlanError(
            "pool: on asks for a model of all customers' rows as a member of each one's ensemble, and with "
            f"{_without_ensembles(definition)} there are none. Use `pool: off`, or leave that out."
        )
    if definition.pool == OFF:
        tried = definition.model_copy(update={"pool": AUTO})
        if "pool" not in definition.model_fields_set and not why_no_pool(tried, studies):
            yield HINT
        return
    if why := why_no_pool(definition, studies, beside):
        yield f"pool: {definition.pool} is off here: {why}."
        return
    alike = f", if at least {AUTO_CUSTOMERS} have these" if definition.pool == AUTO else ""
    yield (
        f"pool: before the studies, one model is trained of the rows of up to "
        f"{amount(len(_customers(studies, beside)), 'customer')}, those with the same columns and classes{alike} "
        f"(at most {MOST_ROWS_EACH:,} of each and {MOST_ROWS:,} in all; by one worker, while the others wait, for "
        f"{duration(POOL_SECONDS)} at most). It is a member of a customer's ensemble where that is better on the "
        "customer's own folds."
    )
