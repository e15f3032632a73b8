"""Which rows the models of a run have learned from, so that a refresh knows which ones are new to them."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa
import pyarrow.compute as pc

from tuning.data.customers import find_customers
from tuning.data.fingerprints import changed
from tuning.data.row_digests import ROWS, rows_now
from tuning.errors import TuningError
from tuning.runs.plan_file import frozen_definition, read_plan
from tuning.runs.results import RunResult


def learned_rows(result: RunResult) -> pa.Table:
    """The rows of a run's customers, by `ROWS`; not of those whose data is another one by now, or is not there.

    Reads the data once.
    """
    definition = frozen_definition(result.directory, result.term)
    plan = read_plan(result.directory, result.term)
    before = {study.customer.id: study.customer for studies in (plan.ended, plan.studies) for study in studies}
    try:
        customers = find_customers(definition)
        now = [each for each in customers if each.id in before]
        other = {each.id for each in changed(definition, before, now)} if now else set[str]()
        return _of(rows_now(definition, customers), before.keys() - other)
    except TuningError:
        return ROWS.empty_table()


def rows_after(before: pa.Table | None, learned: pa.Table, touched: Collection[str]) -> pa.Table:
    """The rows that a release remembers after a promotion.

    Nothing is remembered of a customer whose old and new model have learned from different rows: the next refresh fits
    both on the same ones, and compares them from then on.

    before: of the release before. touched: customers with another champion, or a new challenger.
    """
    if before is None:
        return _of(learned, touched)
    then, now = _digests(before), _digests(learned)
    same = {name for name in touched if name in now and then.get(name, now[name]) == now[name]}
    kept = _of(before, {*then} - {*touched} | (same & then.keys()))
    added = _of(learned, same - then.keys()).replace_schema_metadata(kept.schema.metadata)
    return pa.concat_tables([kept, added])


def _of(rows: pa.Table, customers: Collection[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows["customer"], value_set=pa.array(sorted(customers), pa.string())))


def _digests(rows: pa.Table) -> dict[str, tuple[int, int]]:
    """Of each customer the number of its rows and the sum of their hashes."""
    found: dict[str, tuple[int, int]] = {}
    columns = (rows[column].to_pylist() for column in ("customer", "rows", "digest"))
    for name, count, digest in zip(*columns, strict=True):
        rows_before, sum_before = found.get(name, (0, 0))
        found[name] = (rows_before + count, (sum_before + digest) % 2**64)
    return found
