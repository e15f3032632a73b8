"""The live copy: a child process that follows the run directory, against a real MLflow database."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow_records import (
    MINUTES,
    RUN,
    TERM,
    by_name,
    follow,
    live_copy,
    open_run,
    settings_for,
    study,
    sync,
    trial,
    until,
    write_part,
    write_parts,
)

from tuning.basics.timing import Timing
from tuning.records.lease import Lease
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.follow import RunParts
from tuning.tracking.settings import CopyStatus

pytestmark = [pytest.mark.mlflow, pytest.mark.timeout(3 * MINUTES)]


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    result = RunDirectory(str(tmp_path / "run"))
    result.create()
    return result


@pytest.fixture
def running(directory: RunDirectory) -> Iterator[Lease]:
    """The run in that directory goes on, and this process owns it."""
    with open_run(directory) as lease:
        yield lease


@pytest.mark.usefixtures("running")
def test_parts_become_runs_of_their_study(directory: RunDirectory, mlflow_database: str) -> None:
    copy = live_copy(directory, mlflow_database)
    write_parts(directory, studies=3, trials=4)
    status = copy.close(MINUTES)
    assert (status.trials, status.studies, status.pending, status.error) == (12, 3, 0, None)
    assert status.healthy
    runs = by_name(mlflow_database)
    assert len(runs) == 15
    child, parent = runs["c0001/0002"], runs["c0001"]
    search = copy.settings.search
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id == search.id("c0001")
    assert child.info.run_id == search.id("c0001", 2)
    assert child.data.metrics["roc_auc"] == pytest.approx(0.702)


def test_what_is_recorded_is_copied_while_the_run_goes_on(
    directory: RunDirectory, mlflow_database: str, running: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tuning mlflow sync RUN --follow` reads no part twice, and ends when the owner has let go of the run."""
    read: list[str] = []
    plain_read = RunDirectory.read
    monkeypatch.setattr(RunDirectory, "read", lambda self, name: (read.append(name), plain_read(self, name))[1])
    seen: list[CopyStatus] = []
    reports = []
    settings = settings_for(directory, mlflow_database, "churn", RUN)
    often = Timing(mlflow_look_s=0.05)
    thread = threading.Thread(target=lambda: reports.append(follow(settings, progress=seen.append, timing=often)))
    thread.start()
    first = write_part(directory, "trials-a", trial("acme", 0))
    until(lambda: bool(seen) and seen[-1].trials == 1)
    second = write_part(directory, "studies-a", study("acme", 1))
    until(lambda: seen[-1].studies == 1)
    assert thread.is_alive()
    running.release()
    thread.join(MINUTES)
    assert [report.complete for report in reports] == [True]
    assert read.count(first) == read.count(second) == 1
    assert by_name(mlflow_database)["acme"].info.status == "FINISHED"


def test_the_end_of_a_run_is_not_waited_for_twice(
    directory: RunDirectory, mlflow_database: str, running: Lease
) -> None:
    """The owner says that the run has ended: what is left is copied at once, not at the next look."""
    ending = threading.Event()
    seen: list[CopyStatus] = []
    settings = settings_for(directory, mlflow_database, "churn", RUN)
    rarely = Timing(mlflow_look_s=3600.0)
    thread = threading.Thread(target=lambda: follow(settings, ended=ending, progress=seen.append, timing=rarely))
    write_part(directory, "trials-a", trial("acme", 0))
    thread.start()
    until(lambda: bool(seen) and seen[-1].trials == 1)
    write_part(directory, "studies-a", study("acme", 1))
    ending.set()
    thread.join(MINUTES)
    assert not thread.is_alive()
    assert (seen[-1].studies, seen[-1].pending) == (1, 0)


def test_writing_twice_and_in_any_order_changes_nothing(directory: RunDirectory, mlflow_database: str) -> None:
    parts = write_parts(directory, studies=2, trials=3)
    first = sync(settings_for(directory, mlflow_database, "churn", RUN), reversed(parts))
    assert first.complete
    before = {name: run.to_dictionary() for name, run in by_name(mlflow_database).items()}
    again = sync(settings_for(directory, mlflow_database, "churn", RUN), [*parts, *parts])
    assert again.complete
    assert {name: run.to_dictionary() for name, run in by_name(mlflow_database).items()} == before
    assert before["c0001/0002"]["data"]["tags"]["tuning.best"] == "true"


