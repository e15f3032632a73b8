"""Every shape of data: files, mappings, manifests, frames, keyed tables; each customer gets its own rows, unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from data_shapes import check, definition, placed, rows_of, trips
from shown_output import note_texts

from tuning.data import partition as partition_module
from tuning.data.customers import find_customers
from tuning.data.loading import Loader
from tuning.definition.definition import define
from tuning.definition.yaml_file import read_definition
from tuning.errors import DataError, DefinitionError
from tuning.planning.plan import make_plan


def test_files_are_customers_named_by_their_path(tmp_path: Path) -> None:
    table = trips(20)
    for name in ("north/acme.csv", "north/beta.CSV.GZ", "south/acme.parquet", "south/_temporary.csv", "south/.hid.csv"):
        path = tmp_path / "customers" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("parquet"):
            table.to_parquet(path, index=False)
        else:
            table.to_csv(path, index=False, compression="gzip" if name.endswith("GZ") else None)
    made = definition(str(tmp_path / "customers"))
    assert [customer.id for customer in find_customers(made)] == ["north/acme", "north/beta", "south/acme"]
    by_glob = definition(str(tmp_path / "customers" / "north" / "*"))
    assert [customer.id for customer in find_customers(by_glob)] == ["acme", "beta"]
    listed = definition([str(tmp_path / "customers/north/acme.csv"), str(tmp_path / "customers/south/*.parquet")])
    assert [customer.id for customer in find_customers(listed)] == ["north/acme", "south/acme"]
    frames = rows_of(made, tmp_path)
    for frame in frames.values():
        pd.testing.assert_frame_equal(frame, table, check_dtype=False)


def test_encodings_and_dialects_that_pandas_knows(tmp_path: Path) -> None:
    text = "# export\nname;x;y\nMüller;1.234,5;1\nŁódź;2,5;2\n"
    (tmp_path / "a.csv").write_text(text, encoding="utf-16")
    made = definition(
        str(tmp_path / "a.csv"),
        encoding="utf-16",
        csv={"sep": ";", "decimal": ",", "thousands": ".", "skiprows": 1},
    )
    frame = rows_of(made, tmp_path)["a"]
    assert frame["name"].tolist() == ["Müller", "Łódź"]
    assert frame["x"].tolist() == [1234.5, 2.5]
    (tmp_path / "b.csv").write_bytes("﻿name,y\nß,1\n".encode())
    assert list(rows_of(definition(str(tmp_path / "b.csv")), tmp_path)["b"].columns) == ["name", "y"]


def test_the_index_that_pandas_writes_is_no_column(tmp_path: Path) -> None:
    trips(20).to_csv(tmp_path / "a.csv")
    assert list(rows_of(definition(str(tmp_path / "a.csv")), tmp_path)["a"].columns) == ["zone", "x", "color", "y"]


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "frame", "folder of csv", "folder of parquet"])
def test_a_keyed_table_is_divided_by_its_key(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "BUFFER_BYTES", 2000)  # several files per bucket
    table = trips()
    if kind == "frame":
        data: Any = table
    elif kind.startswith("folder"):
        suffix = kind.split()[-1]
        data = tmp_path / "data"
        data.mkdir()
        for number in range(3):
            part = table.iloc[number * 100 : number * 100 + 100]
            part.to_csv(data / f"{number}.csv", index=False) if suffix == "csv" else part.to_parquet(
                data / f"{number}.parquet", index=False
            )
    else:
        data = tmp_path / f"trips.{kind}"
        table.to_parquet(data, index=False) if kind == "parquet" else table.to_csv(data, index=False)
    made = definition(data, by="zone")
    check(rows_of(made, tmp_path), table, table["zone"].astype(str))


def test_several_key_columns_and_a_glob(tmp_path: Path) -> None:
    months = {"2019-03": trips(seed=3), "2019-04": trips(seed=4)}
    for name, table in months.items():
        table.to_parquet(tmp_path / f"{name}.parquet", index=False)
    made = definition(str(tmp_path / "2019-*.parquet"), by=["zone", "color"])
    frames = rows_of(made, tmp_path)
    assert "2019-03/4/green" in frames
    for name, table in months.items():
        ids = name + "/" + table["zone"].astype(str) + "/" + table["color"]
        check({key: frame for key, frame in frames.items() if key.startswith(name)}, table, ids)
    assert any("table of its own" in note for note in note_texts(make_plan(made)))


def test_a_hive_partitioned_dataset(tmp_path: Path) -> None:
    table = trips()
    table["zone"] = table["zone"].map(lambda zone: f"{zone:03d}")
    for (zone, color), part in table.groupby(["zone", "color"]):
        folder = tmp_path / "data" / f"zone={zone}" / f"color={color}"
        folder.mkdir(parents=True)
        part.drop(columns=["zone", "color"]).to_parquet(folder / "part-0.parquet", index=False)
    made = definition(tmp_path / "data", by="zone")
    frames = rows_of(made, tmp_path)
    assert set(frames) == set(table["zone"])  # 007 stays 007
    for zone, frame in frames.items():
        expected = table[table["zone"] == zone]
        assert sorted(frame["y"]) == sorted(expected["y"])
        assert frame.set_index("y")["color"].to_dict() == expected.set_index("y")["color"].to_dict()


@pytest.mark.parametrize("prefix", ["", "file://"])
@pytest.mark.parametrize("keys", [["_zone"], ["_batch", "_zone"]], ids=str)
def test_folders_of_hive_may_begin_with_an_underscore(keys: list[str], prefix: str, tmp_path: Path) -> None:
    table = trips().rename(columns={"zone": "_zone"}).assign(_batch=lambda rows: rows.index % 2)
    for values, part in table.groupby(keys):
        folder = tmp_path.joinpath("data", *(f"{name}={value}" for name, value in zip(keys, values, strict=True)))
        folder.mkdir(parents=True)
        part.drop(columns=keys).to_parquet(folder / "part-0.parquet", index=False)
    (tmp_path / "data" / "_temporary").mkdir()
    trips(9).to_parquet(tmp_path / "data" / "_temporary" / "half.parquet")
    for data in ("data", "data/" + "_*=*/" * len(keys) + "*.parquet"):
        frames = rows_of(definition(f"{prefix}{tmp_path}/{data}", by="_zone"), tmp_path / data.replace("*", "all"))
        found = {zone: sorted(frame["y"]) for zone, frame in frames.items()}
        assert found == {str(zone): sorted(rows["y"]) for zone, rows in table.groupby("_zone")}


def test_keys_that_look_alike_stay_apart_and_keys_that_are_alike_come_together(tmp_path: Path) -> None:
    texts = ["007", "7", "NA", "null", "", "a/b", "(missing)", "nan"]
    pd.DataFrame({"k": texts * 3, "x": 1.0, "y": range(24)}).to_csv(tmp_path / "t.csv", index=False)
    frames = rows_of(definition(tmp_path / "t.csv", by="k"), tmp_path)
    assert {key: frame["y"].tolist() for key, frame in frames.items()} == {
        {"": "(missing)", "(missing)": '"(missing)"'}.get(text, text): [number, number + 8, number + 16]
        for number, text in enumerate(texts)
    }
    two = pd.DataFrame({"a": ["x/y", "x"], "b": ["z", "y/z"], "x": 1.0, "y": [1, 2]})
    assert set(rows_of(definition(two, by=["a", "b"]), tmp_path)) == {'"x/y"/z', 'x/"y/z"'}
    gaps = pd.DataFrame({"zone": [141.0, None, 7.0, 141.0], "x": 1.0, "y": range(4)})
    for data in (gaps, tmp_path / "gaps.csv"):
        gaps.to_csv(tmp_path / "gaps.csv", index=False)
        frames = rows_of(definition(data, by="zone"), tmp_path)
        assert {key: frame["y"].tolist() for key, frame in frames.items()} == {
            "141": [0, 3],
            "7": [2],
            "(missing)": [1],
        }


@pytest.mark.parametrize("odd", ["4.5", "x", ""])
@pytest.mark.parametrize("kind", ["csv", "parquet", "text in parquet", "frame"])
def test_a_customers_id_does_not_depend_on_the_other_keys(kind: str, odd: str, tmp_path: Path) -> None:
    """It would be another customer's seeds, and so another result."""
    number = kind in ("parquet", "frame") and odd != "x"
    found = []
    for keys in (["1.0", "20.0", "1.0"], ["1.0", "20.0", "1.0", odd]):
        table = pd.DataFrame(
            {"k": [float(key or "nan") for key in keys] if number else keys, "x": 1.0, "y": range(len(keys))}
        )
        data: Any = tmp_path / f"t.{'csv' if kind == 'csv' else 'parquet'}"
        if kind == "frame":
            data = table
        else:
            table.to_csv(data, index=False) if kind == "csv" else table.to_parquet(data, index=False)
        frames = rows_of(definition(data, by="k"), tmp_path / str(len(keys)))
        found.append({key: frame["y"].tolist() for key, frame in frames.items()})
    assert found[0] == {"1": [0, 2], "20": [1]}
    assert found[1] == {**found[0], odd or "(missing)": [3]}


