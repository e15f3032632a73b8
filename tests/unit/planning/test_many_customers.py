"""A plan of many customers: its studies are held as columns, and act like a tuple of them."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tuning.basics.columnar import Columnar, DictionaryColumn
from tuning.basics.seeds import derive
from tuning.data.customers import Customer
from tuning.definition.definition import define
from tuning.definition.options import CustomerOptions
from tuning.planning.plan import make_plan
from tuning.planning.run_plan import Plan
from tuning.study.study import as_columns

ROWS = 2


def keyed_by_number(path: Path, customers: int, rows_per_group: int) -> Path:
    """A Parquet table of so many customers, sorted by its integer key."""
    keys = np.repeat(np.arange(customers), ROWS)
    table = pa.table({"customer": keys, "x": np.arange(len(keys)) / 7, "y": np.arange(len(keys)) / 3})
    pq.write_table(table, path / "t.parquet", row_group_size=rows_per_group)
    return path / "t.parquet"


def plan_of(table: Path, slots: int = 2) -> Plan:
    return make_plan(
        define(
            {"data": table, "by": "customer", "target": "y", "task": "regression", "models": ["ridge"], "slots": slots}
        )
    )


def test_studies_act_like_a_tuple(tmp_path: Path) -> None:
    plan = plan_of(keyed_by_number(tmp_path, 50, 20))
    studies, listed = plan.studies, list(plan.studies)
    assert len(studies) == 50
    assert [study.id for study in studies] == sorted(map(str, range(50)))
    assert studies[3] == listed[3] == studies[-47]
    assert studies[10:20:3] == listed[10:20:3]
    assert studies[5] in studies
    assert studies == listed
    assert studies != listed[1:]
    assert as_columns(listed) == studies
    with pytest.raises(IndexError):
        studies[50]
    one = studies[7]
    assert one.seed == derive(plan.spec.definition.seed, "study", one.id)
    assert (one.customer.key, one.customer.rows) == ((one.id,), ROWS)
    assert one.space is plan.spec.space


def test_values_that_many_share_are_looked_at_once_and_those_left_out_never() -> None:
    few = CustomerOptions(trials=2)
    customers = Columnar.of(Customer, [Customer(f"c{n}", options=few if n % 2 else None) for n in range(10)])
    assert [customer.id for customer in customers.first_of_each("options")] == ["c0", "c1"]
    odd = customers.take(customers.present("options"))
    assert [customer.id for customer in odd] == ["c1", "c3", "c5", "c7", "c9"]
    seen: list[object] = []
    odd.shared("options").map(seen.append)
    assert seen == [few]
    assert Columnar.joined([odd, customers]) == [*odd, *customers]
    assert DictionaryColumn.of([1, True, 1.0, "1", (1,)]).values(0, 5) == [1, True, 1.0, "1", (1,)]
    assert not Columnar.of(Customer, [])


@pytest.mark.long
def test_a_plan_holds_no_object_for_each_customer(tmp_path: Path) -> None:
    table = keyed_by_number(tmp_path, 20_000, 10_000)
    plan_of(table)  # whatever is loaded with the first one
    tracemalloc.start()
    plan = plan_of(table)
    assert plan.batches
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held / 20_000 < 150, "Python's bytes for each customer; objects take more than a thousand"
