"""A run is deleted whole or can be deleted again, is no good run in between, and nobody alive loses one."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import definition, write_customers
from chaos import wait_for
from commands import tuning

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import RunError, RunOwnedError, StorageError
from tuning.records.lease import Lease
from tuning.records.ownership import claim, newest_claimed
from tuning.runs.begin import resume_run
from tuning.runs.deletion import delete_run
from tuning.runs.listing import runs_in
from tuning.storage.run_directory import RunDirectory

QUIET = {"progress": False, "in_process": True}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of one customer with everything that such a run leaves."""
    folder = tmp_path_factory.mktemp("deleted")
    write_customers(folder / "data", 1)
    TuneRunner(**definition(folder / "data", trials=2)).run(str(folder / "run"), **QUIET)
    return folder / "run"


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> RunDirectory:
    """A copy of it in `runs/47`."""
    return RunDirectory(shutil.copytree(finished, tmp_path / "runs" / "47"))


def test_nothing_is_left_of_a_run_and_a_second_time_there_is_none(run: RunDirectory, tmp_path: Path) -> None:
    (tmp_path / "kept.csv").write_text("x")
    Path(run.root, "models", "link").symlink_to(tmp_path / "kept.csv")
    Path(run.root, "linked").symlink_to(tmp_path / "runs")
    assert delete_run(run)
    assert os.listdir(tmp_path / "runs") == []
    assert (tmp_path / "kept.csv").exists()
    assert not delete_run(run)


@pytest.mark.parametrize("step", range(1, 9))
def test_a_deletion_that_was_killed_leaves_no_good_run_and_is_finished_by_the_next(
    run: RunDirectory, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die_on_the_way() -> None:
        _die_after(step, monkeypatch)
        delete_run(run)

    child = _fork(die_on_the_way)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code == 0 or not Path(run.root).exists()
    with pytest.raises(RunError):
        RunResult(run.root).leaderboard()
    for listed in runs_in(str(Path(run.root).parent)):
        assert listed.outcome()["state"] == "damaged"
    left = Path(run.root).exists()
    assert left or step >= 8
    assert delete_run(run) == left
    assert not Path(run.root).exists()


def _fork(work: Callable[[], None]) -> int:
    """The id of a process that does this and nothing after it, however it ends."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return child


def _die_after(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End this process, with nothing said, once so many files and folders of the run have been deleted."""
    delete, done = RunDirectory.delete, []

    def delete_or_die(self: RunDirectory, name: str = "") -> None:
        delete(self, name)
        done.append(name)
        if len(done) == step:
            os._exit(0)

    monkeypatch.setattr(RunDirectory, "delete", delete_or_die)


def test_a_run_that_lost_its_plan_so_says_how_to_go_on(run: RunDirectory) -> None:
    shutil.rmtree(Path(run.root, "plan"))
    with pytest.raises(RunError, match=f"If it was being deleted, go on: tuning delete {run.root}$"):
        RunResult(run.root)


def test_a_run_that_another_process_works_on_is_left_as_it_is(run: RunDirectory, tmp_path: Path) -> None:
    def work() -> None:
        Lease(run, claim(run, 2, (), 2, 0.0), Timing(heartbeat_s=0.01)).hold()
        (tmp_path / "held").touch()
        wait_for((tmp_path / "over").exists, 60, "the end of the test")

    child = _fork(work)
    try:
        wait_for((tmp_path / "held").exists, 60, "the owner")
        with pytest.raises(RunOwnedError, match="which is alive"):
            delete_run(run, Timing(look_s=0.05))
    finally:
        (tmp_path / "over").touch()
        os.waitpid(child, 0)
    assert RunResult(run.root).leaderboard()["model"].notna().all()
    assert delete_run(run)  # its owner has died meanwhile


def test_nobody_goes_on_with_a_run_that_is_being_deleted(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    delete, refused = RunDirectory.delete, []

    def delete_and_try(self: RunDirectory, name: str = "") -> None:
        if name == "plan":
            with pytest.raises(RunOwnedError):
                resume_run(RunDirectory(run.root))
            with pytest.raises(RunOwnedError):
                delete_run(run)
            refused.append(name)
        delete(self, name)

    monkeypatch.setattr(RunDirectory, "delete", delete_and_try)
    assert delete_run(run)
    assert refused == ["plan"]


def test_one_who_has_lost_the_run_meanwhile_deletes_no_more(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    hold = Lease.hold

    def lost(lease: Lease) -> Lease:
        lease.taken_by = "elsewhere:1"
        return hold(lease)

    monkeypatch.setattr(Lease, "hold", lost)
    with pytest.raises(RunOwnedError, match="elsewhere:1 has taken"):
        delete_run(run)
    assert newest_claimed(run) is not None
    RunResult(run.root)


def test_what_cannot_be_deleted_is_said_with_what_to_do(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse = os.unlink

    def refused(path: str, **more: object) -> None:
        if str(path).endswith(".parquet"):
            raise PermissionError(13, "Permission denied", path)
        refuse(path, **more)

    monkeypatch.setattr(os, "unlink", refused)
    with pytest.raises(StorageError, match=r"could not be deleted: .*\. Repair the storage, then go on: tuning delete"):
        delete_run(run)
    monkeypatch.undo()
    assert delete_run(run)


def test_a_folder_that_is_no_run_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.csv").write_text("x")
    for name in ("empty", "data", "missing"):
        assert not delete_run(RunDirectory(tmp_path / name))
    assert (tmp_path / "empty").is_dir()
    assert (tmp_path / "data" / "a.csv").exists()


def test_the_command_asks_first_and_says_what_it_has_done(run: RunDirectory, tmp_path: Path) -> None:
    unsure = tuning("delete", run.root)
    assert unsure.exit_code == 2
    assert "say --yes" in unsure.stderr
    assert Path(run.root, "plan").is_dir()
    other = shutil.copytree(run.root, tmp_path / "other")
    assert json.loads(tuning("delete", run.root, "--yes", "--output", "json").stdout) == {"deleted": run.root}
    assert tuning("delete", other, "--yes").stdout == f"deleted {other}\n"
    assert os.listdir(tmp_path) == ["runs"]
    for nothing, said in ((other, "there is no folder"), (tmp_path / "runs", "is not a run directory, so nothing was")):
        refused = tuning("delete", nothing, "--yes", "--output", "json")
        assert refused.exit_code == 6
        assert said in refused.stderr
    assert tuning("delete").exit_code == 2  # never the newest one