def test_large_whole_numbers_and_dates_as_keys(tmp_path: Path) -> None:
    numbers = pa.array([2**60, 2**60 + 1, None, 2**60], pa.int64())
    days = pa.array(["2024-03-01", "2024-03-02", None, "2024-03-01"]).cast(pa.date32())
    pq.write_table(pa.table({"n": numbers, "d": days, "x": [1.0] * 4, "y": [0, 1, 2, 3]}), tmp_path / "t.parquet")
    frames = rows_of(definition(tmp_path / "t.parquet", by=["n", "d"]), tmp_path)
    assert {key: frame["y"].tolist() for key, frame in frames.items()} == {
        f"{2**60}/2024-03-01": [0, 3],
        f"{2**60 + 1}/2024-03-02": [1],
        "(missing)/(missing)": [2],
    }


def test_a_mapping_and_its_options(tmp_path: Path) -> None:
    trips(20).to_csv(tmp_path / "a.csv", index=False)
    made = definition(
        {
            "acme": tmp_path / "a.csv",
            "beta": {"path": str(tmp_path / "a.csv"), "trials": 7, "search_space": "ridge", "resources": {"cpus": 2}},
            "gamma": trips(30),
        }
    )
    frames = rows_of(made, tmp_path)
    assert {key: len(frame) for key, frame in frames.items()} == {"acme": 20, "beta": 20, "gamma": 30}
    studies = {study.id: study for study in make_plan(made).studies}
    assert (studies["beta"].n_trials, studies["beta"].resources.cpus) == (7, 2)
    assert [parameter.name for parameter in studies["beta"].space.parameters] == ["model", "alpha"]
    assert studies["acme"].n_trials == 20
    assert make_plan(made).n_trials == 20 + 7 + 20


