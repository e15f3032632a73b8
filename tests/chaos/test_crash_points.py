"""Every durable step interrupted before, during and after it, and every write refused: no loss, no false success.

A durable step is one file placed in the run directory. The scenario writes each kind of them; a new place that writes
must get into the table below, with the test that interrupts it.
"""

from __future__ import annotations

import ast
import errno
import os
import re
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from builders import definition, write_customers
from chaos import Crash, duplicates, truth
from paths import ROOT
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sources import parsed

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import StorageError
from tuning.records import lease
from tuning.records.ownership import newest_term
from tuning.runs.progress import PROGRESS
from tuning.storage.backend import TEMPORARY
from tuning.storage.run_directory import RunDirectory

QUIET = {"progress": False, "in_process": True}
MOMENTS = ("before", "during", "after")
TIMING = Timing(heartbeat_s=1e6, parts_s=0.0, storage_pause_s=0.0)  # no beats in between, each trial a part
MIDDLE = 12  # the step after which two trials are recorded
STEPS, RESUME = 25, 19  # durable steps of the scenario, and of a resume of what is left after the middle


def some(steps: int, every: int) -> list[Any]:
    """Each of the steps; the quick set takes one in `every`, and the last."""
    quick = {*range(1, steps + 1, every), steps}
    return [pytest.param(step, marks=() if step in quick else pytest.mark.slow) for step in range(1, steps + 1)]


HERE = "this file, by the scenario"
RELEASES = "unit/serving/test_crashes_of_releases.py: test_a_process_that_is_killed_leaves_the_old_or_the_new_release"
WRITERS = {
    ("tuning/records/ownership.py", "claim"): HERE,
    ("tuning/records/lease.py", "_beat"): HERE,
    ("tuning/data/partition.py", "_write"): HERE,
    ("tuning/user_code.py", "copy_into"): HERE,
    ("tuning/models/entries.py", "write"): HERE,
    ("tuning/runs/plan_file.py", "freeze"): HERE,
    ("tuning/runs/plan_file.py", "write_plan"): HERE,
    ("tuning/runs/resume.py", "hand_over"): HERE,
    ("tuning/models/customer_model.py", "save"): HERE,
    ("tuning/execution/reports.py", "flush"): HERE,
    ("tuning/records/parts.py", "_filtered"): "runs/test_changed_data.py: customers left out",
    ("tuning/runs/pool_file.py", "_placed"): "this file: test_a_run_with_a_pool_that_ends_at_any_step_of_it",
    ("tuning/runs/pool_file.py", "write_pool"): "this file: test_a_run_with_a_pool_that_ends_at_any_step_of_it",
    ("tuning/execution/packed.py", "train_pool"): "this file: test_a_run_with_a_pool_that_ends_at_any_step_of_it",
    ("tuning/serving/references.py", "mark"): RELEASES,
    ("tuning/serving/report.py", "write_report"): "made from the releases again by each command that makes one",
    ("tuning/serving/releases.py", "place"): RELEASES,
    ("tuning/runs/prediction/files.py", "_note"): "in no run: unit/runs/test_batch.py",
    ("tuning/runs/prediction/files.py", "_write"): "in no run: unit/runs/test_batch.py",
    ("tuning/driver/ending.py", "ended"): HERE,
    ("tuning/runs/progress.py", "write_progress"): "how far a run is, written anew: unit/runs/test_progress_file.py",
    ("tuning/driver/ending.py", "write_outcome"): "how a run has ended: unit/runs/test_outcome_file.py",
    ("tuning/runs/report/customer.py", "write_customer_report"): "a page that is made again when it is asked for",
    ("tuning/execution/crash_log.py", "__init__"): "services/test_storage_runs.py: a worker that dies",
    ("tuning/execution/spread/state.py", "write_predictions"): "unit/execution/test_spread_predictions.py",
    ("tuning/compare/on_data.py", "keep"): "made from the records again by `tuning compare RUN`",
    ("tuning/tracking/summary.py", "save_summary"): "a copy for MLflow: test_mlflow_outage.py",
    ("tuning/tracking/release_folder.py", "write"): "a folder that MLflow copies, in no run",
    ("tuning/models/shards.py", "shards_of"): "by the rows' digest, read where it is whole: ray/test_worker_groups.py",
    ("tuning/runs/trial_logs.py", "_write"): "made from the records again: runs/test_trial_logs.py",
    ("tuning/runs/report/page.py", "write_report"): "made from the records again by `tuning report RUN`",
    ("tuning/driver/log_capture.py", "_file_handler"): "messages of libraries, which may be lost",
}


