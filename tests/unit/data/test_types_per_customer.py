"""What a column is, is decided from one customer's own rows, whatever other customers' cells hold."""

from __future__ import annotations

import decimal
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from data_shapes import definition, placed, rows_of, trips

from tuning import TuneRunner
from tuning.cli.init import starter
from tuning.data.cells import typed
from tuning.data.column_types import to_frame
from tuning.data.customers import find_customers
from tuning.data.keys import Key
from tuning.data.loading import Loader
from tuning.data.registry import file_source
from tuning.planning.plan import make_plan
from tuning.planning.validation import check_customers

COLUMNS = [
    ["1", "2", "-3"],
    ["1", "", "3"],
    ["1.5", "2", "1e-3"],
    [".5", "5.", "+2"],
    ["9223372036854775808", "1", "2"],
    ["True", "False", "true"],
    ["TRUE", "", "false"],
    ["", "", ""],
    ["a", "1", "2"],
    ["007", "7", "70"],
    ["inf", "-inf", "1"],
    ["1 ", "2", "3"],
    ["True", "1", "0"],
    ["0x10", "1", "2"],
    ["1_000", "2", "3"],
    ["NA", "1", "null"],
    ["-999", "1.5", "2"],
    ["0.1", "0.30000000000000004", "1e22"],
]


@pytest.mark.parametrize("cells", COLUMNS, ids=",".join)
@pytest.mark.parametrize(
    ("options", "change"),
    [
        ({}, lambda text: text),
        ({"decimal": ",", "sep": ";"}, lambda text: text.replace(".", ",")),
        ({"decimal": ",", "thousands": ".", "sep": ";"}, lambda text: text.replace(".", ",")),
        ({"na_values": ("-999",)}, lambda text: text),
    ],
    ids=["plain", "comma", "thousands", "missing"],
)
def test_a_customers_column_is_what_pandas_makes_of_it_alone(
    cells: list[str], options: dict[str, Any], change: Callable[[str], str]
) -> None:
    cells = [change(text) for text in cells]
    text = "x\n" + "\n".join(f'"{cell}"' for cell in cells) + "\n"
    alone = pd.read_csv(io.StringIO(text), **options)["x"]
    missing = pd.read_csv(io.StringIO(text), dtype=str, **options)["x"]
    table = pa.table({"x": pa.array(missing, pa.string(), from_pandas=True)})
    pd.testing.assert_series_equal(typed(table, options)["x"], alone, check_exact=True)


def with_bad_cell(table: pd.DataFrame) -> pd.DataFrame:
    """Whole numbers, truth values and a target, with cells of zone 3 that fit none of them."""
    table = table.assign(n=np.arange(len(table)), b=np.arange(len(table)) % 2 == 0).astype(object)
    for name in ("x", "y", "n", "b"):
        table.loc[table.index[table["zone"] == 3][0], name] = "n.a.?"
    return table


@pytest.mark.parametrize("kind", ["csv", "frame", "folder of parquet"])
def test_one_customers_cells_change_nobody_elses_types(kind: str, tmp_path: Path) -> None:
    dirty = with_bad_cell(trips())
    if kind == "frame":
        data: Any = dirty
    elif kind == "csv":
        data = tmp_path / "t.csv"
        dirty.to_csv(data, index=False)
    else:
        data = tmp_path / "data"
        data.mkdir()
        clean = dirty[dirty["zone"] != 3].infer_objects()
        clean.to_parquet(data / "0.parquet", index=False)
        dirty[dirty["zone"] == 3].astype(str).to_parquet(data / "1.parquet", index=False)
    frames = rows_of(definition(data, by="zone"), tmp_path)
    for zone, frame in frames.items():
        kinds = {name: frame[name].dtype.kind for name in ("x", "y", "n", "b")}
        assert kinds == (dict.fromkeys("xynb", "O") if zone == "3" else {"x": "f", "y": "f", "n": "i", "b": "b"})
    expected = trips()
    for zone in ("0", "5"):
        assert frames[zone]["x"].tolist() == expected[expected["zone"] == int(zone)]["x"].tolist()


