"""The live copy: a child process fed with part names, against a real MLflow database."""

from __future__ import annotations

import io
import os
import queue
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from mlflow_records import RUN, by_name, runs_in, study, trial, write_part, write_parts

from tuning.errors import DefinitionError, PlanError
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.copy.process import PARTS_AT_ONCE, CopyLoop
from tuning.tracking.copy.sync import sync
from tuning.tracking.copy.writer import Writer
from tuning.tracking.identity import Search
from tuning.tracking.settings import TrackingSettings

pytestmark = pytest.mark.mlflow
SEARCH = Search("churn", RUN)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    result = RunDirectory(str(tmp_path / "run"))
    result.create()
    return result


def test_parts_become_runs_of_their_study(directory: RunDirectory, mlflow_database: str) -> None:
    parts = write_parts(directory, studies=3, trials=4)
    writer = Writer(directory, mlflow_database, "churn", RUN)
    writer.start()
    for part in parts:
        writer.add(part)
    status = writer.close(60)
    assert (status.trials, status.studies, status.pending, status.error) == (12, 3, 0, None)
    assert status.healthy
    runs = by_name(mlflow_database)
    assert len(runs) == 15
    child, parent = runs["c0001/0002"], runs["c0001"]
    assert child.data.tags["mlflow.parentRunId"] == parent.info.run_id == SEARCH.id("c0001")
    assert child.info.run_id == SEARCH.id("c0001", 2)
    assert child.data.metrics["roc_auc"] == pytest.approx(0.702)


def test_writing_twice_and_in_any_order_changes_nothing(directory: RunDirectory, mlflow_database: str) -> None:
    parts = write_parts(directory, studies=2, trials=3)
    first = sync(directory, mlflow_database, "churn", RUN, reversed(parts))
    assert first.complete
    before = {name: run.to_dictionary() for name, run in by_name(mlflow_database).items()}
    again = sync(directory, mlflow_database, "churn", RUN, [*parts, *parts])
    assert again.complete
    assert {name: run.to_dictionary() for name, run in by_name(mlflow_database).items()} == before
    assert before["c0001/0002"]["data"]["tags"]["tuning.best"] == "true"


def test_a_study_runs_until_its_record_arrives(directory: RunDirectory, mlflow_database: str) -> None:
    early = write_part(directory, "trials-a", trial("acme", 0))
    assert sync(directory, mlflow_database, "churn", RUN, [early]).complete
    assert by_name(mlflow_database)["acme"].info.status == "RUNNING"
    late = write_part(directory, "studies-a", study("acme", 1))
    assert sync(directory, mlflow_database, "churn", RUN, [early, late]).complete
    runs = by_name(mlflow_database)
    assert runs["acme"].info.status == "FINISHED"
    assert runs["acme"].data.metrics["test_score"] == pytest.approx(0.79)
    assert runs["acme"].data.params["model.max_depth"] == "3"
    assert runs["acme/0000"].data.tags["tuning.best"] == "true"


def test_the_default_database_is_made_in_the_run_directory(directory: RunDirectory) -> None:
    part = write_part(directory, "trials-a", trial())
    report = sync(directory, None, "churn", RUN, [part])
    assert report.complete, report
    assert directory.exists("mlflow.db")
    assert len(runs_in(f"sqlite:///{directory.path('mlflow.db')}")) == 2


def test_a_killed_child_is_replaced_and_nothing_is_lost(directory: RunDirectory, mlflow_database: str) -> None:
    parts = write_parts(directory, studies=4, trials=3)
    writer = Writer(directory, mlflow_database, "churn", RUN)
    for part in parts[:4]:
        writer.add(part)
    writer.start()
    while writer._child is None:
        pass
    os.kill(writer._child.pid, signal.SIGKILL)
    for part in parts[4:]:
        writer.add(part)
    status = writer.close(60)
    assert status.pending == 0
    assert len(by_name(mlflow_database)) == 16


def test_the_child_ends_with_its_driver(directory: RunDirectory, mlflow_database: str, tmp_path: Path) -> None:
    script = tmp_path / "driver.py"
    script.write_text(
        "import os, signal, sys\n"
        "from tuning.storage.run_directory import RunDirectory\n"
        "from tuning.tracking.copy.writer import Writer\n"
        "writer = Writer(RunDirectory(sys.argv[1]), sys.argv[2], 'churn', 'r')\n"
        "writer.start()\n"
        "while writer._child is None: pass\n"
        "print(writer._child.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    driver = subprocess.run(
        [sys.executable, str(script), directory.uri, mlflow_database],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    descriptor = None
    try:
        descriptor = os.pidfd_open(int(driver.stdout))
    except ProcessLookupError:
        return  # gone already
    import select

    ready, _, _ = select.select([descriptor], [], [], 30)
    os.close(descriptor)
    assert ready, "the child outlived its driver by 30 s"


def test_a_missing_part_is_told_and_the_others_are_copied(directory: RunDirectory, mlflow_database: str) -> None:
    parts = write_parts(directory, studies=1, trials=2)
    report = sync(directory, mlflow_database, "churn", RUN, ["records/0001/trials-gone.parquet", *parts])
    assert not report.complete
    assert report.status.pending == 1
    assert "trials-gone.parquet" in str(report.status.error)
    assert len(by_name(mlflow_database)) == 3


def test_wrong_settings_are_refused_at_once(directory: RunDirectory) -> None:
    with pytest.raises(DefinitionError, match="'top:5'"):
        Writer(directory, None, "churn", RUN, record_trials="top:0")
    remote = RunDirectory.__new__(RunDirectory)
    remote.uri, remote.local = "s3://bucket/run", False
    with pytest.raises(PlanError, match="tracking URI"):
        Writer(remote, None, "churn", RUN)


def test_importing_the_package_loads_neither_mlflow_nor_ray() -> None:
    code = (
        "import sys, tuning.tracking, tuning.tracking.copy.writer, tuning.tracking.copy.sync; "
        "print([m for m in ('mlflow', 'ray', 'sqlalchemy', 'pandas') if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert answer.stdout.strip() == "[]"


@pytest.mark.parametrize("end", [{"close": 60}, {"hurry": True}], ids=lambda command: next(iter(command)))
def test_the_copy_rests_between_batches_but_not_at_the_end(
    directory: RunDirectory, mlflow_database: str, monkeypatch: pytest.MonkeyPatch, end: dict[str, object]
) -> None:
    clock = 100.0
    monkeypatch.setattr("tuning.tracking.copy.process.time", SimpleNamespace(monotonic=lambda: clock))
    settings = TrackingSettings(directory.uri, mlflow_database, "churn", RUN)
    loop = CopyLoop(settings, queue.SimpleQueue(), io.StringIO())
    loop.prepared = True
    written = []

    def work() -> None:
        nonlocal clock
        clock += 0.1
        written.append(loop.copier._queue.popleft())

    monkeypatch.setattr(loop.copier, "work", work)
    for part in ("a", "b"):
        loop.copier.add(part)
    loop._step()
    assert written == ["a"]
    assert loop._wait() == pytest.approx(2.0)
    clock += 2.5
    assert loop._wait() == 0.0
    loop._step()
    assert written == ["a", "b"]
    for number in range(PARTS_AT_ONCE):
        loop.copier.add(f"more-{number}")
    loop._step()
    assert len(written) == 3, "so many parts do not wait, the rest of them does"
    loop._obey(end)
    assert loop._wait() == 0.0
    loop._step()
    assert len(written) == 2 + PARTS_AT_ONCE
