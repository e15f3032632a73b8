"""Every shape of data read from object storage, as it is from a disk; the server is moto on loopback."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from data_shapes import check, definition, rows_of, trips
from s3_server import SECRET, Bucket

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.data import partition as partition_module
from tuning.data.customers import find_customers
from tuning.definition.definition import define
from tuning.errors import DataError
from tuning.planning.plan import make_plan

QUICK = {"search_space": "ridge", "algorithm": "random", "scheduler": "fifo", "trials": 2, "mlflow": False, "slots": 2}


def content(frame: pd.DataFrame, name: str) -> bytes:
    if name.endswith(".parquet"):
        sink = io.BytesIO()
        frame.to_parquet(sink, index=False)
        return sink.getvalue()
    text = frame.to_csv(index=False).encode()
    return gzip.compress(text) if name.endswith(".gz") else text


@pytest.mark.parametrize(
    ("data", "ids"),
    [
        ("customers/*.csv", ["acme", "with space & 100%"]),
        ("customers/*.csv*", ["acme", "beta", "with space & 100%"]),
        ("customers", ["acme", "beta", "north/gamma", "with space & 100%"]),
        ("customers/", ["acme", "beta", "north/gamma", "with space & 100%"]),
        ("customers/**/*.parquet", ["gamma"]),
        ("customers/[a-b]*", ["acme", "beta"]),
        ("customers/acme.csv", ["acme"]),
    ],
)
def test_files_of_a_glob_or_folder(data: str, ids: list[str], bucket: Bucket, tmp_path: Path) -> None:
    table = trips(30)
    names = ("acme.csv", "beta.csv.gz", "north/gamma.parquet", "with space & 100%.csv", "_temporary/x.csv", "notes.txt")
    for name in names:
        bucket.put(f"customers/{name}", content(table, name))
    frames = rows_of(definition(bucket.uri(data)), tmp_path)
    assert sorted(frames) == ids
    for frame in frames.values():
        pd.testing.assert_frame_equal(frame, table, check_dtype=False)


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz", "t.parquet", "folder/*.csv", "folder/*.parquet"])
def test_keyed_tables(name: str, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_module, "BUFFER_BYTES", 2000)
    table = trips()
    if "/" in name:
        for number in range(3):
            part = table.iloc[number * 100 : number * 100 + 100]
            bucket.put(name.replace("*", str(number)), content(part, name))
    else:
        bucket.put(name, content(table, name))
    made = definition(bucket.uri(name.partition("/")[0]), by="zone")
    check(rows_of(made, tmp_path), table, table["zone"].astype(str))


def test_a_file_and_a_value_of_the_key_columns(bucket: Bucket, tmp_path: Path) -> None:
    months = {"2019-03": trips(seed=3), "2019-04": trips(seed=4)}
    for name, table in months.items():
        bucket.put(f"months/{name}.parquet", content(table, ".parquet"))
    frames = rows_of(definition(bucket.uri("months/2019-*.parquet"), by=["zone", "color"]), tmp_path)
    for name, table in months.items():
        ids = name + "/" + table["zone"].astype(str) + "/" + table["color"]
        check({key: frame for key, frame in frames.items() if key.startswith(name)}, table, ids)


@pytest.mark.parametrize("data", ["hive", "hive/*/*/*.parquet", "hive/**/*.parquet"])
def test_a_hive_partitioned_dataset(data: str, bucket: Bucket, tmp_path: Path) -> None:
    table = trips()
    for (zone, color), part in table.groupby(["zone", "color"]):
        rows = content(part.drop(columns=["zone", "color"]), ".parquet")
        bucket.put(f"hive/zone={zone}/color={color}/part-0.parquet", rows)
    frames = rows_of(definition(bucket.uri(data), by="zone"), tmp_path)
    assert set(frames) == set(table["zone"].astype(str))
    for zone, frame in frames.items():
        expected = table[table["zone"] == int(zone)]
        assert frame.set_index("y")["color"].to_dict() == expected.set_index("y")["color"].to_dict()


@pytest.mark.parametrize("form", ["yaml", "csv", "parquet"])
def test_a_manifest_and_what_it_names(form: str, bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("lists/rows.csv", content(trips(20), "rows.csv"))
    if form == "yaml":
        listed = {"a/b": bucket.uri("lists/rows.csv"), "007": {"path": bucket.uri("lists/rows.csv"), "trials": 3}}
        text = json.dumps(listed).encode()
    else:
        table = pd.DataFrame(
            {"customer": ["a/b", "007"], "path": [bucket.uri("lists/rows.csv")] * 2, "trials": [None, 3]}
        )
        text = content(table, f"m.{form}")
    bucket.put(f"lists/m.{form}", text)
    made = define({"manifest": bucket.uri(f"lists/m.{form}"), "target": "y", "task": "regression"})
    assert {study.id: study.n_trials for study in make_plan(made).studies} == {"a/b": 20, "007": 3}
    assert {name: len(frame) for name, frame in rows_of(made, tmp_path).items()} == {"a/b": 20, "007": 20}


def test_paths_in_a_manifest_are_meant_from_its_folder(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("lists/rows.csv", content(trips(20), "rows.csv"))
    bucket.put("lists/m.yaml", b"acme: rows.csv\n")
    made = define({"manifest": bucket.uri("lists/m.yaml"), "target": "y", "task": "regression"})
    assert len(rows_of(made, tmp_path)["acme"]) == 20


def test_what_is_not_there_is_said(bucket: Bucket, tmp_path: Path) -> None:
    for data in ("nowhere/*.csv", "nowhere", "nowhere.csv"):
        with pytest.raises(DataError, match=r"no file matches 's3://b-.*nowhere"):
            find_customers(definition(bucket.uri(data)))
    bucket.put("cut.parquet", content(trips(20), "x.parquet")[:-9])
    bucket.put("whole.csv", content(trips(20), "x.csv"))
    files = {
        name: bucket.uri(file) for name, file in (("gone", "gone.csv"), ("cut", "cut.parquet"), ("ok", "whole.csv"))
    }
    result = TuneRunner(data=files, target="y", task="regression", **QUICK).run(
        str(tmp_path / "run"), in_process=True, progress=False
    )
    reasons = result.leaderboard().set_index("customer")["reason"]
    assert "gone.csv is not there" in reasons["gone"]
    assert "cut.parquet cannot be read" in reasons["cut"]


def test_a_whole_run_from_and_to_object_storage(ray_cluster: None, bucket: Bucket) -> None:
    """Credentials stand in the URIs, so that workers have them too; nobody ever sees them."""
    bucket.put("trips.csv", content(trips(), "trips.csv"))
    run = bucket.uri("runs/one", credentials=True)
    result = TuneRunner(
        data=bucket.uri("trips.csv", credentials=True),
        by="zone",
        customers=["1", "3"],
        target="y",
        task="regression",
        **{**QUICK, "slots": 1},
    ).run(run, progress=False)
    board = result.leaderboard()
    assert list(board["customer"]) == ["1", "3"]
    assert (board["status"] == "ok").all()
    rows = trips()
    assert len(RunResult(run).model("3").predict(rows[rows["zone"] == 3])) == (rows["zone"] == 3).sum()
    assert all(name.startswith(("trips.csv", "runs/")) for name in bucket.names())
    assert SECRET not in board.to_csv() + result.trials().to_csv() + repr(result.directory)


def test_the_commands_with_object_storage(bucket: Bucket, tmp_path: Path) -> None:
    from click.testing import CliRunner

    def tuning(*arguments: Any) -> Any:
        answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert answer.exit_code == 0, answer.output
        return answer

    for name in ("acme", "beta"):
        bucket.put(f"c/{name}.csv", content(trips(60), "x.csv"))
    told = tuning("init", bucket.uri("c/*.csv"), "--target", "y").stdout
    (tmp_path / "d.yaml").write_text(told)
    options = [f"--set={key}={json.dumps(value)}" for key, value in QUICK.items()]
    tuning("validate", tmp_path / "d.yaml")
    tuning("run", tmp_path / "d.yaml", "--run-dir", bucket.uri("r"), "--in-process", "--progress=none", *options)
    out = bucket.uri("out.csv")
    tuning("predict", bucket.uri("r"), "--customer", "acme", "--data", bucket.uri("c/beta.csv"), "--output", out)
    answer = bucket.client.get_object(Bucket=bucket.name, Key="out.csv")["Body"].read()
    assert len(pd.read_csv(io.BytesIO(answer))) == 60


def test_an_object_that_changed_is_searched_anew(
    bucket: Bucket, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    table = trips(40)
    for name in ("acme", "beta"):
        bucket.put(f"customers/{name}.csv", content(table, "x.csv"))
    run = str(tmp_path / "run")
    first = TuneRunner(definition(bucket.uri("customers/*.csv"), **QUICK)).run(run, progress=False, in_process=True)
    bucket.put("customers/acme.csv", content(table, "x.csv"))  # the same again
    assert TuneRunner.resume(run, progress=False, in_process=True).trial_records == first.trial_records
    bucket.put("customers/acme.csv", content(table.iloc[::-1], "x.csv"))
    second = TuneRunner.resume(run, progress=False, in_process=True)
    assert "the data of 'acme' has changed since the trials ran" in caplog.text
    before = {record.key: record.started for record in first.trial_records}
    assert {record.key[0] for record in second.trial_records if record.started != before[record.key]} == {"acme"}


def test_a_run_that_was_copied_to_another_folder_reads_its_own_rows(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(trips(60).to_csv(index=False))
    fields = definition(str(tmp_path / "t.csv"), by="color")
    first = TuneRunner(fields, **QUICK).run(bucket.uri("runs/first"), progress=False, in_process=True)
    for name in bucket.names("runs/first/"):
        content = bucket.get(name)
        bucket.put(name.replace("first", "second"), content)
        bucket.put(name, b"the original's rows" if name.startswith("runs/first/data/") else content)
    second = TuneRunner.resume(bucket.uri("runs/second"), trials=3, progress=False, in_process=True)
    board = second.leaderboard()
    assert set(board["status"]) == {"ok"}
    assert set(board["trials"]) == {3}
    assert {record.started for record in first.trial_records} <= {record.started for record in second.trial_records}
