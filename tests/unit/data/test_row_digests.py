"""Customers' rows are known one by one in tables of any size, and what has not changed is not read again."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tuning.data import row_digests
from tuning.data.customers import Customer, find_customers
from tuning.data.fingerprints import changed, digested
from tuning.data.formats.parquet_file import ParquetSource
from tuning.data.keyed_tables import find_tables
from tuning.data.ordered_digests import digests_in_order
from tuning.data.row_digests import rows_now
from tuning.definition.definition import Definition, define
from tuning.preprocessing.row_hashes import row_hashes


def table(count: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "shop": rng.choice(["a", "b", "c", "d"], count),
            "fee": rng.normal(50, 20, count).round(2),
            "age": rng.integers(18, 90, count),
            "plan": rng.choice(["basic", "pro"], count),
            "y": np.where(rng.random(count) < 0.1, np.nan, rng.normal(size=count)),
        }
    )


def made(data: Any, by: str | None = "shop", **fields: Any) -> Definition:
    return define({"data": data, "target": "y", **({"by": by} if by else {}), **fields})


def found(definition: Definition, remembered: pa.Table | None = None) -> pa.Table:
    return rows_now(definition, find_customers(definition), remembered)


def of_each(rows: pa.Table) -> dict[str, Counter[int]]:
    """The hashes of each customer's rows."""
    known: dict[str, Counter[int]] = {}
    for row in rows.to_pylist():
        assert row["rows"] == len(row["each"])
        assert row["digest"] == sum(row["each"]) % 2**64
        known.setdefault(row["customer"], Counter()).update(row["each"])
    return known


def plainly(frame: pd.DataFrame) -> dict[str, Counter[int]]:
    """The second form: each customer's rows with a target, without the key."""
    known = frame[frame["y"].notna()]
    return {shop: Counter(row_hashes(rows.drop(columns="shop")).tolist()) for shop, rows in known.groupby("shop")}


def write_parquet(frame: pd.DataFrame, path: Path, rows: int = 50) -> None:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=rows)


