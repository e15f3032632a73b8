"""Stopping a run from outside: Ctrl-C, SIGTERM, a budget, another owner. Nothing recorded is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest
import yaml
from builders import SPACE, definition, tuner_of, valley, write_customers
from chaos import environment, truth, wait_for

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.driver.signals import Signals
from tuning.errors import RunError, RunInterrupted, RunOwnedError
from tuning.records.lease import last_heartbeat
from tuning.records.ownership import claim, newest_claimed, newest_term
from tuning.storage.run_directory import RunDirectory

COMMAND = [sys.executable, "-m", "tuning.cli", "run", "definition.yaml"]
QUIET = {"progress": False, "in_process": True}


@contextmanager
def _once_recorded(run: Path, action: object) -> Iterator[None]:
    """Call `action` from another thread when the run has written its first part."""

    def watch() -> None:
        wait_for(lambda: list(run.glob("records/*/trials-*")), what="a first part")
        action()

    thread = threading.Thread(target=watch)
    thread.start()
    yield
    thread.join()


@pytest.fixture(autouse=True)
def stray_signals_are_ignored() -> Iterator[None]:
    """A signal that comes after a run has ended must not end the tests."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    yield
    signal.signal(signal.SIGINT, before)


def _slow(config: dict[str, float], seed: int) -> float:
    time.sleep(0.1)
    return valley(config, seed)


