"""How the work on a run has ended is one file of values, and a command with `--output json` prints the same."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from builders import definition, tuner_of, write_customers
from click.testing import CliRunner, Result

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.errors import MachineError, StorageError
from tuning.records.ownership import claim
from tuning.runs.outcome_file import OUTCOME, read_outcome
from tuning.storage.run_directory import RunDirectory

VALUES = ("state", "outcome", "exit_code", "code", "values")


def told(run: Path) -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((run / OUTCOME).read_text())
    assert found == read_outcome(RunDirectory(run))
    return found


def call(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def finished(run: Path) -> None:
    write_customers(run.parent / "data", 2)
    TuneRunner(**definition(run.parent / "data")).run(run, progress=False, in_process=True)


def partial(run: Path) -> None:
    write_customers(run.parent / "data", 1)
    (run.parent / "data" / "tiny.csv").write_text("a,b,c,y\n1,2,3,4\n")
    TuneRunner(**definition(run.parent / "data")).run(run, progress=False, in_process=True)


def spent(run: Path) -> None:
    runner = tuner_of(lambda config, seed: config["x"], trials=10_000, time_budget=0.3)
    runner.run(run, progress=False, in_process=True)


def stopped(run: Path) -> None:
    begun = threading.Event()

    def objective(config: dict[str, float], seed: int) -> float:
        begun.set()
        return config["x"]

    handle = tuner_of(objective, trials=100_000).run(run, progress=False, in_process=True, background=True)
    assert begun.wait(60)
    handle.cancel()
    handle.wait(60)


def failed(run: Path) -> None:
    def broken(*_: object, **__: object) -> None:
        raise MachineError("no worker works")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuning.driver.session.hosts_of", broken)
        with pytest.raises(MachineError):
            finished(run)


@pytest.mark.parametrize(
    ("ends", "values", "reason"),
    [
        (finished, ("finished", "complete", 0, "done", {}), ""),
        (partial, ("finished", "partial", 3, "done", {}), ""),
        (spent, ("spent", "none", 4, "time_budget", {}), ""),
        (stopped, ("stopped", "interrupted", 130, "interrupted", {"number": 2}), "stopped by Ctrl-C"),
        (failed, ("failed", "failed", 1, "machine", {}), "no worker works"),
    ],
)
def test_each_end_is_told_by_values_and_counts(
    tmp_path: Path, ends: Callable[[Path], None], values: tuple[object, ...], reason: str
) -> None:
    ends(run := tmp_path / "runs" / "run")
    found = told(run)
    assert tuple(found[name] for name in VALUES) == values
    assert found["reason"].startswith(reason)
    assert bool(found["reason"]) == bool(reason)
    summary = RunResult(run).summary()
    assert {name: found[name] for name in ("customers", "succeeded", "trials")} == {
        name: summary[name] for name in ("customers", "succeeded", "trials")
    }
    (listed,) = json.loads(call("runs", run.parent, "--output", "json").stdout)
    assert (listed["state"], listed["reason"]) == (values[0], found["reason"])


def test_a_run_whose_time_is_spent_says_so_of_each_customer_and_a_stopped_one_does_not(tmp_path: Path) -> None:
    for ends, why in ((spent, "the time budget (0.3s) is spent"), (stopped, "resume the run")):
        ends(run := tmp_path / ends.__name__)
        assert why in str(next(iter(RunResult(run).board()))["reason"])


def test_a_command_prints_what_the_file_holds(tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 1)
    (tmp_path / "run.yaml").write_text(json.dumps(definition(tmp_path / "data")))
    answer = call("run", tmp_path / "run.yaml", "--run-dir", tmp_path / "run", "--in-process", "--output", "json")
    printed, written = json.loads(answer.stdout), told(tmp_path / "run")
    assert {**printed, "wall_seconds": 0} == {**written, "wall_seconds": 0}


def test_the_word_of_an_earlier_owner_is_none_of_the_next(tmp_path: Path) -> None:
    finished(run := tmp_path / "run")
    directory = RunDirectory(run)
    claim(directory, 2, (), 4, 0.0)
    assert read_outcome(directory) is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"term": 1', b"\xff"])
def test_a_damaged_file_says_nothing(tmp_path: Path, content: bytes) -> None:
    finished(run := tmp_path / "run")
    (run / OUTCOME).write_bytes(content)
    assert read_outcome(RunDirectory(run)) is None
    assert not RunResult(run).unfinished


def test_nothing_is_written_where_the_storage_fails(tmp_path: Path) -> None:
    def refused(*_: object, **__: object) -> None:
        raise StorageError("it is gone")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuning.driver.session.hosts_of", refused)
        with pytest.raises(StorageError):
            finished(tmp_path / "run")
    assert not (tmp_path / "run" / OUTCOME).exists()
