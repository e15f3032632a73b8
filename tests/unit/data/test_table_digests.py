"""Customers of a table are known by their own rows, in their order, however the table is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_shapes import changed_since, known

from tuning.definition.definition import Definition, define


def table(count: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "shop": rng.choice(["a", "b", "c", "d"], count),
            "fee": rng.normal(50, 20, count).round(2),
            "age": rng.integers(18, 90, count),
            "plan": rng.choice(["basic", "pro"], count),
            "y": rng.normal(size=count),
        }
    )


def made(data: Any, **fields: Any) -> Definition:
    return define({"data": data, "target": "y", "by": "shop", **fields})


def write_parquet(frame: pd.DataFrame, path: Path, rows: int = 50) -> Definition:
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=rows)
    return made(str(path))


def write_csv(frame: pd.DataFrame, path: Path, **notation: Any) -> Definition:
    frame.to_csv(path, index=False, **notation)
    return made(str(path), **({"csv": notation} if notation else {}))


FORMS: dict[str, Callable[[pd.DataFrame, Path], Definition]] = {
    "a frame": lambda frame, folder: made(frame),
    "Parquet": lambda frame, folder: write_parquet(frame, folder / "t.parquet"),
    "CSV": lambda frame, folder: write_csv(frame, folder / "t.csv"),
    "CSV with a decimal comma": lambda frame, folder: write_csv(frame, folder / "t.csv", sep=";", decimal=","),
    "folders": lambda frame, folder: (
        frame.to_parquet(folder / "t", partition_cols=["shop"], index=False),
        made(str(folder / "t")),
    )[1],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS.keys())
def test_one_row_more_or_another_value_marks_its_customer_alone(form: Any, tmp_path: Path) -> None:
    def of(frame: pd.DataFrame, folder: str) -> Definition:
        (tmp_path / folder).mkdir()
        return form(frame, tmp_path / folder)

    frame = table()
    before = known(of(frame, "first"))
    assert all(before[name].digest for name in "abcd")
    assert changed_since(of(frame, "same"), before) == []
    row = frame.index[frame["shop"] == "c"][3]
    assert changed_since(of(frame.assign(fee=frame["fee"].where(frame.index != row, 0.5)), "altered"), before) == ["c"]
    appended = pd.concat([frame, frame[frame["shop"] == "b"][:1]], ignore_index=True)
    assert changed_since(of(appended, "appended"), before) == ["b"]


def test_the_order_of_a_customer_s_rows_counts_and_row_groups_do_not(tmp_path: Path) -> None:
    def digests(frame: pd.DataFrame, rows: int) -> dict[str, str]:
        return {name: each.digest for name, each in known(write_parquet(frame, tmp_path / "t.parquet", rows)).items()}

    frame = table()
    before = digests(frame, 50)
    assert digests(frame, 7) == before == digests(frame, 1000)
    assert digests(frame.sort_values("shop", kind="stable", ignore_index=True), 64) == before
    places, order = np.flatnonzero(frame["shop"] == "c"), np.arange(len(frame))
    order[places[[2, 9]]] = places[[9, 2]]
    after = digests(frame.iloc[order], 50)
    assert {shop for shop in before if before[shop] != after[shop]} == {"c"}


def test_an_odd_cell_in_a_table_of_text_changes_no_other_customer(tmp_path: Path) -> None:
    frame = table().astype({"fee": object})
    before = known(write_csv(frame, tmp_path / "t.csv"))
    odd = pd.DataFrame({"shop": ["b"], "fee": ["unknown"], "age": [""], "plan": ["pro"], "y": [1.0]})
    assert changed_since(write_csv(pd.concat([frame, odd]), tmp_path / "t.csv"), before) == ["b"]
