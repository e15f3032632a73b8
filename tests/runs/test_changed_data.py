"""Data, code or libraries that change between a crash and a resume: every study's results are of one state."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import as_parquet, counted, definition, other_rows, table_of, tuner_of, write_customers
from chaos import Crash, crashing, duplicates, truth

from tuning import RunResult, TuneRunner
from tuning.errors import RunError
from tuning.study.record import versions

QUIET = {"progress": False, "in_process": True}
SAID = "the data of 'c0000' has changed since the trials ran, so its search starts again, from the first trial"


def ran(result: RunResult) -> dict[Any, float]:
    return {record.key: record.started for record in result.trial_records}


@pytest.mark.parametrize("parts", [2, 5], ids=["unfinished", "nearly finished"])
def test_a_changed_file_is_searched_anew_and_the_others_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    parts: int,
) -> None:
    write_customers(tmp_path / "data", 4)
    run = str(tmp_path / "run")
    runner = TuneRunner(**definition(tmp_path / "data"))
    runner.timing = type(runner.timing)(parts_s=0.0)
    with crashing(monkeypatch, parts, only="records/"), pytest.raises(Crash):
        runner.run(run, **QUIET)
    before = ran(RunResult(run))
    other_rows(tmp_path / "data" / "c0000.csv")
    result = TuneRunner.resume(run, **QUIET)
    assert SAID in caplog.text
    assert truth(result) == truth(runner.run(str(tmp_path / "whole"), **QUIET))
    kept = {key: started for key, started in before.items() if key[0] != "c0000"}
    assert kept.items() <= ran(result).items()
    assert duplicates(result) == []
    caplog.clear()
    capsys.readouterr()
    TuneRunner.resume(run, in_process=True)
    assert "starts again" not in caplog.text + capsys.readouterr().err


@pytest.mark.parametrize(("write", "only"), [(1, "records/"), (2, "records/"), (1, "plan/")])
def test_a_crash_while_changed_customers_are_left_out_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: int, only: str
) -> None:
    write_customers(tmp_path / "data", 3)
    run = str(tmp_path / "run")
    runner = TuneRunner(**definition(tmp_path / "data"))
    runner.run(run, **QUIET)
    other_rows(tmp_path / "data" / "c0000.csv")
    with crashing(monkeypatch, write, only=only), pytest.raises(Crash):
        TuneRunner.resume(run, **QUIET)
    assert truth(TuneRunner.resume(run, **QUIET)) == truth(runner.run(str(tmp_path / "whole"), **QUIET))


def test_a_finished_customer_whose_file_is_repaired_gets_its_model_by_a_resume(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 2)
    path = tmp_path / "data" / "c0000.csv"
    good = path.read_bytes()
    path.write_bytes(b"\xff\xfe\xff")
    run = str(tmp_path / "run")
    first = TuneRunner(**definition(tmp_path / "data")).run(run, **QUIET)
    assert list(first.leaderboard()["status"]) == ["ok", "no_model"]
    path.write_bytes(good)
    result = TuneRunner.resume(run, **QUIET)
    assert list(result.leaderboard()["status"]) == ["ok", "ok"]
    assert ran(first).items() <= ran(result).items()


def test_a_file_that_was_only_touched_or_moved_is_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_customers(tmp_path / "data", 2)
    run = str(tmp_path / "run")
    first = TuneRunner(**definition(tmp_path / "data")).run(run, **QUIET)
    os.utime(tmp_path / "data" / "c0000.csv", (1, 1))
    assert ran(TuneRunner.resume(run, **QUIET)) == ran(first)
    shutil.move(tmp_path / "data", tmp_path / "elsewhere")
    moved = TuneRunner(**definition(tmp_path / "elsewhere"))
    assert ran(moved.run(run, resume=True, **QUIET)) == ran(first)
    assert caplog.text == ""


def test_data_that_is_gone_is_asked_for_before_anything_recorded_is_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_customers(tmp_path / "data", 3)
    run = str(tmp_path / "run")
    with crashing(monkeypatch, 1, only="records/"), pytest.raises(Crash):
        TuneRunner(**definition(tmp_path / "data")).run(run, **QUIET)
    shutil.move(tmp_path / "data", tmp_path / "away")
    with pytest.raises(
        RunError, match=r"is not there any more: .*c000\d\.csv\. Bring it back, then: TuneRunner\.resume"
    ):
        TuneRunner.resume(run, **QUIET)
    shutil.move(tmp_path / "away", tmp_path / "data")
    whole = TuneRunner(**definition(tmp_path / "data")).run(str(tmp_path / "whole"), **QUIET)
    assert truth(TuneRunner.resume(run, **QUIET)) == truth(whole)


def test_a_file_that_is_gone_is_no_other_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever has finished does not need it; with more trials it stays as it was, and the others get theirs."""
    write_customers(tmp_path / "data", 3)
    run = str(tmp_path / "run")
    first = TuneRunner(**definition(tmp_path / "data")).run(run, **QUIET)
    whole = TuneRunner(**definition(tmp_path / "data", trials=6)).run(str(tmp_path / "whole"), **QUIET)
    away = (tmp_path / "data" / "c0001.csv").rename(tmp_path / "away")
    assert truth(TuneRunner.resume(run, slots=1, **QUIET)) == truth(first)
    assert caplog.text == ""
    monkeypatch.setattr("tuning.runs.resume.versions", lambda: '{"python": "4.0"}')  # which leaves it alone, too
    more = TuneRunner.resume(run, trials=6, **QUIET)
    assert re.search(r"the data of 'c0001' is not there any more: .*c0001\.csv\. What is recorded of it", caplog.text)
    assert dict(zip(*[more.leaderboard()[name] for name in ("customer", "trials")], strict=True)) == {
        "c0000": 6,
        "c0001": 4,
        "c0002": 6,
    }
    away.rename(tmp_path / "data" / "c0001.csv")
    assert truth(TuneRunner.resume(run, **QUIET)) == truth(whole)


