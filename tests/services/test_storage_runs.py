"""Whole runs with their directory on S3 (moto on loopback), and what its faults do to them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import definition, write_customers
from chaos import Crash, crashing, duplicates, truth
from commands import tuning
from lone_worker import lone_workers
from s3_server import SECRET, Bucket, S3Server, impatient
from spread_workers import step_report

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.cli.program import main
from tuning.errors import RunError, RunOwnedError, StorageError
from tuning.records.ownership import claim, claim_file, newest_term
from tuning.records.parts import TRIALS, of_kind
from tuning.runs.begin import begin
from tuning.runs.deletion import delete_run
from tuning.storage.run_directory import RunDirectory

QUIET = {"progress": False, "in_process": True}


@pytest.fixture(scope="module")
def customers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("customers")
    write_customers(folder, 3)
    return folder


@pytest.fixture(scope="module")
def undisturbed(customers: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the search finds out on a local disk when nothing happens."""
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    return truth(TuneRunner(**definition(customers)).run(str(run), **QUIET))


@pytest.fixture(scope="module")
def finished(customers: Path, s3_server: S3Server) -> str:
    """The URI of a finished run, which tests only read."""
    uri = s3_server.bucket().uri("runs/finished", credentials=True)
    TuneRunner(**definition(customers)).run(uri, **QUIET)
    return uri


@pytest.mark.parametrize("only", ["records/", "models/", "plan/"])
def test_a_run_that_crashed_goes_on_and_ends_as_on_a_local_disk(
    customers: Path, undisturbed: dict[str, Any], bucket: Bucket, monkeypatch: pytest.MonkeyPatch, only: str
) -> None:
    run = bucket.uri("runs/weekly", credentials=True)
    with crashing(monkeypatch, 2, only=only), pytest.raises(Crash):
        TuneRunner(**definition(customers)).run(run, **QUIET)
    before: dict[Any, float] = {}
    if newest_term(RunDirectory(run)) is not None:
        before = {record.key: record.started for record in RunResult(run).trial_records}
    result = TuneRunner(**definition(customers)).run(run, resume=True, **QUIET)
    assert truth(result) == undisturbed
    assert duplicates(result) == []
    assert before.items() <= {record.key: record.started for record in result.trial_records}.items()
    assert all(name.startswith("runs/") for name in bucket.names())


