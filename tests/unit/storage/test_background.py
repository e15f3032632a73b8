"""Files that are written in the background: no record comes before the files it names."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from builders import definition, write_customers

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import StorageError
from tuning.storage.background import MOST_PENDING, BackgroundWriter
from tuning.storage.run_directory import RunDirectory


def test_writing_returns_before_the_file_is_there_and_settling_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, gate = RunDirectory(str(tmp_path)), threading.Event()
    write = RunDirectory.write

    def held(self: RunDirectory, name: str, data: bytes) -> None:
        gate.wait(30)
        write(self, name, data)

    monkeypatch.setattr(RunDirectory, "write", held)
    filing = BackgroundWriter(directory)
    for number in range(6):
        filing.write(f"models/{number}", b"content")
    assert list(directory.list("models")) == []
    gate.set()
    filing.flush()
    assert [directory.read(name) for name in directory.list("models")] == [b"content"] * 6
    filing.flush()  # nothing pending: nothing happens


def test_a_file_that_cannot_be_written_is_told_when_settling(tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where a folder should be")
    filing = BackgroundWriter(RunDirectory(str(tmp_path)))
    filing.write("models/acme/model.json", b"{}")
    with pytest.raises(StorageError, match=r"models/acme/model\.json could not be written"):
        filing.flush()


def test_files_do_not_pile_up(tmp_path: Path) -> None:
    filing = BackgroundWriter(RunDirectory(str(tmp_path)))
    for number in range(MOST_PENDING + 1):
        filing.write(f"files/{number}", b"")
    assert len(list(filing.directory.list("files"))) >= MOST_PENDING
    filing.flush()


def test_a_study_is_recorded_after_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every write is noted when it is done: a study's part always follows the files of all models that it names."""
    write_customers(tmp_path / "customers", 4)
    done: list[str] = []
    write = RunDirectory.write

    def noted(self: RunDirectory, name: str, data: bytes) -> None:
        write(self, name, data)
        done.append(name)

    monkeypatch.setattr(RunDirectory, "write", noted)
    runner = TuneRunner(**definition(tmp_path / "customers"))
    runner.timing = Timing(parts_s=0.0)
    result = runner.run(str(tmp_path / "run"), progress=False, in_process=True)
    parts = [position for position, name in enumerate(done) if "/studies-" in name]
    assert len(parts) >= 4
    for study in result.study_records:
        assert study.model_path is not None
        files = [position for position, name in enumerate(done) if name.startswith(f"{study.model_path}/")]
        assert len(files) >= 2
        assert max(files) < max(parts)
        assert result.model(study.customer) is not None


def test_without_its_model_a_study_is_not_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_customers(tmp_path / "customers", 1)
    run = str(tmp_path / "run")
    write = RunDirectory.write

    def refused(self: RunDirectory, name: str, data: bytes) -> None:
        if name.endswith("model.json"):
            raise StorageError(f"{name} could not be written: the disk is full")
        write(self, name, data)

    quiet: dict[str, Any] = {"progress": False, "in_process": True}
    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write", refused)
        with pytest.raises(StorageError, match="the disk is full"):
            TuneRunner(**definition(tmp_path / "customers")).run(run, **quiet)
    assert RunResult(run).study_records == []
    result = TuneRunner.resume(run, **quiet)
    assert [record.status for record in result.study_records] == ["ok"]