def test_rows_that_are_cut_out_of_one_frame_are_those_that_are_read_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"zone": rng.choice(["a", "b", "c", None], 60), "y": rng.normal(size=60), "n": range(60)})
    table["gaps"] = table["y"].where(table["y"] > 0)
    table["small"], table["flag"] = table["y"].astype("float32"), table["y"] > 0
    table["text"] = rng.choice(["x", "", None], 60)
    for name, given in {"plain": table, "cut": table[table["y"] < 1], "indexed": table.set_index("n")}.items():
        path = tmp_path / f"{name}.parquet"
        given.to_parquet(path)
        made = definition(path, by="zone")
        (tmp_path / name).mkdir()
        customers = placed(made, tmp_path / name)
        together = Loader(made, customers)
        for customer in customers:
            frame, alone = together.read(customer), to_frame(key_rows(path, customer.key))
            pd.testing.assert_frame_equal(frame, alone)
            frame.loc[frame.index[0], "y"] = 1e9
            frame["more"] = 0
        for customer in customers:
            pd.testing.assert_frame_equal(together.read(customer), to_frame(key_rows(path, customer.key)))


def test_a_customers_rows_are_found_in_files_of_several_schemas(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    zones, y = ["a", "b", "c", "c"], [1.0, 2.0, 3.0, 4.0]
    files = [
        {"zone": zones, "y": y},
        {"zone": zones[::-1], "y": [5, 6, 7, 8], "x": y},
        {"zone": zones[:3], "y": y[:3]},
        {"zone": ["d"] * 2, "y": ["9", "10"]},
    ]
    for number, columns in enumerate(files):
        pq.write_table(pa.table(columns), tmp_path / "t" / f"{number}.parquet")
    frames = rows_of(definition(tmp_path / "t", by="zone"), tmp_path)
    found = {zone: frame["y"].astype(float).tolist() for zone, frame in frames.items()}
    assert found == {"a": [1, 8, 1], "b": [2, 7, 2], "c": [3, 4, 5, 6, 3], "d": [9, 10]}


def test_text_of_parquet_that_is_no_utf8_costs_nobody_else(tmp_path: Path) -> None:
    zones = [b"a", b"b\xff", b"c"] * 12
    texts = [b"one\xe9" if zone == b"c" else b"one" if row % 2 else b"two" for row, zone in enumerate(zones)]
    zone, text = (pa.array(values).view(pa.string()) for values in (zones, texts))
    y = np.random.default_rng(0).normal(size=36)
    pq.write_table(pa.table({"zone": zone, "text": text, "x": y * y, "y": y}), tmp_path / "t.parquet")
    quick = {"trials": 1, "slots": 2, "search_space": "ridge", "mlflow": False, "task": "regression"}
    runner = TuneRunner(data=str(tmp_path / "t.parquet"), by="zone", target="y", **quick)
    found = runner.run(tmp_path / "run", progress=False, in_process=True)
    assert {one.customer: one.status for one in found.study_records} == dict.fromkeys(["a", r"b\xff", "c"], "ok")
    notes = {one.customer: "; ".join(map(str, one.notes)) for one in found.study_records}
    assert "text" in notes["c"]
    assert "text" not in notes["a"]


def key_rows(path: Path, key: Key | None) -> pa.Table:
    table = pq.read_table(path)
    assert key is not None
    zone = table["zone"]
    return table.filter(pc.is_null(zone) if key[0] is None else pc.equal(zone, key[0]))


ODD: dict[str, Any] = {
    "interval": pd.cut(np.arange(40.0), 5),
    "intervals": pd.arrays.IntervalArray.from_breaks(np.arange(41.0)),
    "period": pd.period_range("2024-01", periods=40, freq="M"),
    "sparse": pd.arrays.SparseArray(np.arange(40) % 3),
    "large": [2**63 + number for number in range(40)],
    "huge": [2**70 + number for number in range(40)],
    "complex": np.arange(40) * 1j,
    "longdouble": np.arange(40, dtype=np.longdouble),
    "lists": [[number] for number in range(40)],
    "empty dicts": [{} for _ in range(40)],
    "ragged": [[1], "a", None, 3] * 10,
    "surrogates": pd.Series(["\ud800", "ok"] * 20, dtype=object),
    "objects": [object() for _ in range(40)],
    "sets": [{1, 2}, set()] * 20,
    "decimals": [decimal.Decimal(f"{number}.5") for number in range(40)],
    "moments": [pd.Timestamp("2024-01-01"), "soon"] * 20,
    "times": [pd.Timestamp("2024-01-01").time()] * 40,
    "bytes": [b"\xff", b"\xfe"] * 20,
}


def odd_frame(values: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) ** 2}).assign(odd=values)


