"""Customers' rows read and checked as a run does it, without training anything."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence

from tuning.basics.timing import HANG_S
from tuning.basics.wording import raised
from tuning.data.child_process import PrepareProcess
from tuning.data.customers import Customer
from tuning.data.loading import Loader
from tuning.data.partition import partition
from tuning.definition.definition import Definition
from tuning.errors import CustomerError
from tuning.planning.run_plan import Plan
from tuning.storage.run_directory import RunDirectory
from tuning.study.customer_data import CustomerData, OwnCode


def check_customers(plan: Plan, customers: Sequence[Customer]) -> dict[str, str]:
    """Return the reason of each customer that would get no model, by id.

    A table that a run would divide by customer first is divided here too, into a folder that is deleted afterwards.
    """
    definition = plan.spec.definition
    if definition.objective is not None:
        return {}
    refused: dict[str, str] = {}
    with (
        tempfile.TemporaryDirectory() as folder,
        PrepareProcess(definition.prepare, definition.limits.trial_seconds or HANG_S) as process,
    ):
        code = OwnCode(definition, process=process)
        for loader, some in _loaders(definition, customers, folder):
            data = CustomerData(plan.spec, code, loader.read)
            for customer in some:
                try:
                    data.prepared(customer)
                except CustomerError as error:
                    refused[customer.id] = str(error)
                except Exception as error:  # as in a run, whatever it is
                    refused[customer.id] = raised(error)
    return {customer.id: refused[customer.id] for customer in customers if customer.id in refused}


def _loaders(
    definition: Definition, customers: Sequence[Customer], folder: str
) -> Iterator[tuple[Loader, list[Customer]]]:
    """Return loaders and their customers. Customers with the same files come together; memory holds one such part."""
    directory = RunDirectory(folder)
    directory.create()
    read = [customer for customer in customers if not definition.limits.exceeded(customer.extent)]
    placed = {customer.id: customer for customer in partition(definition, read, directory)}
    parts: dict[tuple[str, ...], list[Customer]] = {}
    for customer in customers:
        found = placed.get(customer.id, customer)
        parts.setdefault(found.files, []).append(found)
    for part in parts.values():
        yield Loader(definition, part), part