@pytest.mark.parametrize("form", ["yaml", "json", "csv", "parquet"])
def test_a_manifest_names_customers_and_what_they_want(form: str, tmp_path: Path) -> None:
    trips(20).to_csv(tmp_path / "rows.csv", index=False)
    path = tmp_path / f"customers.{form}"
    if form in ("yaml", "json"):
        path.write_text(json.dumps({"a/b": "rows.csv", "007": {"path": "rows.csv", "trials": 3}}))
    else:
        table = pd.DataFrame({"customer": ["a/b", "007"], "path": ["rows.csv"] * 2, "trials": [None, 3]})
        table.to_csv(path, index=False) if form == "csv" else table.to_parquet(path, index=False)
    (tmp_path / "d.yaml").write_text(f"manifest: customers.{form}\ntarget: y\ntask: regression\n")
    made = read_definition(tmp_path / "d.yaml")
    found = {study.id: study.n_trials for study in make_plan(made).studies}
    assert found == {"a/b": 20, "007": 3}
    assert {key: len(frame) for key, frame in rows_of(made, tmp_path).items()} == {"a/b": 20, "007": 20}


def test_a_manifest_in_json_may_name_any_character(tmp_path: Path) -> None:
    names = ["caf\u00e9", "\U0001f600", "a\\ud83d\\ude00", "a\\", "\u2028", 'q"', "a\tb", "\x7f", "a/b"]
    (tmp_path / "m.json").write_text(json.dumps(dict.fromkeys(names, "rows.csv")))
    trips(20).to_csv(tmp_path / "rows.csv", index=False)
    made = define({"manifest": str(tmp_path / "m.json"), "target": "y"})
    assert [customer.id for customer in find_customers(made)] == sorted(names)