def test_its_models_and_leaderboard_are_read_from_anywhere(
    finished: str, customers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(customers / "c0001.csv")
    expected = RunResult(finished).model("c0001").predict(frame)
    command = ["predict", finished, "--customer", "c0001", "--data", str(customers / "c0001.csv")]
    assert _exit_code([*command, "--output", str(tmp_path / "out.csv")]) == 0
    assert pd.read_csv(tmp_path / "out.csv").iloc[:, -1].to_numpy() == pytest.approx(expected)
    capsys.readouterr()
    assert _exit_code(["leaderboard", finished, "--output", "csv"]) == 0
    said = capsys.readouterr()
    assert said.out.count("\nc000") == 3
    assert SECRET not in said.out + said.err


def _exit_code(command: list[str]) -> Any:
    with pytest.raises(SystemExit) as ended:
        main(command)
    return ended.value.code


def test_a_live_owner_on_another_machine_is_left_alone(customers: Path, bucket: Bucket) -> None:
    fields = definition(customers)
    owned = begin(TuneRunner(**fields).definition, bucket.uri("run"))
    with pytest.raises(RunOwnedError, match="is already being run by this very process"):
        TuneRunner(**fields).run(bucket.uri("run"), resume=True, **QUIET)
    with pytest.raises(RunOwnedError, match="has just started"):
        claim(owned.directory, 1, (), 1, 0.0)
    owned.lease.release()
    TuneRunner(**fields).run(bucket.uri("run"), resume=True, **QUIET)


def test_a_run_is_deleted_with_nothing_beside_it(customers: Path, bucket: Bucket) -> None:
    one, other = (bucket.uri(f"runs/{name}", credentials=True) for name in ("week", "week-2"))
    TuneRunner(**definition(customers, customers=["c0000"], trials=2)).run(one, **QUIET)
    RunDirectory(other).write("terms/note.txt", b"x")
    assert tuning("delete", one, "--yes").exit_code == 0
    assert RunDirectory(one).entries() == []
    assert list(RunDirectory(other).list("terms")) == ["terms/note.txt"]
    assert not delete_run(RunDirectory(one))


def test_a_damaged_part_costs_its_trials_only(customers: Path, undisturbed: dict[str, Any], bucket: Bucket) -> None:
    run = bucket.uri("run")
    result = TuneRunner(**definition(customers)).run(run, **QUIET)
    recorded = len(result.trial_records)
    part = of_kind(list(result.directory.list("records")), TRIALS)[0]
    content = bytearray(bucket.get(f"run/{part}"))
    content[len(content) // 2] ^= 1
    bucket.put(f"run/{part}", bytes(content))
    damaged = RunResult(run)
    assert len(damaged.trial_records) < recorded
    assert len(damaged.leaderboard()) == 3
    assert list(damaged.damaged) == [part]
    assert truth(TuneRunner.resume(run, **QUIET)) == undisturbed


@pytest.mark.parametrize("prefix", ["terms", "plan", "records", "leases"])
def test_a_storage_that_refuses_is_no_damage_and_no_success(finished: str, s3_server: S3Server, prefix: str) -> None:
    """What cannot be read now is not given up: it may hold records, which must not run again."""
    directory = impatient(RunDirectory(finished, Timing(storage_pause_s=0.0)))
    claimed = claim_file(2)
    for status in (503, 403):
        with s3_server.failing(lambda call: call.method == "GET" and f"finished/{prefix}/" in call.path, status) as hit:
            with pytest.raises(StorageError, match=r"could not be read|cannot be read"):
                go_on_with(directory)
            assert hit
    assert not directory.exists(claimed)


def go_on_with(directory: RunDirectory) -> None:
    from tuning.runs.begin import resume_run

    resume_run(directory).lease.release()


@pytest.mark.slow
@pytest.mark.chaos
def test_a_worker_that_dies_is_known_and_its_study_put_aside(bucket: Bucket, tmp_path: Path) -> None:
    result = lone_workers(tmp_path, "exit", run=bucket.uri("run", credentials=True))
    assert result is not None
    reason = result.leaderboard()["reason"][0]
    assert "has ended its worker 2 times: its process ended without a trace" in reason
    assert SECRET not in reason


def test_a_spread_trials_state_comes_back(bucket: Bucket, tmp_path: Path) -> None:
    from tuning.execution.spread.state import (
        STATE,
        TRIAL,
        BegunTrial,
        SavedState,
        begun_trials,
        read_state,
        write_state,
    )

    saved, trial = SavedState([1, 2], (step_report(1, 0.5),)), BegunTrial("acme", "data", 3, {"x": 1.0})
    write_state(str(tmp_path), saved, trial)
    for name in (STATE, TRIAL):
        bucket.put(f"run/tune/trial/checkpoint_1/{name}", (tmp_path / name).read_bytes())
    directory = RunDirectory(bucket.uri("run"))
    # As Tune says where a checkpoint is: on the filesystem, without scheme and query.
    assert read_state(directory, f"{bucket.name}/run/tune/trial/checkpoint_1") == saved
    assert read_state(directory, f"{bucket.name}/run/tune/trial/checkpoint_2") is None
    assert read_state(directory, f"{bucket.name}/other/tune/trial/checkpoint_1") is None
    assert begun_trials(directory) == {"acme": {3: replace(trial, reports=saved.reports)}}


def test_spread_records_that_cannot_be_written_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from tuning.execution.spread.running import SpreadRun

    why = StorageError("x could not be written: the disk is full")
    full = SimpleNamespace(done=False, close=lambda: None, broken=why)
    monkeypatch.setattr(SpreadRun, "open", lambda self: full)
    owned = SimpleNamespace(directory=RunDirectory(str(tmp_path)), plan=SimpleNamespace(spread=["one"]))
    run = SpreadRun(owned, None, lambda _: None, None)
    with pytest.raises(StorageError, match=r"^x could not be written: the disk is full"), run.opened():
        pass


def test_a_bucket_that_vanishes_in_the_middle_is_an_error(
    customers: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = s3_server.bucket()
    write = RunDirectory.write

    def vanish(self: RunDirectory, name: str, data: bytes) -> None:
        if name.startswith("records/") and bucket.names():
            bucket.remove()
        write(self, name, data)

    monkeypatch.setattr(RunDirectory, "write", vanish)
    with pytest.raises(StorageError, match=r"the bucket .*does not exist"):
        TuneRunner(**definition(customers)).run(bucket.uri("run"), **QUIET)
    with pytest.raises(RunError, match=r"bucket .* does not exist"):
        RunResult(bucket.uri("run"))