@pytest.mark.parametrize("away", [shutil.move, shutil.copytree], ids=["moved", "copied"])
def test_a_run_that_was_moved_or_copied_reads_its_own_rows(tmp_path: Path, away: Callable[..., Any]) -> None:
    write_customers(tmp_path / "data", 2)
    fields = {**definition(tmp_path), "data": table_of(tmp_path / "data"), "by": "store"}
    whole = TuneRunner(**{**fields, "trials": 6}).run(str(tmp_path / "whole"), **QUIET)
    run = tmp_path / "run"
    TuneRunner(**fields).run(str(run), **QUIET)
    away(run, tmp_path / "elsewhere")
    for rows in (run / "data").rglob("*.parquet"):
        rows.write_bytes(b"the original's rows")
    assert truth(TuneRunner.resume(str(tmp_path / "elsewhere"), trials=6, **QUIET)) == truth(whole)


def test_rows_that_a_run_has_written_and_somebody_has_deleted_are_said_to_be_gone(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    run = tmp_path / "run"
    frame = pd.read_csv(tmp_path / "data" / "c0000.csv")
    first = TuneRunner(**{**definition(tmp_path), "data": frame}).run(str(run), **QUIET)
    shutil.rmtree(run / "data")
    assert truth(TuneRunner.resume(str(run), **QUIET)) == truth(first)
    with pytest.raises(RunError, match=r"the data of 'chaos' is not there any more: .*\.parquet\. Bring it back"):
        TuneRunner.resume(str(run), trials=6, **QUIET)


def as_csv(folder: Path, frame: pd.DataFrame) -> str:
    frame.to_csv(folder / "table.csv", index=False)
    return str(folder / "table.csv")


@pytest.mark.parametrize("data_of", [as_parquet, as_csv, lambda _, frame: frame], ids=["parquet", "csv", "frame"])
def test_of_a_keyed_table_only_the_changed_customer_is_searched_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, data_of: Callable[[Path, pd.DataFrame], Any]
) -> None:
    write_customers(tmp_path / "data", 3)
    table = table_of(tmp_path / "data")
    fields = {**definition(tmp_path), "by": "store"}
    run = str(tmp_path / "run")
    first = TuneRunner(**{**fields, "data": data_of(tmp_path, table)}).run(run, **QUIET)
    table.loc[3, "a"] += 1.0
    runner = TuneRunner(**{**fields, "data": data_of(tmp_path, table)})
    result = runner.run(run, resume=True, **QUIET)
    assert f"{SAID}; what is recorded of 2 other customers stays." in caplog.text
    assert {key for key, started in ran(result).items() if ran(first)[key] != started} == {
        ("c0000", trial) for trial in range(4)
    }
    assert truth(result) == truth(runner.run(str(tmp_path / "whole"), **QUIET))


def test_of_a_table_that_the_run_has_copied_a_resume_says_for_whom_it_has_changed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_customers(tmp_path / "data", 3)
    table = table_of(tmp_path / "data")
    run, path = str(tmp_path / "run"), tmp_path / "table.csv"
    first = TuneRunner(**{**definition(tmp_path), "by": "store", "data": as_csv(tmp_path, table)}).run(run, **QUIET)

    def said(content: str | None) -> str:
        """What a resume says where the table holds this, and was written after the run."""
        caplog.clear()
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
            os.utime(path, (2e9, 2e9))
        assert ran(TuneRunner.resume(run, **QUIET)) == ran(first), "the run goes on with its copy"
        return caplog.text

    assert said(table.to_csv(index=False)) == "", "written again, with the same rows"
    assert said(None) == "", "it is needed no more"
    assert said("no table") == ""
    other = table[table["store"] != "c0002"].copy()
    other.loc[3, "a"] += 1.0
    other = pd.concat([other, table[:40].assign(store="d")])
    told = "the data is changed for 'c0000', new for 'd', gone for 'c0002' since the run copied it. The run goes on"
    assert told in said(other.to_csv(index=False))