@pytest.fixture(autouse=True)
def _steps_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same steps in the same order each time: one thread that writes."""
    monkeypatch.setattr("tuning.storage.background.THREADS", 1)


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> TuneRunner:
    """A search that writes every kind of file: a keyed table, own code, own models, winners."""
    folder = tmp_path_factory.mktemp("scenario")
    write_customers(folder / "data", 2)
    frames = [pd.read_csv(path).assign(store=path.stem) for path in sorted((folder / "data").glob("*.csv"))]
    pd.concat(frames).to_csv(folder / "table.csv", index=False)
    (folder / "prepare.py").write_text("def prepare(frame):\n    return frame\n")
    (folder / "score.py").write_text("def score(y, p):\n    return -float(abs(y - p).mean())\n")
    fields: dict[str, Any] = {"data": str(folder / "table.csv"), "by": "store", "slots": 1, "trials": 3}
    fields |= {"prepare": f"{folder}/prepare.py:prepare", "metric": f"{folder}/score.py:score", "search_space": None}
    pipeline = make_pipeline(StandardScaler(), Ridge())
    found = TuneRunner(**{**definition(folder), **fields, "models": ["ridge", pipeline], "algorithm": "random"})
    found.timing = TIMING
    return found


@pytest.fixture(scope="module")
def undisturbed(runner: TuneRunner, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What it finds out when nothing happens."""
    return truth(runner.run(str(tmp_path_factory.mktemp("undisturbed") / "run"), **QUIET))


@contextmanager
def at_step(monkeypatch: pytest.MonkeyPatch, number: int, happens: Callable[..., None]) -> Iterator[list[str]]:
    """Let something happen instead of the n-th durable step, from 1; gives the names of the steps."""
    steps: list[str] = []
    lock = threading.RLock()

    def watched(action: Callable[..., None]) -> Callable[..., None]:
        def step(self: RunDirectory, name: str, data: bytes | Iterator[bytes]) -> None:
            if name == PROGRESS:  # written by a clock, and no step of the run
                action(self, name, data)
                return
            given = list(data) if isinstance(data, Iterator) else data
            whole = b"".join(given) if isinstance(given, list) else given
            with lock:
                steps.append(name)
                happens(len(steps) - number, lambda: action(self, name, given), Path(self.path(name)), whole)

        return step

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write", watched(RunDirectory.write))
        patch.setattr(RunDirectory, "write_pieces", watched(RunDirectory.write_pieces))
        patch.setattr(RunDirectory, "claim", watched(RunDirectory.claim))
        yield steps