@pytest.mark.parametrize("name", ODD)
def test_whatever_a_frames_column_holds_its_customer_goes_on(name: str, tmp_path: Path) -> None:
    made = definition({"odd": odd_frame(ODD[name]), "plain": trips(40)})
    frames = rows_of(made, tmp_path)
    assert frames["odd"]["x"].tolist() == list(range(40))
    kinds = {"sparse": "i", "large": "u", "huge": "f", "longdouble": "f", "decimals": "f"}
    if name in kinds:
        assert frames["odd"]["odd"].dtype.kind == kinds[name]
    pd.testing.assert_frame_equal(frames["plain"], trips(40))
    assert check_customers(make_plan(made), find_customers(made)).keys() <= {"plain"}


def test_decimals_and_bytes_of_parquet_are_numbers_and_text(tmp_path: Path) -> None:
    amounts = pa.array([decimal.Decimal("1.25"), None], pa.decimal128(10, 2))
    pq.write_table(
        pa.table({"d": amounts, "b": pa.array(["é".encode(), None], pa.binary()), "c": [b"\xff", b"a"]}),
        tmp_path / "t.parquet",
    )
    frame = file_source(str(tmp_path / "t.parquet"), {}).read()
    assert frame["d"].tolist()[0] == 1.25
    assert frame["d"].dtype == np.float64
    assert frame["b"].tolist()[0] == "é"
    assert frame["c"].tolist() == [b"\xff", b"a"]


def test_key_columns_stay_as_they_are_written_beside_cells_that_get_types(tmp_path: Path) -> None:
    keys = ["007", "NA", "1,5", "-999", "True", ""]
    (tmp_path / "t.csv").write_text("k;x;y\n" + "".join(f"{key};1,5;-999\n{key};;2\n" for key in keys))
    csv = {"sep": ";", "decimal": ",", "na_values": ["-999"]}
    frames = rows_of(definition(str(tmp_path / "t.csv"), by="k", csv=csv), tmp_path)
    assert sorted(frame["k"].tolist() for frame in frames.values()) == sorted([key, key] for key in keys)
    for frame in frames.values():
        assert list(frame.columns) == ["k", "x", "y"]
        np.testing.assert_array_equal(frame[["x", "y"]], [[1.5, np.nan], [np.nan, 2.0]])


@pytest.mark.parametrize("odd", [[1.0, 2.0], {"v": 1.0}], ids=["lists", "structs"])
def test_a_target_of_lists_is_its_customers_reason_in_plan_validate_and_init(odd: Any, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    large = trips(400).assign(y=[odd] * 400)  # the first that is looked at
    large.to_parquet(data / "odd.parquet")
    for name in ("a", "b"):
        trips(60).to_parquet(data / f"{name}.parquet")
    made = definition(str(data), task="auto")
    plan = make_plan(made)
    assert plan.spec.task == "regression"
    refused = check_customers(plan, find_customers(made))
    assert refused == {"odd": "the column 'y' holds lists or the like; numbers or text are needed."}
    assert "task: regression" in starter(str(data), "y", (), str(tmp_path))