def _command(tmp_path: Path) -> subprocess.Popen[str]:
    write_customers(tmp_path / "data", 2)
    text = yaml.safe_dump({**definition(tmp_path / "data", trials=5000), "time_budget": "2m"})
    (tmp_path / "definition.yaml").write_text(text)
    return subprocess.Popen(
        [*COMMAND, "--run-dir", "run", "--progress=none", "--in-process"],
        env=environment(),
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_command_in_one_process_stops_says_how_to_go_on_and_ends_with_the_signals_code(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    command = _command(tmp_path)
    run = tmp_path / "run"
    wait_for(lambda: list(run.glob("records/*/trials-*")), what="a first part")
    command.send_signal(number)
    out, err = command.communicate()
    assert command.returncode == code, err
    assert f"Resume with: tuning resume {run}" in err
    assert "Traceback" not in err
    assert out == ""
    directory = RunDirectory(str(run))
    there = RunResult(directory)  # what is recorded of an unfinished study counts
    assert there.leaderboard()["trials"].sum() == there.summary()["trials"] == len(there.trial_records)
    term = newest_term(directory)
    assert term is not None
    assert last_heartbeat(directory, term).released
    assert len(RunResult(directory).trial_records) > 0


@pytest.mark.slow
def test_interrupting_in_a_notebook_and_going_on_gives_the_same_result(ray_cluster: None, tmp_path: Path) -> None:
    write_customers(tmp_path / "data", 4)
    runner = TuneRunner(**definition(tmp_path / "data", trials=150))
    run = tmp_path / "run"
    before = signal.getsignal(signal.SIGINT)
    with (
        _once_recorded(run, lambda: os.kill(os.getpid(), signal.SIGINT)),
        pytest.raises(RunInterrupted, match=r"stopped by Ctrl-C with \d+ trials? and \d of 4 studies recorded"),
    ):
        runner.run(str(run), progress=False)
    assert signal.getsignal(signal.SIGINT) is before
    recorded = {record.key: record.started for record in RunResult(str(run)).trial_records}
    assert recorded
    result = runner.run(str(run), progress=False, resume=True)
    assert recorded.items() <= {record.key: record.started for record in result.trial_records}.items()
    assert truth(result) == truth(runner.run(str(tmp_path / "whole"), **QUIET))


def test_the_second_signal_ends_it_at_once(ray_cluster: None, tmp_path: Path) -> None:
    import ray

    def twice() -> None:
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)  # Python takes two pending signals for one

    def slow(config: dict[str, float], seed: int) -> float:  # pickled by value: workers do not know this module
        time.sleep(0.1)
        return config["x"]

    run = tmp_path / "run"
    runner = tuner_of(slow, trials=400, slots=1)
    with _once_recorded(run, twice), pytest.raises(RunInterrupted, match=r"Resume with: runner.run\(.*, resume=True\)"):
        runner.run(str(run), progress=False)
    recorded = len(RunResult(str(run)).trial_records)
    assert recorded > 0
    wait_for(lambda: ray.available_resources().get("CPU") == 2, what="the workers' end")
    assert len(RunResult(str(run)).trial_records) >= recorded


def test_workers_that_die_before_their_first_line_are_not_started_for_ever(
    ray_cluster: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuning.driver.hosts.ray.WORKER_DEATHS", 0)
    # So that Ray passes it by name.
    monkeypatch.setattr("tuning.execution.worker.PortableFunction", lambda function: function)
    runner = tuner_of(_slow, trials=2, slots=1, limits={"crashes_before_quarantine": 1})
    with pytest.raises(
        RunError, match=r"keep crashing before they record a result: .*ModuleNotFoundError: No module named"
    ):
        runner.run(str(tmp_path / "run"), progress=False)


def test_the_first_signal_is_a_wish_the_second_an_order_and_the_third_an_exception() -> None:
    with Signals() as signals:
        ordered = threading.Event()
        signals.order = ordered.set
        os.kill(os.getpid(), signal.SIGINT)
        assert signals.received == signal.SIGINT
        assert not ordered.is_set()
        os.kill(os.getpid(), signal.SIGTERM)
        assert ordered.wait(10)
        with pytest.raises(RunInterrupted) as stopped:
            os.kill(os.getpid(), signal.SIGTERM)
        assert stopped.value.exit_code == 143
        assert isinstance(stopped.value, KeyboardInterrupt)


def test_a_used_up_budget_leaves_reasons_and_the_rest_for_a_resume(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run, begun = str(tmp_path / "run"), count(1)

    def takes_long(config: dict[str, float], seed: int) -> float:
        time.sleep(2.0 if next(begun) == 4 else 0.0)
        return valley(config, seed)

    runner = tuner_of(takes_long, trials=60, time_budget=2.0)
    runner.timing = Timing(parts_s=0.0)
    result = runner.run(run, **QUIET)
    assert 0 < len(result.trial_records) < 60
    best = min(record.score for record in result.trial_records)
    said = [f"not finished: the time budget (2s) is spent; resume with a larger one; best so far {best:.4g}"]
    assert list(result.leaderboard()["reason"]) == list(RunResult(run).leaderboard()["reason"]) == said
    assert said[0] in (Path(run) / "leaderboard.csv").read_text()
    assert f"from the run's beginning: TuneRunner(…, time_budget=…).run({run!r}, resume=True)" in caplog.text
    again = runner.run(run, resume=True, **QUIET)  # the budget is the run's, not the attempt's
    assert len(again.trial_records) <= len(result.trial_records) + 2
    more = tuner_of(takes_long, trials=60, time_budget="10m")
    assert len(more.run(run, resume=True, **QUIET).trial_records) == 60


def test_an_owner_that_was_replaced_stops_and_says_so(tmp_path: Path) -> None:
    run = tmp_path / "run"
    runner = tuner_of(_slow, trials=400, search_space=SPACE)
    runner.timing = Timing(heartbeat_s=0.02, parts_s=0.1)
    directory = RunDirectory(str(run))

    def take() -> None:
        owner = newest_claimed(directory)
        assert owner is not None
        claim(directory, owner.number + 1, (), 1, 0.0)

    with _once_recorded(run, take), pytest.raises(RunOwnedError, match=r"was taken over by .*, which believed this"):
        runner.run(str(run), **QUIET)
    assert not (run / "leaderboard.csv").exists()
