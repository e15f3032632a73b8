"""Rows come back as they came, each beside the prediction of its own customer's model, whichever way they take."""

from __future__ import annotations

import csv
import datetime
import decimal
import gzip
import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import tuning
from service_app import bearer, child_here, finished
from starlette.testclient import TestClient

from tuning import RunResult, TuneRunner
from tuning.runs.prediction.files import predict_files
from tuning.runs.prediction.workers import PredictionWorkers
from tuning.runs.results import RunModels
from tuning.service.children import Children
from tuning.service.database import schema
from tuning.service.database.connection import Database
from tuning.service.service import Service
from tuning.service.settings import ServiceSettings
from tuning.service.web.app import create_app

SHOPS, QUANTITIES = ["a", "b", "a", "b"], ["3", "4", "5", "6.50"]
Cells = list[list[str]]

#: Columns of a CSV that no model looks at, four cells each.
COLUMNS = {
    "zeros in front": ["00007", "00008", "7", "007"],
    "beyond a float": ["9007199254740993", "9007199254740992", "", "18446744073709551617"],
    "whole numbers and gaps": ["1", "", "3", ""],
    "cents": ["1.50", "2.00", "10", "0.10"],
    "exponents": ["1e3", "1E-7", "+5", "-0"],
    "many digits": ["0.1000000000000000055511", "3.141592653589793238", ".5", "5."],
    "infinities": ["inf", "-inf", "Infinity", "1"],
    "thousands": ["13,659.78", "1,000", "1 000", "1'000"],
    "decimal comma": ["1,5", "2,25", "", "3"],
    "pandas' missing": ["NA", "NaN", "null", "None"],
    "other missing": ["n/a", "#N/A", "-", "?"],
    "missing among numbers": ["1", "NA", "null", "4"],
    "named as missing": ["MISS", "1", "-999", "-999.0"],
    "all empty": ["", "", "", ""],
    "all missing": ["NA", "NA", "NA", "NA"],
    "booleans": ["true", "false", "true", "false"],
    "Booleans": ["True", "FALSE", "", "true"],
    "yes": ["yes", "no", "Y", "N"],
    "days": ["2024-01-03", "2024-02-30", "03.01.2024", "1/2/24"],
    "times": ["2024-01-03T00:00:00Z", "2024-01-03 10:00:00+02:00", "10:30", "1704240000"],
    "blanks": [" x", "x ", "  ", "\tx\t"],
    "commas": ["a,b", ",", "a, b", ",,"],
    "quotes": ['q"', '"', '""', "it's"],
    "lines": ["a\nb", "a\r\nb", "\n", "a\rb"],
    "apostrophes": ["'=1", "'", "''", "a'b"],
    "formulas": ["=1+1", "@SUM(A1)", "-2", "+x"],
    "unicode": ["é", "e\u0301", "Zürich", "東京"],
    "signs": ["😀", "\u200b", "\u00a0", "\ufeff"],
    "backslashes": ["\\", "\\n", "a\\", "\\N"],
    "comments": ["#1", "# x", "//", ";"],
    "marks": ["<NA>", "<b>", "&amp;", "%25"],
    "hexadecimal": ["0x1F", "1_000", "0b1", "1j"],
    "UUIDs": ["6ba7b810-9dad-11d1-80b4-00c04fd430c8", "1e10", "12e4", "0e0"],
    "long": ["x" * 5000, "1" * 400, "", "0" * 40],
}  # fmt: skip
#: Names of columns beside the two that the models look at.
NAMES = ["id", "ID", " id", "prix €", "東京", "a,b", 'q"', "a\nb", "1", "NA", "prediction", "probability_a", "answer",
         "run", "__index_level_0__", "=x"]  # fmt: skip
FILES: dict[str, tuple[bytes, Cells]] = {
    "ends of lines": (b"id,shop,qty\r\n01,a,3\r\n02,b,4\r\n", [["01", "a", "3"], ["02", "b", "4"]]),
    "no end": (b"id,shop,qty\n01,a,3\n02,b,4", [["01", "a", "3"], ["02", "b", "4"]]),
    "mark of UTF-8": (b"\xef\xbb\xbfid,shop,qty\n01,a,3\n", [["01", "a", "3"]]),
    "quotes around all": (b'"id","shop","qty"\n"01","a","3"\n', [["01", "a", "3"]]),
    "another order": (b"qty,id,shop\n3,01,a\n4,02,b\n", [["3", "01", "a"], ["4", "02", "b"]]),
    "a short row": (b"shop,qty,id,more\na,3\nb,4,02,x\n", [["a", "3", "", ""], ["b", "4", "02", "x"]]),
    "one row": (b"id,shop,qty\nNA,a,3\n", [["NA", "a", "3"]]),
    "the same rows": (b"id,shop,qty\n01,a,3\n01,a,3\n01,a,3\n", [["01", "a", "3"]] * 3),
    "an index": (b",id,shop,qty\n0,01,a,3\n1,02,b,4\n", [["0", "01", "a", "3"], ["1", "02", "b", "4"]]),
    "an index with gaps": (b",id,shop,qty\n7,01,a,3\n2,02,b,4\n", [["7", "01", "a", "3"], ["2", "02", "b", "4"]]),
    "an index of text": (b",id,shop,qty\nx1,01,a,3\n,02,b,4\n", [["x1", "01", "a", "3"], ["", "02", "b", "4"]]),
    "a blank line": (b"id,shop,qty\n01,a,3\n\n02,b,4\n", [["01", "a", "3"], ["02", "b", "4"]]),
}


