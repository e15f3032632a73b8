"""Customers' rows read and checked as a run does it, without training anything."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from tuning.data.customers import Customer
from tuning.data.loading import Loader, check_size
from tuning.data.prepare_process import PrepareProcess
from tuning.data.prepared import CustomerData, OwnCode
from tuning.data.sampling import unpartitioned_rows
from tuning.errors import CustomerError
from tuning.planning.plan import Plan
from tuning.timing import HANG_S
from tuning.wording import raised


def check_customers(plan: Plan, customers: Sequence[Customer]) -> dict[str, str]:
    """Those that would get no model, and why.

    Rows of a table that a run would divide first are looked for among the first 100,000 of each file.
    """
    definition = plan.spec.definition
    if definition.objective is not None:
        return {}
    loader = Loader(definition, [customer for customer in customers if not customer.unpartitioned])
    unpartitioned = unpartitioned_rows(definition, customers)

    def rows(customer: Customer) -> pd.DataFrame:
        if not customer.unpartitioned:
            return loader.read(customer)
        check_size(customer, definition.limits.max_rows)
        return unpartitioned(customer)

    refused: dict[str, str] = {}
    with PrepareProcess(definition.prepare, definition.limits.trial_seconds or HANG_S) as process:
        data = CustomerData(plan.spec, OwnCode(definition, process=process), rows)
        for customer in customers:
            try:
                data.prepared(customer)
            except CustomerError as error:
                refused[customer.id] = str(error)
            except Exception as error:  # as in a run, whatever it is
                refused[customer.id] = raised(error)
    return refused
