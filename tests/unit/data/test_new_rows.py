"""New rows of tables are found in one pass, and what has not changed is not read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tuning.refresh.known_rows import hashes_of, new_positions

from tuning.data import row_digests
from tuning.data.customers import find_customers
from tuning.data.new_rows import new_rows
from tuning.data.row_digests import rows_now
from tuning.definition.definition import Definition, define


def found(definition: Definition, before: pa.Table, names: list[str]) -> dict[str, pd.DataFrame]:
    """The new rows of some customers, as the definition has them now."""
    customers = find_customers(definition)
    now = rows_now(definition, customers, before)
    then, here = hashes_of(before, names), hashes_of(now, names)
    wanted = {name: here[name][new_positions(then[name], here[name])] for name in names}
    rows = new_rows(definition, customers, before, wanted)
    assert rows is not None
    return {name: rows.rows(name) for name in names}


def frame(seed: int, rows: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"shop": rng.choice(["a", "b", "c"], rows), "x": rng.normal(size=rows), "kind": rng.choice(["u", "v"], rows)}
    ).assign(y=range(rows))


def test_of_a_table_only_row_groups_that_have_changed_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, old, new = tmp_path / "table.parquet", frame(0), frame(1)
    new["y"] += 1000
    new.loc[3, "y"] = None  # without a target it counts later
    definition = define({"data": str(path), "by": "shop", "target": "y"})

    def write(*parts: pd.DataFrame) -> None:
        with pq.ParquetWriter(path, pa.Table.from_pandas(frame(0), preserve_index=False).schema) as writer:
            for part in parts:
                table = pa.Table.from_pandas(part, preserve_index=False)
                writer.write_table(table.cast(writer.schema))

    write(old)
    before = rows_now(definition, find_customers(definition))
    write(old, pd.concat([new, old[:5], new[10:12]]))  # copies are none
    read: list[int] = []
    pieces = row_digests.Part.pieces
    monkeypatch.setattr(
        row_digests.Part, "pieces", lambda self, block, *more: read.append(block.number) or pieces(self, block, *more)
    )
    rows = found(definition, before, ["a", "b", "c"])
    assert set(read) == {1}
    there = new.dropna()
    for name, each in rows.items():
        expected = there[there["shop"] == name].reset_index(drop=True)
        assert each["y"].tolist() == expected["y"].tolist()
        assert each["x"].tolist() == expected["x"].tolist()
        assert each["kind"].tolist() == expected["kind"].tolist()


def test_copies_of_rows_that_were_there_are_not_new_wherever_they_stand(tmp_path: Path) -> None:
    old = frame(0)
    old.to_csv(tmp_path / "table.csv", index=False)
    definition = define({"data": str(tmp_path / "table.csv"), "by": "shop", "target": "y"})
    before = rows_now(definition, find_customers(definition))
    pd.concat([old[7:8], old, old[7:8], frame(2, 3)[::-1]]).to_csv(tmp_path / "table.csv", index=False)
    rows = found(definition, before, ["a", "b", "c"])
    assert sorted(pd.concat(rows.values())["y"]) == [0, 1, 2]


def test_files_of_customers_with_other_columns_are_read_beside_each_other(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        frame(0)[:20].drop(columns="kind" if name == "b" else "shop").to_csv(tmp_path / f"{name}.csv", index=False)
    definition = define({"data": f"{tmp_path}/*.csv", "target": "y"})
    before = rows_now(definition, find_customers(definition))
    for name in ("a", "b", "c"):
        frame(0)[:25].drop(columns="kind" if name == "b" else "shop").to_csv(tmp_path / f"{name}.csv", index=False)
    rows = found(definition, before, ["a", "b", "c"])
    assert [each["y"].tolist() for each in rows.values()] == [[20, 21, 22, 23, 24]] * 3
    assert ("kind" in rows["a"], "kind" in rows["b"]) == (True, False)