def test_a_manifest_beside_data_gives_options_only(tmp_path: Path) -> None:
    trips(40).to_csv(tmp_path / "t.csv", index=False)
    space = "{model: {type: constant, value: ridge}, alpha: {type: float, low: 1, high: 2}}"
    (tmp_path / "m.yaml").write_text(f'"3": {{trials: 50, search_space: {space}}}')
    made = definition(tmp_path / "t.csv", by="zone", manifest=str(tmp_path / "m.yaml"))
    studies = {study.id: study for study in make_plan(made).studies}
    assert studies["3"].n_trials == 50
    assert [parameter.name for parameter in studies["3"].space.parameters] == ["model", "alpha"]
    assert studies["4"].n_trials == 20
    (tmp_path / "m.yaml").write_text("zone-3: {trials: 50}")
    with pytest.raises(DataError, match="no customer 'zone-3' in the data"):
        find_customers(made)


def test_a_manifest_beside_customers_named_one_by_one_gives_options_only(tmp_path: Path) -> None:
    trips(40).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "m.yaml").write_text("own: {trials: 9}")
    for own in ({"path": str(tmp_path / "t.csv"), "trials": 7, "placement": "spread"}, trips(40)):
        made = definition({"other": str(tmp_path / "t.csv"), "own": own}, manifest=str(tmp_path / "m.yaml"))
        studies = {study.id: study for study in make_plan(made).studies}
        assert (studies["own"].n_trials, studies["other"].n_trials) == (9, 20)
        assert studies["own"].placement == ("spread" if isinstance(own, dict) else "packed")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: {path: x.csv, trails: 3}", "customer 'a': trails: unknown key. Did you mean 'trials'"),
        ("a: {path: x.csv, trials: many}", "customer 'a': trials: .*'many'"),
        ("a: 3", "a path or a mapping of path and options is expected"),
        ("a: x.csv\na: y.csv", "key 'a' occurs twice"),
        ("{}", "names no customer"),
        ("a: {trials: 3}", "customer 'a' has no path"),
    ],
)
def test_a_wrong_manifest_is_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "m.yaml").write_text(text)
    with pytest.raises(DataError, match=message):
        find_customers(define({"manifest": str(tmp_path / "m.yaml"), "target": "y"}))