FORMS: dict[str, Callable[[pd.DataFrame, Path], Definition]] = {
    "a frame": lambda frame, folder: made(frame),
    "frames": lambda frame, folder: made(
        {shop: rows.drop(columns="shop") for shop, rows in frame.groupby("shop")}, None
    ),
    "Parquet": lambda frame, folder: (write_parquet(frame, folder / "t.parquet"), made(str(folder / "t.parquet")))[1],
    "CSV": lambda frame, folder: (frame.to_csv(folder / "t.csv", index=False), made(str(folder / "t.csv")))[1],
    "CSV with a decimal comma": lambda frame, folder: (
        frame.to_csv(folder / "t.csv", index=False, sep=";", decimal=","),
        made(str(folder / "t.csv"), csv={"sep": ";", "decimal": ","}),
    )[1],
    "files": lambda frame, folder: (
        [rows.drop(columns="shop").to_csv(folder / f"{shop}.csv", index=False) for shop, rows in frame.groupby("shop")],
        made(str(folder), None),
    )[1],
    "folders": lambda frame, folder: (
        frame.to_parquet(folder / "t", partition_cols=["shop"], index=False),
        made(str(folder / "t")),
    )[1],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_rows_are_known_alike_in_each_form_of_data(form: Any, tmp_path: Path) -> None:
    frame = table()
    assert of_each(found(form(frame, tmp_path))) == plainly(frame)


@pytest.mark.parametrize("fields", [{}, {"csv": {"sep": ";", "decimal": ","}}])
def test_an_odd_cell_and_what_pandas_has_noted_as_index_change_no_other_row(
    fields: dict[str, Any], tmp_path: Path
) -> None:
    frame = table().dropna().assign(fee=lambda rows: rows["fee"].astype(object), on=True)
    notation = {"sep": ";", "decimal": ","} if fields else {}
    frame.to_csv(tmp_path / "t.csv", index=False, **notation)
    before = of_each(found(made(str(tmp_path / "t.csv"), **fields)))
    odd = pd.DataFrame({"shop": ["b"], "fee": ["unknown"], "age": [""], "plan": ["pro"], "y": [1.0], "on": ["maybe"]})
    pd.concat([frame, odd]).to_csv(tmp_path / "t.csv", index=False, **notation)
    after = of_each(found(made(str(tmp_path / "t.csv"), **fields)))
    assert (after["b"] - before["b"]).total() == 1
    assert {**after, "b": before["b"]} == before
    ordered = frame.astype({"fee": float}).sort_values("age")  # whose index is a column of the file
    ordered.to_parquet(tmp_path / "t.parquet")
    assert of_each(found(made(str(tmp_path / "t.parquet")))) == before


def test_the_order_of_rows_and_columns_and_a_gap_elsewhere_change_nothing() -> None:
    frame = table()
    before = of_each(found(made(frame)))
    other = frame.sample(frac=1, random_state=1)[["y", "plan", "age", "fee", "shop"]]
    assert of_each(found(made(other))) == before
    gap = pd.DataFrame({"shop": ["b"], "age": [None], "y": [1.0]})
    after = of_each(found(made(pd.concat([frame, gap], ignore_index=True))))
    assert (after["b"] - before["b"]).total() == 1
    assert {**after, "b": before["b"]} == before


def test_a_row_group_whose_bytes_are_those_of_last_time_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, frame = tmp_path / "t.parquet", table()
    write_parquet(frame, file)
    definition = made(str(file))
    before = found(definition)
    read: list[int] = []
    pieces = ParquetSource.block_pieces
    monkeypatch.setattr(
        ParquetSource,
        "block_pieces",
        lambda self, block, *rest: read.append(block.number) or pieces(self, block, *rest),
    )
    grown = pd.concat([frame, table(10, seed=1)], ignore_index=True)
    write_parquet(grown, file)
    after = found(definition, before)
    assert read == [6]
    assert of_each(after) == plainly(grown)
    os.utime(file, ns=(1, 1))
    read.clear()
    assert of_each(found(definition, after)) == plainly(grown)
    assert read == []


def test_a_file_with_the_stamp_of_last_time_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    definition = FORMS["files"](table(), tmp_path)
    before = found(definition)
    opened: list[str] = []
    read = row_digests.read_block
    monkeypatch.setattr(
        row_digests, "read_block", lambda part, *rest: opened.append(Path(part.file).name) or read(part, *rest)
    )
    assert found(definition, before) is before
    table(9, seed=2).drop(columns="shop").to_csv(tmp_path / "e.csv", index=False)
    (tmp_path / "b.csv").unlink()
    after = of_each(found(definition, before))
    assert sorted(after) == ["a", "c", "d", "e"]
    assert opened == ["e.csv"]


def test_a_customer_whose_rows_are_not_remembered_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    write_parquet(table(), file)
    before = found(made(str(file)))
    fewer = before.filter(pc.not_equal(before["customer"], "b"))  # as where one customer was rolled back
    assert of_each(found(made(str(file)), fewer)) == plainly(table())


def test_what_another_definition_has_found_is_of_no_use(tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    write_parquet(table(), file)
    before = found(made(str(file)))
    fewer = found(made(str(file), drop="fee"), before)
    assert of_each(fewer) == plainly(table().drop(columns="fee"))


def test_digests_in_order_depend_on_the_order_and_not_on_row_groups(tmp_path: Path) -> None:
    frame = table()

    def of_table(rows: pd.DataFrame, size: int) -> dict[str, str]:
        write_parquet(rows, tmp_path / "t.parquet", size)
        definition = made(str(tmp_path / "t.parquet"))
        (one,) = find_tables(definition.data, definition.by)
        ids, digests = digests_in_order(one, definition)
        return dict(zip(ids.to_pylist(), digests.to_pylist(), strict=True))

    before = of_table(frame, 50)
    assert all(len(digest) == 32 for digest in before.values())
    assert of_table(frame, 7) == before == of_table(frame, 1000)
    others = frame.sort_values("shop", kind="stable", ignore_index=True)
    assert of_table(others, 64) == before  # each customer's rows are in their order
    places = np.flatnonzero((frame["shop"] == "c") & frame["y"].notna())
    order = np.arange(len(frame))
    order[places[[2, 9]]] = places[[9, 2]]
    after = of_table(frame.iloc[order], 50)
    assert {shop for shop in before if before[shop] != after[shop]} == {"c"}


def known(definition: Definition) -> dict[str, Customer]:
    return {customer.id: customer for customer in digested(definition, find_customers(definition))}


def changed_since(definition: Definition, before: dict[str, Customer]) -> list[str]:
    return [customer.id for customer in changed(definition, before, find_customers(definition))]


@pytest.mark.parametrize("form", ["Parquet", "CSV"])
def test_one_row_more_or_another_value_marks_its_customer_alone(form: str, tmp_path: Path) -> None:
    frame = table().dropna()
    before = known(FORMS[form](frame, tmp_path))
    assert changed_since(FORMS[form](frame, tmp_path), before) == []
    row = frame.index[frame["shop"] == "c"][3]
    altered = frame.assign(fee=frame["fee"].where(frame.index != row, 0.5))
    assert changed_since(FORMS[form](altered, tmp_path), before) == ["c"]
    appended = pd.concat([frame, frame[frame["shop"] == "b"][:1]])
    assert changed_since(FORMS[form](appended, tmp_path), before) == ["b"]
