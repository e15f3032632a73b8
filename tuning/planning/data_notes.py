"""Notes of a plan on its data: what is left out, how tables are understood, and who has too few rows."""

from __future__ import annotations

from collections.abc import Iterator

from tuning.data.customers import Customers
from tuning.data.files import left_out
from tuning.data.keys import look_alikes
from tuning.definition.definition import Definition
from tuning.notes import Note, PlanCode

MOST_NAMED = 5  # customers or files in a note


def data_notes(definition: Definition, customers: Customers) -> Iterator[Note]:
    """Return notes on what is known of the data without reading its rows."""
    if isinstance(definition.data, str | list | tuple) and (names := left_out(definition.data)):
        yield PlanCode.FILES_LEFT_OUT(files=len(names), first=names[:MOST_NAMED])
    if definition.by:
        tables = len(customers.take(customers.present("key")).first_of_each("table"))
        if tables > 1:
            yield PlanCode.TABLES_APART(tables=tables)
    if alike := look_alikes(customers.texts("id")):
        pairs = [each[:MOST_NAMED] for each in alike[:MOST_NAMED]]
        yield PlanCode.LOOK_ALIKES(groups=len(alike), pairs=pairs)
    few = customers.take(customers.numbers("rows", missing=definition.min_rows) < definition.min_rows)
    if definition.objective is None and len(few):
        first = few.texts("id")[:MOST_NAMED].to_pylist()
        yield PlanCode.CUSTOMERS_TOO_SMALL(customers=len(few), least=definition.min_rows, first=first)