def cells_of(text: str) -> Cells:
    return list(csv.reader(io.StringIO(text, newline="")))


def csv_of(names: list[str], rows: list[list[str]]) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text).writerows([names, *rows])
    return text.getvalue().encode()


@dataclass(frozen=True)
class Ways:
    """A run of two shops whose target is twice the quantity, and a server that has it."""

    result: RunResult
    client: TestClient

    def stdout(self, rows: bytes, folder: Path) -> Cells:
        answer = tuning("predict", self.result.directory.root, "--data", _file(rows, folder))
        return cells_of(answer.stdout_bytes.decode())

    def output(self, rows: bytes, folder: Path) -> Cells:
        self._predict(rows, folder, "out.csv")
        return cells_of((folder / "out.csv").read_bytes().decode())

    def compressed(self, rows: bytes, folder: Path) -> Cells:
        self._predict(rows, folder, "out.csv.gz")
        return cells_of(gzip.decompress((folder / "out.csv.gz").read_bytes()).decode())

    def parquet(self, rows: bytes, folder: Path) -> Cells:
        self._predict(rows, folder, "out.parquet")
        return _cells(pq.read_table(folder / "out.parquet").to_pydict())

    def python(self, rows: bytes, folder: Path) -> Cells:
        return _cells(self.result.predict(_file(rows, folder)).to_dict("list"))

    def batch(self, rows: bytes, folder: Path) -> Cells:
        predict_files(RunModels(self.result), _file(rows, folder), str(folder / "out"), processes=1)
        return cells_of((folder / "out" / "new.csv").read_bytes().decode())

    def http(self, rows: bytes, folder: Path) -> Cells:
        answer = self.client.post("predictions", content=rows, headers={"Content-Type": "text/csv"})
        assert answer.status_code == 200, answer.text
        return cells_of(answer.content.decode())

    def _predict(self, rows: bytes, folder: Path, output: str) -> None:
        data = _file(rows, folder)
        answer = tuning("predict", self.result.directory.root, "--data", data, "--output", folder / output)
        assert answer.exit_code == 0, answer.output


WAYS: dict[str, Callable[[Ways, bytes, Path], Cells]] = {
    "stdout": Ways.stdout, "output": Ways.output, "compressed": Ways.compressed, "parquet": Ways.parquet,
    "python": Ways.python, "batch": Ways.batch, "http": Ways.http,
}  # fmt: skip