def ending(moment: str) -> Callable[..., None]:
    """The process ends at a moment of the step."""

    def happens(distance: int, action: Callable[[], None], path: Path, data: bytes) -> None:
        if distance > 0:
            raise Crash(f"a process that had ended wrote {path}")
        if distance == 0 and moment == "during":
            path.parent.mkdir(parents=True, exist_ok=True)
            (path.parent / f"{TEMPORARY}{len(data)}").write_bytes(data[: len(data) // 2])
        if distance < 0 or moment == "after":
            action()
        if distance == 0:
            raise Crash(moment)

    return happens


def crash(monkeypatch: pytest.MonkeyPatch, runner: TuneRunner, run: Path, number: int, moment: str) -> list[str]:
    """A run, or a resume of it, that ends at a step."""
    with at_step(monkeypatch, number, ending(moment)) as steps, pytest.raises(Crash):
        runner.run(str(run), resume=True, **QUIET)
    lease._HELD.clear()  # the process has ended
    return steps


def recorded(run: Path) -> dict[Any, float]:
    """When each trial began that is recorded now."""
    if newest_term(RunDirectory(str(run))) is None:
        return {}
    return {record.key: record.started for record in RunResult(str(run)).trial_records}


def check(runner: TuneRunner, run: Path, undisturbed: dict[str, Any], before: dict[Any, float]) -> None:
    """Going on gives what an undisturbed run gives, and what was recorded has not run again."""
    result = runner.run(str(run), resume=True, **QUIET)
    assert truth(result) == undisturbed
    assert duplicates(result) == []
    assert before.items() <= recorded(run).items()
    assert (run / "leaderboard.csv").read_text().count("\n") == 3
    for customer in ("c0000", "c0001"):
        assert result.model(customer).task.kind == "regression"


def kind(name: str) -> str:
    """What sort of file a step places."""
    folder, _, rest = name.partition("/")
    last = rest.rpartition("/")[2]
    if folder == "records":
        return last.partition("-")[0]
    return f"{folder}-carried" if "-carried" in rest else folder if folder != "plan" else f"plan{Path(last).suffix}"


def test_the_scenario_takes_every_kind_of_step(
    runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    never = ending("never")
    with at_step(monkeypatch, 10**9, never) as steps:
        runner.run(str(tmp_path / "whole"), **QUIET)
    kinds = Counter(map(kind, steps))
    assert dict(kinds) == {
        "terms": 1, "leases": 2, "data": 2, "code": 2, "estimators": 1, "plan.yaml": 1, "definition.yaml": 1,
        "plan.parquet": 1, "trials": 6, "studies": 2, "models": 4, "leaderboard.csv": 1,
        "outcome.json": 1,
    }  # fmt: skip
    assert len(steps) == STEPS
    crash(monkeypatch, runner, tmp_path / "run", MIDDLE, "after")
    with at_step(monkeypatch, 10**9, never) as steps:
        runner.run(str(tmp_path / "run"), resume=True, **QUIET)
    assert Counter(map(kind, steps))["plan-carried"] == 1
    assert len(steps) == RESUME


def test_no_other_code_writes_into_a_run() -> None:
    found = set()
    for path in (ROOT / "tuning").rglob("*.py"):
        if not re.search(r"directory\s*\.(write|claim)", path.read_text()):
            continue
        for function in [node for node in ast.walk(parsed(path)) if isinstance(node, ast.FunctionDef)]:
            for node in ast.walk(function):
                called = node.func if isinstance(node, ast.Call) else None
                if not isinstance(called, ast.Attribute) or called.attr not in ("write", "write_pieces", "claim"):
                    continue
                if ast.unparse(called.value).endswith("directory"):
                    found.add((path.relative_to(ROOT).as_posix(), function.name))
    assert found == set(WRITERS)


@pytest.mark.parametrize("number", some(STEPS, 3))
def test_a_run_that_ends_at_any_step_goes_on_as_if_nothing_had_happened(
    runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    crash(monkeypatch, runner, tmp_path / "run", number, MOMENTS[number // 3 % 3])
    check(runner, tmp_path / "run", undisturbed, recorded(tmp_path / "run"))


@pytest.mark.parametrize("number", some(RESUME, 5))
def test_a_resume_that_ends_at_any_step_does_too(
    runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    crash(monkeypatch, runner, tmp_path / "run", MIDDLE, "after")
    before = recorded(tmp_path / "run")
    crash(monkeypatch, runner, tmp_path / "run", number, MOMENTS[number % 3])
    between = recorded(tmp_path / "run")
    assert before.items() <= between.items()
    check(runner, tmp_path / "run", undisturbed, between)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(1, STEPS + 1))
def test_every_moment_of_every_step(
    runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    for moment in MOMENTS:
        run = tmp_path / moment
        crash(monkeypatch, runner, run, number, moment)
        check(runner, run, undisturbed, recorded(run))


@pytest.fixture(scope="module")
def pooling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TuneRunner, dict[str, Any], list[int]]]:
    """Two customers whose run has a pool, what it finds out when nothing happens, and its steps that are the pool's."""
    folder = tmp_path_factory.mktemp("pooling")
    write_customers(folder / "data", 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuning.storage.background.THREADS", 1)
        patch.setattr("tuning.evaluation.pooling.BOOSTERS", {"catboost": {"iterations": 10, "depth": 3}})
        found = TuneRunner(**definition(folder / "data", pool="on", trials=2, slots=1))
        found.timing = TIMING
        with at_step(patch, 10**9, ending("never")) as steps:
            whole = truth(found.run(str(folder / "run"), **QUIET))
        yield found, whole, [at for at, name in enumerate(steps, 1) if name.startswith("pool/") or "/pool-" in name]


@pytest.mark.parametrize("number", [0, 1, 2, 6, 7, 8, 13])
def test_a_run_with_a_pool_that_ends_at_any_step_of_it(
    pooling: tuple[TuneRunner, dict[str, Any], list[int]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Its record, of both forms a description and five models, and that it is settled."""
    runner, undisturbed, places = pooling
    assert len(places) == 14
    crash(monkeypatch, runner, tmp_path / "run", places[number], MOMENTS[number % 3])
    check(runner, tmp_path / "run", undisturbed, recorded(tmp_path / "run"))


# --- writes that are refused --------------------------------------------------------------------


def failing(code: int, times: int = 10**9) -> Callable[..., None]:
    """The disk refuses this write and those after it."""
    left = [times]

    def happens(distance: int, action: Callable[[], None], path: Path, data: bytes) -> None:
        if distance >= 0 and left[0] > 0:
            left[0] -= 1
            raise OSError(code, os.strerror(code), str(path))
        action()

    return happens


@contextmanager
def at_write(monkeypatch: pytest.MonkeyPatch, number: int, happens: Callable[..., None]) -> Iterator[None]:
    """Let something happen instead of the n-th write to the disk."""
    count = [0]
    lock = threading.RLock()

    def watched(put: Callable[[str, bytes], None]) -> Callable[[str, bytes], None]:
        def write(target: str, data: bytes) -> None:
            if Path(target).name == PROGRESS:  # written by a clock, and no step of the run
                put(target, data)
                return
            with lock:
                count[0] += 1
                happens(count[0] - number, lambda: put(target, data), Path(target), data)

        return write

    from tuning.storage import local_disk

    with monkeypatch.context() as patch:
        patch.setattr(local_disk, "_place", watched(local_disk._place))
        patch.setattr(local_disk, "_place_new", watched(local_disk._place_new))
        yield


@pytest.mark.parametrize("number", some(STEPS, 8))
def test_a_disk_that_is_full_from_some_write_on_is_said_and_is_no_success(
    runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    run = tmp_path / "run"
    with at_write(monkeypatch, number, failing(errno.ENOSPC)):
        if number >= STEPS - 1:  # only the outcome is missing, and the lease is not let go of: nothing is lost
            assert truth(runner.run(str(run), **QUIET)) == undisturbed
        else:
            with pytest.raises(StorageError, match=r"could not be written: .*No space left on device.*resume the run"):
                runner.run(str(run), **QUIET)
    check(runner, run, undisturbed, recorded(run))


@pytest.mark.parametrize("number", some(STEPS, 12))
def test_a_write_that_fails_once_is_tried_again(
    runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    with at_write(monkeypatch, number, failing(errno.EIO, times=2)):
        assert truth(runner.run(str(tmp_path / "run"), **QUIET)) == undisturbed


def test_a_disk_that_is_really_full(runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path) -> None:
    """A file system of 60 KiB; then it gets more room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=60k", "none", str(disk)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    try:
        with pytest.raises(StorageError, match="No space left on device"):
            runner.run(str(disk / "run"), **QUIET)
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        check(runner, disk / "run", undisturbed, recorded(disk / "run"))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


# --- the clock ----------------------------------------------------------------------------------


def test_a_clock_set_back_between_runs_changes_nothing(
    runner: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each owner lives a day, or ten years, before the one that it follows."""
    run = tmp_path / "run"
    now, now_ns = time.time, time.time_ns
    for number, days in enumerate((0, 1, 3650)):
        with monkeypatch.context() as patch:
            patch.setattr("time.time", lambda days=days: now() - 86_400 * days)
            patch.setattr("time.time_ns", lambda days=days: now_ns() - 86_400 * days * 10**9)
            before = recorded(run)
            crash(monkeypatch, runner, run, (11, 7, 7)[number], "after")
            assert before.items() <= recorded(run).items()
            assert len(before) < len(recorded(run))
    check(runner, run, undisturbed, recorded(run))
    more = TuneRunner(runner.definition, trials=5)
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: now() - 86_400 * 7000)
        patch.setattr("time.time_ns", lambda: now_ns() - 86_400 * 7000 * 10**9)
        result = more.run(str(run), resume=True, **QUIET)
    assert truth(result) == truth(more.run(str(tmp_path / "whole"), **QUIET))
