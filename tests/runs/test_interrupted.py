"""A run that somebody stops, or that cannot start: what is said, in whose language, and what is returned."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from builders import definition, tuner_of, valley, write_customers
from commands import tuning

from tuning import RunResult, TuneRunner
from tuning.basics.timing import USUAL, Timing
from tuning.driver import session
from tuning.errors import NoModelError, RunError, RunInterrupted, StorageError
from tuning.execution.reports import WorkerReport
from tuning.records.parts import PartWritten
from tuning.runs.progress import Counter

QUIET = {"progress": False, "in_process": True}


def stopping_at(trial: int) -> Callable[..., float]:
    """An objective in whose n-th trial somebody presses Ctrl-C."""
    seen: list[float] = []

    def objective(config: dict[str, float]) -> float:
        seen.append(config["x"])
        if len(seen) == trial:
            os.kill(os.getpid(), signal.SIGINT)
        return config["x"] ** 2

    return objective


def test_an_interrupt_carries_the_unfinished_result(tmp_path: Path) -> None:
    runner = tuner_of(stopping_at(3), trials=6)
    runner.timing = Timing(parts_s=0.0)
    run = str(tmp_path / "run")
    with pytest.raises(RunInterrupted) as stopped:
        runner.run(run, **QUIET)
    assert str(stopped.value).endswith(f"Resume with: runner.run({run!r}, resume=True)")
    assert "stopped by Ctrl-C with 3 trials and 0 of 1 study recorded" in str(stopped.value)
    result = stopped.value.result
    assert isinstance(result, RunResult)
    assert len(result.trial_records) == 3
    best = f"{min(record.score for record in result.trial_records):.4g}"
    assert f"the best score so far is {best}. Resume with" in str(stopped.value)
    assert "unfinished, 1 study left" in repr(result)
    assert repr(result).endswith(f"; 3 trials recorded, best so far {best})")
    reason = f"not finished yet: resume the run; best so far {best}"
    assert list(result.leaderboard()["reason"]) == [reason]
    assert list(result.leaderboard()["status"]) == ["unfinished"]
    assert tuning("show", run, "search").stdout.startswith(f"customer 'search': {reason}; 3 trials")
    with pytest.raises(NoModelError, match=f"has no winner: {reason}"):
        result.best_config()
    assert "unfinished" not in repr(runner.run(run, resume=True, **QUIET))


def test_in_a_notebook_an_interrupted_run_returns_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "ps1", "In : ", raising=False)  # as Python and IPython set it where somebody types
    runner = tuner_of(stopping_at(2), trials=4)
    runner.timing = Timing(parts_s=0.0)
    result = runner.run(str(tmp_path / "run"), **QUIET)
    assert result.unfinished == 1
    assert len(result.trial_records) == 2
    assert "stopped by Ctrl-C" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ended", "says"),
    [(2, "with 8 trials and 2 of 3 studies recorded"), (3, "when all was recorded, 12 trials of 3 studies")],
)
def test_the_last_line_and_the_message_have_the_same_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ended: int, says: str
) -> None:
    """Also where a worker's last reports are not counted any more."""

    class Deaf(Counter):
        heard = 0

        def __call__(self, report: WorkerReport) -> None:
            Deaf.heard += isinstance(report, PartWritten) and report.studies
            if Deaf.heard == ended:
                os.kill(os.getpid(), signal.SIGINT)
            elif Deaf.heard < ended:
                super().__call__(report)

    monkeypatch.setattr(session, "Counter", Deaf)
    write_customers(tmp_path / "data", 3)
    runner = TuneRunner(**definition(tmp_path / "data"))
    runner.timing = Timing(parts_s=0.0)
    with pytest.raises(RunInterrupted, match=says) as stopped:
        runner.run(str(tmp_path / "run"), in_process=True)
    result = stopped.value.result
    assert isinstance(result, RunResult)
    assert (3 - result.unfinished, len(result.trial_records)) == (ended, 4 * ended)
    assert f" {ended}/3 customers, {4 * ended} trials, " in capsys.readouterr().err.splitlines()[-1]


def test_after_ctrl_c_the_line_says_no_more_that_ray_starts_but_that_the_run_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def starting(_: object, counter: Counter, __: object) -> bool:
        counter.doing = "starting Ray"
        os.kill(os.getpid(), signal.SIGINT)
        return False  # nothing is left to be done on Ray

    monkeypatch.setattr("tuning.driver.hosts.choice.may_fork", lambda _: True)
    monkeypatch.setattr("tuning.driver.hosts.forks.ForkHost.work", starting)
    with pytest.raises(RunInterrupted):
        tuner_of(valley, trials=4).run(str(tmp_path / "run"))
    assert "0/4 trials, stopping" in capsys.readouterr().err


def test_a_ray_that_does_not_start_is_one_line_that_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    def too_busy(**_: object) -> None:
        raise TimeoutError("The node was not up after 30 s\n" + 40 * "  File ray/node.py, line 1\n")

    monkeypatch.setattr(ray, "init", too_busy)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    write_customers(tmp_path / "data", 1)
    run = str(tmp_path / "run")
    with pytest.raises(RunError) as stopped:
        TuneRunner(**definition(tmp_path / "data")).run(run, progress=False)
    said = str(stopped.value)
    assert said.startswith("Ray did not start here: TimeoutError: The node was not up after 30 s. ")
    assert said.endswith(f"Then: TuneRunner.resume({run!r})")
    assert "\n" not in said


@pytest.mark.parametrize("in_process", [True, False], ids=["here", "forks"])
def test_a_run_whose_folder_is_deleted_stops_and_makes_nothing_of_it_anew(
    tmp_path: Path, in_process: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    monkeypatch.setattr("tuning.driver.hosts.ray.start_ray", lambda plan: pytest.fail("Ray was wanted"))

    def deletes(config: dict[str, float], seed: int) -> float:
        if any(run.glob("records/*/trials-*")):
            run.rename(tmp_path / "deleted")
        return valley(config, seed)

    runner = tuner_of(deletes, slots=1)
    runner.timing = replace(USUAL, parts_s=0.0)
    with pytest.raises(StorageError, match=r"run has been deleted while the run went on.*Start the run again"):
        runner.run(run, progress=False, in_process=in_process)
    assert not any(path.is_file() for path in run.rglob("*"))