def _file(rows: bytes, folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    (folder / "new.csv").write_bytes(rows)
    return str(folder / "new.csv")


def _cells(columns: Mapping[str, list[Any]]) -> Cells:
    """Texts as they are; numbers, which are predictions, as Python writes them."""
    return [list(columns), *([str(cell) for cell in row] for row in zip(*columns.values(), strict=True))]


@pytest.fixture(scope="module")
def ways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    folder = tmp_path_factory.mktemp("identity")
    rng = np.random.default_rng(0)
    known = pd.DataFrame({"shop": np.repeat(["a", "b"], 40), "qty": rng.integers(1, 90, 80) / 10})
    known.assign(y=known["qty"] * 2 + (known["shop"] == "b") * 100).to_csv(folder / "known.csv", index=False)
    runner = TuneRunner(
        data=str(folder / "known.csv"), by="shop", target="y", models=["ridge"], trials=1, mlflow=False, report=False,
        ensemble="none", portfolio="none", csv={"na_values": ["MISS", "-999"]},
    )  # fmt: skip
    result = runner.run(str(folder / "run"), in_process=True, progress=False)
    database = Database(f"sqlite:///{folder}/service.db")
    schema.upgrade(database)
    settings = ServiceSettings(
        database=str(database.url), storage=str(folder / "runs"), work=folder / "work", data=(str(folder),)
    )
    service = Service(settings, database, slots=lambda: 1)
    client = TestClient(create_app(service), headers=bearer(service))
    client.base_url = client.base_url.join(f"/api/v1/runs/{finished(service, result.directory.uri)}/")
    with pytest.MonkeyPatch.context() as patch, PredictionWorkers(RunModels(result), 1) as workers:
        patch.setattr("tuning.runs.prediction.files.PredictionWorkers", lambda *_: nullcontext(workers))
        patch.setattr(Children, "run", child_here)
        yield Ways(result, client)
    database.close()


def predictions(shops: list[str], quantities: list[float]) -> list[float]:
    return [quantity * 2 + 100 * (shop == "b") for shop, quantity in zip(shops, quantities, strict=True)]


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_cells_of_a_csv_come_back_to_the_letter_and_in_order(way: str, ways: Ways, tmp_path: Path) -> None:
    names = [*COLUMNS, "shop", "qty"]
    rows = [list(row) for row in zip(*COLUMNS.values(), SHOPS, QUANTITIES, strict=True)]
    header, *found = WAYS[way](ways, csv_of(names, rows), tmp_path)
    assert header[: len(names) + 1] == [*names, "prediction"]
    for place, name in enumerate(names):
        assert [row[place] for row in found] == [row[place] for row in rows], name
    expected = predictions(SHOPS, [float(each) for each in QUANTITIES])
    assert [float(row[len(names)]) for row in found] == pytest.approx(expected, abs=0.5)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
def test_names_of_columns_are_nobodys_but_the_users(way: str, ways: Ways, tmp_path: Path) -> None:
    names = [*NAMES, "shop", "qty"]
    rows = [[*(f"{number}{name}" for name in NAMES), "a", f"{number}"] for number in range(1, 4)]
    header, *found = WAYS[way](ways, csv_of(names, rows), tmp_path)
    assert header[: len(names)] == names
    assert [row[: len(names)] for row in found] == rows
    assert [float(row[header.index("prediction_2")]) for row in found] == pytest.approx([2, 4, 6], abs=0.5)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", FILES)
def test_files_that_are_written_otherwise_hold_the_same_rows(case: str, way: str, ways: Ways, tmp_path: Path) -> None:
    content, rows = FILES[case]
    header, *found = WAYS[way](ways, content, tmp_path)
    assert [row[: len(rows[0])] for row in found] == rows
    assert header[: len(rows[0])] == cells_of(content.decode("utf-8-sig"))[0]


# --- rows with types ------------------------------------------------------------------------------

MOMENTS = [datetime.datetime(2024, 1, day, 10, 30, 0, 123456) for day in (1, 2, 3)]
#: Columns of three values that no model looks at.
TYPED: dict[str, pa.Array] = {
    "int64 with a gap": pa.array([9007199254740993, None, 3]),
    "int8": pa.array([1, 2, 3], pa.int8()),
    "int32 with a gap": pa.array([1, None, 3], pa.int32()),
    "uint64": pa.array([2**64 - 1, 0, 1], pa.uint64()),
    "float32": pa.array([0.1, None, 3], pa.float32()),
    "float64": pa.array([0.1, float("inf"), 1e300]),
    "decimal": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal("99999999999999999999.99")]),
    "text": pa.array(["007", None, "NA"]),
    "empty text": pa.array(["", None, " "]),
    "large text": pa.array(["a", "b", "é"], pa.large_string()),
    "boolean": pa.array([True, False, True]),
    "boolean with a gap": pa.array([True, None, False]),
    "date": pa.array([moment.date() for moment in MOMENTS]),
    "time": pa.array([moment.time() for moment in MOMENTS]),
    "milliseconds": pa.array(MOMENTS, pa.timestamp("ms"), safe=False),
    "nanoseconds": pa.array([2**60 + 1, None, 3], pa.timestamp("ns")),
    "time zone": pa.array(MOMENTS, pa.timestamp("us", "Europe/Berlin")),
    "duration": pa.array([1, None, 3], pa.duration("us")),
    "category": pa.array(["x", "y", None]).dictionary_encode(),
    "bytes": pa.array([b"\xff\x00", None, b"a"]),
    "list": pa.array([[1, 2], None, []]),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}]),
    "nothing": pa.nulls(3),
}
SOLD = {"shop": ["b", "a", "b"], "qty": [1.5, 2.5, 3.5]}


def typed_file(folder: Path) -> tuple[str, pa.Table]:
    table = pa.table({**TYPED, **{name: pa.array(cells) for name, cells in SOLD.items()}})
    pq.write_table(table, folder / "new.parquet")
    return str(folder / "new.parquet"), pq.read_table(folder / "new.parquet")


