"""Models of many customers in packs: the same models, in few files, found one by one."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import definition, write_customers

from tuning import RunResult, TuneRunner
from tuning.definition.definition import define
from tuning.errors import RunError, StorageError
from tuning.models.customer_model import load_model
from tuning.storage import packs
from tuning.storage.packs import PackWriter
from tuning.storage.run_directory import RunDirectory

QUIET: dict[str, Any] = {"progress": False, "in_process": True}


def search(folder: Path, files: str, name: str) -> RunResult:
    return TuneRunner(**definition(folder / "data", model_files=files)).run(str(folder / name), **QUIET)


@pytest.mark.long
def test_packed_models_are_those_of_folders_in_few_files(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 5)
    single, packed = (search(tmp_path, files, files) for files in ("folders", "packs"))
    rows = pd.read_csv(tmp_path / "data" / "c0000.csv").drop(columns="y")
    assert len(list((tmp_path / "folders" / "models").rglob("model.json"))) == 5
    assert {path.suffix for path in (tmp_path / "packs" / "models").rglob("*")} == {".zip"}
    for customer in packed.leaderboard()["customer"]:
        assert np.array_equal(packed.model(customer).predict(rows), single.model(customer).predict(rows))
    record = packed.study_records[0]
    assert record.model_path is not None
    names = [name.rpartition("/")[2] for name in packs.files_below(packed.directory, record.model_path)]
    assert sorted(names) == ["model.json", "model.skops"]
    size = sum(len(packs.read(packed.directory, f"{record.model_path}/{name}")) for name in names)
    assert record.model_bytes == size
    archive, _, folder = record.model_path.partition(".zip/")
    zipfile.ZipFile(tmp_path / "packs" / f"{archive}.zip").extractall(tmp_path / "single")
    alone = load_model(RunDirectory(tmp_path / "single"), folder, record.model_sha256)
    assert np.array_equal(alone.predict(rows), packed.model(record.customer).predict(rows))


def test_a_resumed_run_keeps_its_packs_and_adds_to_them(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    before = {record.customer: record.model_path for record in search(tmp_path, "packs", "run").study_records}
    write_customers(tmp_path / "data", 4)
    runner = TuneRunner(**definition(tmp_path / "data", model_files="packs"))
    after = runner.run(str(tmp_path / "run"), resume=True, **QUIET)
    paths = {record.customer: record.model_path for record in after.study_records}
    assert {customer: paths[customer] for customer in before} == before
    assert all(after.model(customer).customer == customer for customer in paths)
    assert len(paths) == 4


def test_a_damaged_or_lost_pack_is_said(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    result = search(tmp_path, "packs", "run")
    (pack,) = (tmp_path / "run" / "models").iterdir()
    content = pack.read_bytes()
    at = content.index(b'"customer"')
    for damaged in (content[: len(content) // 2], content[:at] + b"'" + content[at + 1 :]):
        pack.write_bytes(damaged)
        with pytest.raises(RunError, match=r"model\.json cannot be read: .*\.zip is damaged"):
            result.model("c0000")
        packs._opened.cache_clear()
    pack.unlink()
    with pytest.raises(RunError, match="is not there: the model was removed or never written"):
        result.model("c0000")


def test_each_wrong_bit_of_a_pack_is_found_or_harms_nobody(tmp_path: Path) -> None:
    writer = PackWriter(RunDirectory(str(tmp_path)))
    folder = writer.folder("models", "acme")
    writer.write(f"{folder}/model.json", b"{}")
    writer.flush()
    (pack,) = (tmp_path / "models").iterdir()
    content = pack.read_bytes()
    said = 0
    for bit in range(8 * len(content)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        pack.write_bytes(damaged)
        packs._opened.cache_clear()
        try:
            assert packs.read(writer.directory, f"{folder}/model.json") == b"{}"
            list(packs.files_below(writer.directory, folder))
        except OSError:
            said += 1
    assert said > 4 * len(content)


def test_nothing_is_named_that_could_not_be_written(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where a folder should be")
    writer = PackWriter(RunDirectory(str(tmp_path)))
    folder = writer.folder("models", "acme")
    writer.write(f"{folder}/model.json", b"{}")
    with pytest.raises(StorageError, match=r"models/.*\.zip could not be written"):
        writer.flush()


def test_large_models_make_several_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packs, "MOST_BYTES", 100)
    writer = PackWriter(RunDirectory(str(tmp_path)))
    names = []
    for number in range(3):
        names.append(f"{writer.folder('models', f'c{number}')}/model")
        writer.write(names[-1], bytes([number]) * 200)
    writer.flush()
    assert len(list((tmp_path / "models").iterdir())) == 3
    assert [packs.read(writer.directory, name) for name in names] == [bytes([number]) * 200 for number in range(3)]


def test_from_a_hundred_customers_on_models_are_packed() -> None:
    given = {"data": "*.csv", "target": "y"}
    assert not define(given).packs_models(100)
    assert define(given).packs_models(101)
    assert not define({**given, "model_files": "folders"}).packs_models(101)
