"""A run in the background of a program: looked at while it goes on, waited for, cancelled."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from builders import tuner_of

from tuning import TuneRunner
from tuning.basics.timing import Timing
from tuning.driver.background import RunHandle
from tuning.errors import PlanError, RunError


class Held:
    """An objective that stops before its third trial until a test lets it go on."""

    def __init__(self) -> None:
        self.trials, self.reached, self.go_on = 0, threading.Event(), threading.Event()

    def __call__(self, config: dict[str, float]) -> float:
        self.trials += 1
        if self.trials == 3:
            self.reached.set()
            assert self.go_on.wait(60)
        return config["x"] ** 2


@pytest.fixture
def held(tmp_path: Path) -> Held:
    return Held()


def start(held: Held, run: Path, **fields: object) -> object:
    search = tuner_of(held, trials=4, **fields)
    search.timing = Timing(parts_s=0.0)  # every trial is written at once
    return search.run(str(run), progress=False, in_process=True, background=True)


def test_it_is_looked_at_while_it_goes_on_and_waited_for(held: Held, tmp_path: Path) -> None:
    handle = start(held, tmp_path / "run")
    assert held.reached.wait(60)
    assert handle.running
    assert (handle.progress.done_trials, handle.progress.trials) == (2, 4)
    now = handle.leaderboard()
    assert (list(now["trials"]), list(now["status"])) == ([2], ["running"])
    assert handle.wait(0.0).unfinished == 1
    assert "2/4 trials, best" in repr(handle)
    best = f"{handle.progress.best:.4g}"
    assert f"not finished yet; best so far {best}" in handle._repr_html_()
    held.go_on.set()
    result = handle.wait()
    assert (result.unfinished, len(result.trial_records), handle.running) == (0, 4, False)
    assert list(now) == list(handle.leaderboard()) == list(result.leaderboard())


def test_one_that_is_cancelled_is_unfinished_and_can_be_resumed(held: Held, tmp_path: Path) -> None:
    handle = start(held, tmp_path / "run")
    assert held.reached.wait(60)
    handle.cancel()
    assert repr(handle).endswith("stopping)")
    held.go_on.set()
    assert handle.wait().unfinished == 1
    assert "ended, 3/4 trials" in repr(handle)
    assert "stopping" not in repr(handle)
    result = tuner_of(held, trials=4).run(str(tmp_path / "run"), progress=False, in_process=True, resume=True)
    assert (result.unfinished, held.trials) == (0, 4)  # each ran once


def test_a_resume_goes_on_in_the_background(tmp_path: Path) -> None:
    run, held = tmp_path / "run", Held()
    held.go_on.set()
    tuner_of(held, trials=2).run(run, progress=False, in_process=True)
    handle = TuneRunner.resume(run, trials=4, progress=False, in_process=True, background=True, objective=held)
    assert isinstance(handle, RunHandle)
    assert len(handle.wait().trial_records) == 4


def test_a_process_works_on_one_run_at_a_time(held: Held, tmp_path: Path) -> None:
    handle = start(held, tmp_path / "run")
    assert held.reached.wait(60)
    for background in (True, False):
        with pytest.raises(RunError, match=r"run goes on in the background .* wait\(\), or end it with cancel\(\)"):
            tuner_of(held).run(str(tmp_path / "other"), progress=False, background=background)
    assert not (tmp_path / "other").exists()
    held.go_on.set()
    handle.wait()


def test_what_is_wrong_is_raised_where_it_is_started_and_what_goes_wrong_where_it_is_waited_for(
    held: Held, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PlanError):
        tuner_of(held, scheduler="pbt").run(str(tmp_path / "refused"), background=True)

    def fails(*_: object) -> None:
        raise RunError("the workers keep crashing")

    monkeypatch.setattr("tuning.driver.session.RunSession._work", fails)
    handle = start(held, tmp_path / "run")
    with pytest.raises(RunError, match="keep crashing"):
        handle.wait()
    assert "failed: the workers keep crashing" in repr(handle)


def test_ctrl_c_ends_the_waiting_and_not_the_run(held: Held, tmp_path: Path) -> None:
    handle = start(held, tmp_path / "run")
    assert held.reached.wait(60)
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            _wait_interrupted(handle)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert handle.running
    held.go_on.set()
    assert handle.wait().unfinished == 0


def _wait_interrupted(handle: object) -> None:
    threading.Timer(0.2, signal.pthread_kill, [threading.get_ident(), signal.SIGUSR1]).start()
    handle.wait()


def test_what_takes_its_time_at_the_end_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    known = threading.Event()

    def write(*_: object, **__: object) -> None:
        assert known.wait(60)
        said.append(handle.progress.doing)

    monkeypatch.setattr("tuning.runs.report.page.write_report", write)
    search = tuner_of(lambda config: config["x"], trials=1, report=True)
    handle = search.run(str(tmp_path / "run"), progress=False, in_process=True, background=True)
    known.set()
    handle.wait()
    assert (said, handle.progress.doing) == (["writing the report"], "")