@pytest.mark.usefixtures("running")
def test_a_killed_child_is_replaced_and_nothing_is_lost(directory: RunDirectory, mlflow_database: str) -> None:
    parts = write_parts(directory, studies=2, trials=3)
    copy = live_copy(directory, mlflow_database)
    until(lambda: copy.status.copied == len(parts))
    assert copy._child is not None
    copy._child.kill()
    copy._child.wait()
    assert "exit code -9" in str(copy.status.error)
    write_parts(directory, studies=4, trials=3)
    status = copy.close(MINUTES)
    assert (status.pending, status.healthy) == (0, True)
    assert len(by_name(mlflow_database)) == 16


@pytest.mark.usefixtures("running")
def test_a_child_that_cannot_work_is_told_with_everything_that_is_missing(
    directory: RunDirectory, mlflow_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuning.tracking.child.sys.executable", "/bin/false")
    parts = write_parts(directory, studies=2, trials=3)
    status = live_copy(directory, mlflow_database).close(MINUTES)
    assert (status.pending, status.healthy) == (len(parts), False)
    assert "ended with exit code 1" in str(status.error)


@pytest.mark.usefixtures("running")
def test_a_child_that_takes_this_process_for_dead_is_started_again(
    directory: RunDirectory, mlflow_database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    child = tmp_path / "child"
    child.write_text(
        "#!/bin/sh\n"
        """mkdir "$0.once" && { echo '{"status": {"abandoned": true}, "complete": false}'; exit 1; }\n"""
        """echo '{"status": {"copied": 1}, "complete": true}'\n"""
    )
    child.chmod(0o700)
    monkeypatch.setattr("tuning.tracking.child.sys.executable", str(child))
    assert live_copy(directory, mlflow_database).close(MINUTES) == CopyStatus(copied=1)


def test_an_owner_is_dead_when_it_stands_still_and_not_when_nobody_has_looked(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch can take longer than an owner may stand still: the lease is read again before it is believed dead."""
    now = time.monotonic()
    monkeypatch.setattr("tuning.tracking.follow.time.monotonic", lambda: now)
    with open_run(directory, Timing(heartbeat_s=1e6)) as lease:
        parts = RunParts(directory, TERM, threading.Event())
        parts.look()
        now += 3600
        lease._beat()
        assert not parts.abandoned
        now += 3600
        assert parts.abandoned


@pytest.mark.usefixtures("running")
def test_the_command_line_of_the_child_holds_no_secret(directory: RunDirectory) -> None:
    copy = live_copy(directory, "postgresql://me:hunter2@127.0.0.1:1/mlflow")
    until(lambda: not copy.status.healthy)
    assert copy._child is not None
    line = Path(f"/proc/{copy._child.pid}/cmdline").read_text()
    copy.close(0.0)
    assert "--follow" in line
    assert "hunter2" not in line


def test_the_child_ends_with_its_driver(directory: RunDirectory, mlflow_database: str, tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(
        "import os, signal, sys\n"
        "sys.path.append(sys.argv[3])\n"
        "from mlflow_records import live_copy, open_run\n"
        "from tuning.storage.run_directory import RunDirectory\n"
        "directory = RunDirectory(sys.argv[1])\n"
        "with open_run(directory):\n"
        "    copy = live_copy(directory, sys.argv[2])\n"
        "    while copy._child is None: pass\n"
        "    print(copy._child.pid, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    helpers = str(Path(__file__).resolve().parents[1] / "helpers")
    driver = subprocess.run(
        [sys.executable, str(script), directory.uri, mlflow_database, helpers],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    descriptor = None
    try:
        descriptor = os.pidfd_open(int(driver.stdout))
    except ProcessLookupError:
        return  # gone already
    ready, _, _ = select.select([descriptor], [], [], MINUTES)
    os.close(descriptor)
    assert ready, "the child outlived its driver"


def test_a_missing_part_is_told_and_the_others_are_copied(directory: RunDirectory, mlflow_database: str) -> None:
    parts = write_parts(directory, studies=1, trials=2)
    report = sync(settings_for(directory, mlflow_database, "churn", RUN), ["records/0001/trials-gone.parquet", *parts])
    assert not report.complete
    assert (report.pending, report.rejected) == (0, 1)
    assert "trials-gone.parquet" in str(report.error)
    assert len(by_name(mlflow_database)) == 3
