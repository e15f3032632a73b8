"""Customers' rows read and checked as a run does it, without training anything."""

from __future__ import annotations

from collections.abc import Sequence

from tuning.data.customers import Customer
from tuning.data.loading import Loader
from tuning.data.sampling import loose_rows
from tuning.errors import CustomerError
from tuning.evaluation.metrics import Metric
from tuning.evaluation.study_data import keep_scorable_folds, study_data
from tuning.planning.plan import Plan
from tuning.user_code import apply_prepare, load_function


def check_customers(plan: Plan, customers: Sequence[Customer]) -> dict[str, str]:
    """Those that would get no model, and why.

    Rows of a table that a run would divide first are looked for among the first 100,000 of each file.
    """
    definition = plan.definition
    if definition.objective is not None:
        return {}
    assert plan.task is not None
    prepare = load_function(definition.prepare) if definition.prepare else None
    function = load_function(definition.metric) if definition.own_metric and definition.metric else None
    loader = Loader(definition, [customer for customer in customers if not customer.unpartitioned])
    rows_of = loose_rows(definition)
    refused: dict[str, str] = {}
    for customer in customers:
        try:
            frame = rows_of(customer) if customer.unpartitioned else loader.read(customer)
            frame = apply_prepare(prepare, frame) if prepare else frame
            data = study_data(frame, definition, plan.task, customer.id)
            keep_scorable_folds(data, Metric(plan.metric, data.task, function))
        except CustomerError as error:
            refused[customer.id] = str(error)
    return refused
