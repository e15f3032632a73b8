"""Keys of customers: one spelling of each, whatever type holds it, and as many rows as were counted."""

from __future__ import annotations

import datetime
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from data_shapes import definition, placed, rows_of, trips

from tuning.data.customers import find_customers
from tuning.data.loading import Loader
from tuning.errors import CustomerError

SAME_KEY = {
    "2024-01-01": [pd.Timestamp("2024-01-01"), "2024-01-01", datetime.date(2024, 1, 1)],
    "0": [-0.0, 0, "0", Decimal(0), Decimal("0.00")],
    "1": [b"1", 1, "1", Decimal("1.00"), 1.0],
    "10000000000000000": [1e16, 10**16, "10000000000000000"],
    "2.5": [Decimal("2.50"), 2.5, "2.5"],
}


@pytest.mark.parametrize("key", SAME_KEY)
def test_a_key_in_several_types_of_python_keeps_all_of_its_rows(key: str, tmp_path: Path) -> None:
    values = pd.Series([value for value in SAME_KEY[key] for _ in range(20)] + ["other"] * 20, dtype=object)
    table = pd.DataFrame(
        {"k": values.to_numpy(), "x": 1.0, "y": np.arange(len(values), dtype=float)}, index=range(7, 7 + len(values))
    )
    frames = rows_of(definition(table, by="k"), tmp_path)
    assert {name: len(frame) for name, frame in frames.items()} == {key: len(values) - 20, "other": 20}


def test_a_decimal_is_called_the_same_whatever_other_rows_hold() -> None:
    for values in (["1"], ["1", "2.50"]):
        table = pd.DataFrame({"k": [Decimal(value) for value in values], "y": 1.0})
        assert find_customers(definition(table, by="k"))[0].id == "1"


@pytest.mark.parametrize(
    "values",
    [
        pd.period_range("2024-01", periods=3, freq="M"),
        pd.period_range("2024", periods=3, freq="Q"),
        pd.interval_range(0, 3),
        pd.cut([1, 2, 3], 3),
        pd.Categorical(pd.period_range("2024-01", periods=3, freq="M")),
        pd.arrays.SparseArray([1, 2, 3]),
        np.array([1, 2, 3], dtype=">i4"),
    ],
    ids=str,
)
def test_keys_of_types_that_only_pandas_has_are_called_as_pandas_shows_them(
    values: pd.api.extensions.ExtensionArray, tmp_path: Path
) -> None:
    rows = pd.concat([pd.DataFrame({"k": values, "y": 1.0})] * 20, ignore_index=True)
    frames = rows_of(definition(rows, by="k"), tmp_path)
    assert {name: len(frame) for name, frame in frames.items()} == dict.fromkeys(map(str, values), 20)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "hive", "frame alone"])
def test_rows_that_are_not_as_many_as_were_counted_are_an_error_with_both_numbers(kind: str, tmp_path: Path) -> None:
    table = trips(60, zones=3)
    by = None if kind == "frame alone" else "zone"
    if kind == "hive":
        table.to_parquet(tmp_path / "t", partition_cols=["zone"], index=False)
    elif kind in ("csv", "parquet"):
        (table.to_csv if kind == "csv" else table.to_parquet)(tmp_path / f"t.{kind}", index=False)
    data = table if "frame" in kind else str(tmp_path / ("t" if kind == "hive" else f"t.{kind}"))
    made = definition(data, by=by) if by else definition(data)
    customer = placed(made, tmp_path)[0]
    assert customer.rows is not None
    Loader(made, [customer]).read(customer)
    other = replace(customer, rows=customer.rows + 5)
    with pytest.raises(CustomerError, match=f"^{customer.rows} rows read, but {other.rows} counted"):
        Loader(made, [other]).read(other)
