"""Data that changes while a run goes on: it is never mixed with what is recorded."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import definition, other_rows, write_customers
from chaos import Crash, crashing, truth

from tuning import TuneRunner
from tuning.data.formats.csv_file import CsvSource
from tuning.driver.hosts import choice

QUIET = {"progress": False, "in_process": True}


def changing(monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
    """Has the data change after the plan is written, before anybody has read it."""
    work = choice.work_batch

    def changed(*given: Any, **named: Any) -> None:
        change()
        work(*given, **named)

    monkeypatch.setattr(choice, "work_batch", changed)


@pytest.mark.parametrize("back", [False, True], ids=["for good", "and back"])
def test_data_that_changes_while_a_run_goes_on_is_not_mixed_with_what_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    folder = tmp_path / "data"
    write_customers(folder, 3)
    fields, file = definition(folder), folder / "c0000.csv"
    run, before = str(tmp_path / "run"), file.read_bytes()
    runner = TuneRunner(**fields)
    runner.timing = type(runner.timing)(parts_s=0.0)
    with crashing(monkeypatch, 2, only="records/"), pytest.raises(Crash):
        runner.run(run, **QUIET)
    with monkeypatch.context() as meanwhile:
        changing(meanwhile, lambda: other_rows(file))
        result = TuneRunner.resume(run, **QUIET)
    rows = result.leaderboard().set_index("customer").sort_index()
    assert list(rows["status"]) == ["no_model", "ok", "ok"]
    assert rows["reason"]["c0000"] == (
        "the data has changed since the run was planned: resume the run, which tunes it anew."
    )
    assert {record.study for record in result.trial_records} >= {"c0001", "c0002"}
    if back:
        file.write_bytes(before)
    assert truth(TuneRunner.resume(run, **QUIET)) == truth(TuneRunner(**fields).run(str(tmp_path / "whole"), **QUIET))


def test_a_file_that_was_only_touched_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A resume has looked at it already, so its worker knows it by its new time."""
    write_customers(tmp_path / "data", 1)
    run = str(tmp_path / "run")
    TuneRunner(**definition(tmp_path / "data")).run(run, **QUIET)
    os.utime(tmp_path / "data" / "c0000.csv", (1, 1))
    read, times = CsvSource.read, []
    monkeypatch.setattr(CsvSource, "read", lambda file, **named: (times.append(file), read(file, **named))[1])
    TuneRunner.resume(run, trials=6, **QUIET)
    assert len(times) == 1


def test_a_file_that_is_written_while_it_is_read_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is read may be of neither state, although the file is as it was at last."""
    write_customers(tmp_path / "data", 2)
    file = tmp_path / "data" / "c0000.csv"
    whole, read, times = file.read_bytes(), CsvSource.read, []

    def torn(source: CsvSource, **named: Any) -> pd.DataFrame:
        if source.path == str(file) and not times:
            times.append(source.path)
            file.write_bytes(whole[: len(whole) // 2])
            frame = read(source, **named)
            file.write_bytes(whole)
            os.utime(file, (1, 1))
            return frame
        return read(source, **named)

    runner = TuneRunner(**definition(tmp_path / "data", task="regression"))
    undisturbed = runner.run(str(tmp_path / "undisturbed"), **QUIET)
    changing(monkeypatch, lambda: monkeypatch.setattr(CsvSource, "read", torn))
    result = runner.run(str(tmp_path / "run"), **QUIET)
    assert times
    assert truth(result) == truth(undisturbed)


def test_a_file_that_goes_while_a_run_goes_on_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_customers(tmp_path / "data", 2)
    run, file = str(tmp_path / "run"), tmp_path / "data" / "c0000.csv"
    runner = TuneRunner(**definition(tmp_path / "data"))
    with monkeypatch.context() as meanwhile:
        changing(meanwhile, lambda: file.exists() and file.rename(tmp_path / "away"))
        result = runner.run(run, **QUIET)
    reason = result.leaderboard().set_index("customer")["reason"]["c0000"]
    assert reason.endswith("planned: c0000.csv is not there any more. Bring it back, and resume the run.")
    (tmp_path / "away").rename(file)
    assert truth(TuneRunner.resume(run, **QUIET)) == truth(runner.run(str(tmp_path / "whole"), **QUIET))