def test_customers_can_be_chosen(tmp_path: Path) -> None:
    trips().to_csv(tmp_path / "t.csv", index=False)
    made = definition(tmp_path / "t.csv", by="zone", customers=["3", "5"])
    assert set(rows_of(made, tmp_path)) == {"3", "5"}
    with pytest.raises(DataError, match=r"no customer '33' among 7\. Did you mean '3'"):
        find_customers(definition(tmp_path / "t.csv", by="zone", customers=["33"]))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"data": "nowhere/*.csv"}, "no file matches 'nowhere/.*csv'"),
        ({"data": "t.cvs"}, "no file matches 't.cvs'. Did you mean 't.csv'"),
        ({"data": {}}, "mapping of customers to files is empty"),
        ({"data": "t.csv", "by": "Zone"}, "by: the column 'Zone' is not in the data. Did you mean 'zone'[?] There"),
    ],
)
def test_data_that_is_not_there_is_refused(
    fields: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    trips(20).to_csv("t.csv", index=False)
    with pytest.raises(DataError, match=message):
        find_customers(define({"target": "y", **fields}))


@pytest.mark.parametrize("pattern", ["", "/", "/**/*.csv", "/a/**"])
def test_a_whole_disk_is_not_gone_through(pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.data.files.MOST_OTHERS", 30)
    for number in range(40):
        (tmp_path / "a" / str(number)).mkdir(parents=True)
        (tmp_path / "a" / str(number) / "notes.txt").touch()
    with pytest.raises(
        DataError, match=r"are more than 30 folders and files without data\. Name the folder of the data"
    ):
        find_customers(define({"target": "y", "data": f"{tmp_path}{pattern}"}))
    for number in range(40):
        trips(2).to_csv(tmp_path / "a" / str(number) / "t.csv", index=False)
    assert len(find_customers(define({"target": "y", "data": f"{tmp_path}/**/*.csv"}))) == 40
    assert len(find_customers(define({"target": "y", "data": str(tmp_path)}))) == 40


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_a_keyed_table_without_rows_is_refused(kind: str, tmp_path: Path) -> None:
    table = trips(20).iloc[:0]
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_parquet(tmp_path / "t.parquet", index=False)
    with pytest.raises(DataError, match="the table has no rows"):
        find_customers(definition(table if kind == "frame" else tmp_path / f"t.{kind}", by="zone"))


def test_two_customers_of_one_id_are_refused(tmp_path: Path) -> None:
    trips(20).to_csv(tmp_path / "acme.csv", index=False)
    trips(20).to_parquet(tmp_path / "acme.parquet", index=False)
    with pytest.raises(DataError, match=r"two customers have the id 'acme': .*acme\.csv and .*acme\.parquet"):
        find_customers(definition(tmp_path))
    (tmp_path / "d.yaml").write_text("target: y\ndata:\n  acme: a.csv\n  acme: b.csv\n")
    with pytest.raises(DefinitionError, match="the key 'acme' occurs twice"):
        read_definition(tmp_path / "d.yaml")


def test_views_of_text_are_text(tmp_path: Path) -> None:
    """The newest of Arrow's types for it, as a key and as a feature."""
    shops, words = pa.array(["a", "b"] * 20), pa.array(["u", "v", "w", "x"] * 10)
    table = pa.table({"shop": shops.cast(pa.string_view()), "word": words.cast(pa.string_view()), "y": range(40)})
    pq.write_table(table, tmp_path / "t.parquet")
    made = define({"data": str(tmp_path / "t.parquet"), "by": "shop", "target": "y", "task": "regression"})
    frames = rows_of(made, tmp_path)
    assert {name: sorted(set(frame["word"])) for name, frame in frames.items()} == {"a": ["u", "w"], "b": ["v", "x"]}


def test_a_customer_that_was_not_announced_is_read_alone_and_not_kept(tmp_path: Path) -> None:
    """A spread worker bounds what it keeps itself."""
    pd.DataFrame({"shop": ["a", "b"] * 20, "x": range(40), "y": range(40)}).to_parquet(tmp_path / "t.parquet")
    made = define({"data": str(tmp_path / "t.parquet"), "by": "shop", "target": "y", "task": "regression"})
    customers = placed(made, tmp_path)
    loader, announced = Loader(made, ()), Loader(made, customers)
    assert [len(each.read(customer)) for each in (loader, announced) for customer in customers] == [20] * 4
    assert (len(loader._read), len(announced._read)) == (0, len({customer.files for customer in customers}))