@pytest.mark.long
@pytest.mark.parametrize("way", ["output", "batch", "python"])
def test_columns_of_parquet_keep_their_types(way: str, ways: Ways, tmp_path: Path) -> None:
    path, table = typed_file(tmp_path)
    if way == "python":
        found = pa.Table.from_pandas(ways.result.predict(path))
        for name in table.column_names:
            assert found[name].to_pylist() == table[name].to_pylist(), name
    else:
        if way == "output":
            tuning("predict", ways.result.directory.root, "--data", path, "--output", tmp_path / "new.out.parquet")
        else:
            predict_files(RunModels(ways.result), path, str(tmp_path / "out"), processes=1)
        (output,) = (each for each in tmp_path.rglob("new*.parquet") if str(each) != path)
        found = pq.read_table(output)
        for name in table.column_names:
            assert found[name].equals(table[name]), name
    assert found["prediction"].to_pylist() == pytest.approx(predictions(SOLD["shop"], SOLD["qty"]), abs=0.5)


def test_a_frame_in_a_parquet_file_keeps_its_index(ways: Ways, tmp_path: Path) -> None:
    frame = pd.DataFrame(SOLD, index=pd.Index(["00007", "NA", "00007"], name="order"))
    frame.to_parquet(tmp_path / "new.parquet")
    data, output = tmp_path / "new.parquet", tmp_path / "out.parquet"
    assert tuning("predict", ways.result.directory.root, "--data", data, "--output", output).exit_code == 0
    for found in (pd.read_parquet(output), ways.result.predict(data)):
        pd.testing.assert_frame_equal(found[list(frame)], frame)
    shown = tuning("predict", ways.result.directory.root, "--data", data).stdout
    assert pd.read_csv(io.StringIO(shown), dtype=str, keep_default_na=False)["order"].tolist() == list(frame.index)


class Unknown:
    """Something that nothing but Python knows."""


INDEXES = {
    "doubled": pd.Index([1, 1, 2]),
    "ids": pd.Index(["00007", None, "NA"], name="order"),
    "dates": pd.date_range("2024-01-03", periods=3, tz="UTC")[::-1],
    "two levels": pd.MultiIndex.from_tuples([("a", 1), ("a", 1), ("b", 2)], names=["x", None]),
    "from the end": pd.RangeIndex(9, 0, -3),
}
OBJECTS: dict[object, Any] = {
    "int": [1, 2, 3], "Int64": pd.array([2**53 + 1, None, 3], "Int64"),
    "boolean": pd.array([True, None, False], "boolean"),
    "objects": [1, "1", None], "unknown": [Unknown(), Unknown(), None], "category": pd.Categorical(["x", None, "y"]),
    "period": pd.period_range("2024-01", periods=3, freq="M"), "complex": [1j, 2, 3], "nan": [np.nan, 1, None],
    "nat": pd.to_datetime(["2024-01-01", None, "2024-01-03"]), "lists": [[1], [], None], 7: ["007", "7", "NA"],
    "sparse": pd.arrays.SparseArray([0, 0, 1]), ("a", "b"): [1, 2, 3], "decimal": [decimal.Decimal("1.10")] * 3,
}  # fmt: skip


@pytest.mark.parametrize("customer", [None, "a"])
@pytest.mark.parametrize("index", INDEXES)
def test_a_frame_comes_back_as_it_is(index: str, customer: str | None, ways: Ways) -> None:
    frame = pd.DataFrame({**OBJECTS, **SOLD}).set_axis(INDEXES[index])
    frame.columns.name = "what"
    before = frame.copy()
    found = ways.result.predict(frame, customer)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(found[frame.columns], before, check_names=False)
    shops = SOLD["shop"] if customer is None else ["a"] * 3
    assert found["prediction"].tolist() == pytest.approx(predictions(shops, SOLD["qty"]), abs=0.5)


JSON_ROWS = [
    {"id": "00007", "big": 9007199254740993, "flag": True, "note": "NA", "mixed": 1, "shop": "b", "qty": 1.5},
    {"id": "007", "big": None, "flag": None, "note": "", "mixed": "1", "shop": "a", "qty": 2.5},
    {"id": "7", "big": 2**70, "flag": False, "mixed": 1.0, "shop": "b", "qty": 3.5, "é": None},
]


def test_rows_of_json_come_back_as_they_were_sent(ways: Ways) -> None:
    answer = ways.client.post("predictions", json={"rows": JSON_ROWS})
    assert answer.status_code == 200, answer.text
    found = json.loads(answer.text)["rows"]
    assert [float(row.pop("prediction")) for row in found] == pytest.approx(
        predictions(SOLD["shop"], SOLD["qty"]), abs=0.5
    )
    assert json.dumps(found) == json.dumps(JSON_ROWS)
