"""A real tracking server behind a faulty network: the copy waits, loses nothing and doubles nothing."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from faulty_proxy import FAULTS, FaultyProxy
from mlflow.exceptions import MlflowException
from mlflow_records import (
    MINUTES,
    RUN,
    by_name,
    follow,
    open_run,
    runs_in,
    settings_for,
    study,
    sync,
    trial,
    until,
    write_part,
    write_parts,
)
from mlflow_server import MlflowServer

from tuning.storage.run_directory import RunDirectory
from tuning.tracking.settings import CopyStatus

pytestmark = pytest.mark.timeout(3 * MINUTES)
QUICK = {"drop", "error", "hang"}


@pytest.fixture(scope="module")
def server(migrated_database: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a real `mlflow server` of this module."""
    with MlflowServer(tmp_path_factory.mktemp("server"), migrated_database) as running:
        yield running.port


@pytest.fixture
def proxy(server: int) -> Iterator[FaultyProxy]:
    result = FaultyProxy(server)
    yield result
    result.set(None)
    result.close()


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunDirectory]:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
    result = RunDirectory(str(tmp_path / "run"))
    result.create()
    with open_run(result):
        yield result


class Following:
    """The copy of an open run, in this process: the one beside a search steps back for all that a busy machine does.

    patience: seconds that a store may fail, once the run has ended.
    """

    def __init__(
        self,
        directory: RunDirectory,
        uri: str,
        experiment: str,
        patience: float = MINUTES,
    ) -> None:
        settings = settings_for(directory, uri, experiment, RUN)
        self.status = CopyStatus()
        self._ending = threading.Event()
        fields: dict[str, Any] = {"ended": self._ending, "patience": patience}
        self._thread = threading.Thread(target=lambda: follow(settings, progress=self._take, **fields), daemon=True)
        self._thread.start()

    def end(self) -> CopyStatus:
        """The run has ended: how its copy stands once that has ended, too."""
        self._ending.set()
        self._thread.join(MINUTES)
        assert not self._thread.is_alive()
        return self.status

    def _take(self, status: CopyStatus) -> None:
        self.status = status


def assert_each_once(uri: str, experiment: str, studies: int, trials: int) -> None:
    runs = runs_in(uri, experiment)
    names = Counter(run.info.run_name for run in runs)
    assert names == Counter(
        [f"c{s:04d}" for s in range(studies)] + [f"c{s:04d}/{t:04d}" for s in range(studies) for t in range(trials)]
    )
    assert {run.info.status for run in runs} == {"FINISHED"}
    parents = {run.info.run_name: run.info.run_id for run in runs}
    for run in runs:
        name = run.info.run_name
        if "/" in name:
            assert run.data.tags["mlflow.parentRunId"] == parents[name.split("/")[0]]
            assert run.data.metrics["score"] == pytest.approx(0.7 + int(name[-4:]) / 1000)
            assert run.data.params["family"] == "xgboost"


@pytest.mark.parametrize(
    "fault", [each if each in QUICK else pytest.param(each, marks=pytest.mark.slow) for each in FAULTS]
)
def test_an_outage_loses_nothing_and_doubles_nothing(
    fault: str, proxy: FaultyProxy, server: int, directory: RunDirectory
) -> None:
    copy = Following(directory, proxy.uri, fault)
    write_part(directory, "trials-c0000", *(trial("c0000", n) for n in range(4)))
    until(lambda: copy.status.copied == 1)
    proxy.set(fault)
    write_parts(directory, studies=3, trials=4)
    if fault in ("slow", "drop"):
        until(lambda: copy.status.trials > 4)
    else:
        until(lambda: not copy.status.healthy)
        assert copy.status.error
    assert copy.status.trials >= 4
    proxy.set(None)
    status = copy.end()
    assert (status.pending, status.rejected, status.error) == (0, 0, None)
    assert_each_once(f"http://127.0.0.1:{server}", fault, studies=3, trials=4)


def test_a_server_that_is_down_from_the_start(proxy: FaultyProxy, server: int, directory: RunDirectory) -> None:
    proxy.set("refuse")
    parts = write_parts(directory, studies=2, trials=2)
    copy = Following(directory, proxy.uri, "down", patience=0.0)
    until(lambda: not copy.status.healthy)
    status = copy.end()
    assert (status.pending, status.trials) == (4, 0)
    assert "refused" in str(status.error).lower() or "Max retries" in str(status.error)
    proxy.set(None)
    assert sync(settings_for(directory, proxy.uri, "down", RUN), parts).complete
    assert_each_once(f"http://127.0.0.1:{server}", "down", studies=2, trials=2)


def test_a_run_that_the_server_makes_long_after_we_gave_up(
    proxy: FaultyProxy, server: int, directory: RunDirectory
) -> None:
    uri = f"http://127.0.0.1:{server}"
    proxy.set("late")
    parts = write_parts(directory, studies=2, trials=2)
    copy = Following(directory, proxy.uri, "late")
    until(lambda: copy.status.copied == len(parts))
    proxy.release()

    def doubled() -> bool:
        with contextlib.suppress(MlflowException):  # a server that is too busy is asked again
            return len(names := [run.info.run_name for run in runs_in(uri, "late")]) > len(set(names))
        return False

    until(doubled)  # else this test would show nothing
    assert copy.end().pending == 0
    assert_each_once(uri, "late", studies=2, trials=2)


def test_secrets_stay_out_of_what_is_said(directory: RunDirectory) -> None:
    write_part(directory, "trials-a", trial())
    copy = Following(directory, "http://me:hunter2@127.0.0.1:1/?token=hunter3", "secret", patience=0.0)
    until(lambda: not copy.status.healthy)
    error = str(copy.end().error)
    assert "hunter" not in error
    assert "127.0.0.1" in error


def test_a_locked_database_is_waited_for(directory: RunDirectory, mlflow_database: str) -> None:
    lock = sqlite3.connect(mlflow_database.removeprefix("sqlite:///"), isolation_level=None, timeout=MINUTES)
    write_part(directory, "trials-a", trial("acme", 0))
    copy = Following(directory, mlflow_database, "locked")
    until(lambda: copy.status.copied == 1)
    lock.execute("BEGIN EXCLUSIVE")
    write_part(directory, "trials-b", trial("acme", 1))
    write_part(directory, "studies-c", study("acme", 2))
    until(lambda: "locked" in str(copy.status.error))
    lock.execute("COMMIT")
    assert copy.end().pending == 0
    assert sorted(by_name(mlflow_database, "locked")) == ["acme", "acme/0000", "acme/0001"]