def test_what_other_libraries_have_begun_is_searched_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_customers(tmp_path / "data", 3)
    run = str(tmp_path / "run")
    runner = TuneRunner(**definition(tmp_path / "data"))
    runner.timing = type(runner.timing)(parts_s=0.0)
    with crashing(monkeypatch, 7, only="records/"), pytest.raises(Crash):
        runner.run(run, **QUIET)
    before = RunResult(run)
    ended = {record.study for record in before.study_records}
    begun = {record.study for record in before.trial_records} - ended
    assert len(ended) == len(begun) == 1
    monkeypatch.setattr("tuning.runs.resume.versions", lambda: '{"python": "4.0", "optuna": "99"}')
    result = TuneRunner.resume(run, **QUIET)
    assert f"(now python 4.0, optuna 99), so unfinished studies ({begun.pop()!r}) start again" in caplog.text
    assert truth(result) == truth(runner.run(str(tmp_path / "whole"), **QUIET))
    assert {key for key, started in ran(before).items() if ran(result)[key] == started} == {
        record.key for record in before.trial_records if record.study in ended
    }


def test_more_trials_are_not_mixed_with_those_of_other_libraries_although_a_resume_came_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_customers(tmp_path / "data", 1)
    run, fields = str(tmp_path / "run"), definition(tmp_path / "data")
    with monkeypatch.context() as then:
        then.setattr("tuning.study.record.versions", lambda: '{"python": "3.0", "optuna": "1.0"}')
        before = TuneRunner(**fields).run(run, **QUIET)
    assert ran(TuneRunner.resume(run, **QUIET)) == ran(before)  # nothing to do: what has ended stays
    assert caplog.text == ""
    result = TuneRunner.resume(run, trials=6, **QUIET)
    assert "so unfinished studies ('c0000') start again" in caplog.text
    assert {record.versions for record in result.trial_records} == {versions()}
    assert truth(result) == truth(TuneRunner(**{**fields, "trials": 6}).run(str(tmp_path / "whole"), **QUIET))


def test_an_objective_sees_new_rows_from_the_first_trial(tmp_path: Path) -> None:
    (tmp_path / "c0000.csv").write_text("shift\n1\n")
    log = tmp_path / "ran"
    runner = tuner_of(counted(log), data=str(tmp_path / "*.csv"), trials=3)
    runner.run(str(tmp_path / "run"), **QUIET)
    (tmp_path / "c0000.csv").write_text("shift\n2\n")
    result = runner.run(str(tmp_path / "run"), resume=True, **QUIET)
    assert len(log.read_text().split()) == 6
    assert len(result.trial_records) == 3


def test_code_of_a_run_that_is_not_what_the_run_wrote_is_never_run(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    (tmp_path / "own.py").write_text("def prepare(frame):\n    return frame\n")
    run = tmp_path / "run"
    code = f"{tmp_path / 'own.py'}:prepare"
    TuneRunner(**definition(tmp_path / "data", prepare=code, trials=2)).run(str(run), **QUIET)
    (copy,) = (run / "code").iterdir()
    copy.write_text(f"from pathlib import Path\nPath({str(tmp_path / 'planted')!r}).touch()\n" + copy.read_text())
    said = r"own-.*\.py is not what this run has written: its SHA-256 differs"
    with pytest.raises(RunError, match=said):
        TuneRunner.resume(str(run), trials=4, **QUIET)

    RunResult(str(run)).predicted(str(tmp_path / "data" / "c0000.csv"), "c0000")  # by the model's own copy
    assert not (tmp_path / "planted").exists()
    model = next((run / "models").rglob("model.json"))
    model.write_text(model.read_text().replace("return frame", "return frame  # other"))
    with pytest.raises(RunError, match=r"model\.json is damaged: its SHA-256 is not the recorded one"):
        RunResult(str(run)).predicted(str(tmp_path / "data" / "c0000.csv"), "c0000")


def test_rows_that_a_run_has_written_are_checked_when_they_are_read(tmp_path: Path) -> None:
    """A bit that flips in numbers leaves a file that can be read; page checksums find it."""
    write_customers(tmp_path / "data", 1, rows=400)
    frame = pd.read_csv(tmp_path / "data" / "c0000.csv")
    run = tmp_path / "run"
    TuneRunner(**{**definition(tmp_path), "data": frame, "trials": 2}).run(str(run), **QUIET)
    (rows,) = (run / "data").rglob("*.parquet")
    content = bytearray(rows.read_bytes())
    content[300] ^= 1
    rows.write_bytes(content)
    result = TuneRunner.resume(str(run), trials=4, **QUIET)
    assert list(result.leaderboard()["status"]) == ["no_model"]
    assert "cannot be read" in result.leaderboard()["reason"][0]
