"""The progress line: how many trials there will be, and how long they will take."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from builders import definition, write_customers

from tuning import TuneRunner
from tuning.driver import runner
from tuning.driver.progress import Pace, Progress, Report
from tuning.timing import Timing


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_estimate_waits_until_there_is_a_pace() -> None:
    clock = Clock()
    bar = Progress(n_trials=1010, n_studies=101, shown=False, clock=clock)
    clock.now = 40.0  # Ray and the workers have started
    for worker in range(10):  # whose first reports come all at once
        bar({"part": f"first-{worker}", "trials": 1})
    assert bar.left == ""
    clock.now = 44.0
    bar({"part": "a", "trials": 50})
    assert bar.left == ""
    clock.now = 50.0
    bar({"part": "b", "trials": 41})
    assert bar.left == ", 2 min left"
    bar({"part": "c", "trials": 909})
    assert bar.left == ""


def test_trials_of_customers_who_can_have_none_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    class Watched(Progress):
        def __call__(self, result: Report) -> None:
            super().__call__(result)
            seen.append((self.done_trials, self.n_trials))

    monkeypatch.setattr(runner, "Progress", Watched)
    write_customers(tmp_path / "data", 3)
    for name in ("c0001", "c0002"):
        pd.read_csv(tmp_path / "data" / f"{name}.csv").head(2).to_csv(tmp_path / "data" / f"{name}.csv", index=False)
    asked = TuneRunner(**definition(tmp_path / "data"))
    asked.run(str(tmp_path / "run"), progress=False, in_process=True)
    assert asked.plan().n_trials == 12
    assert seen[-1] == (4, 4)


def test_a_resumed_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bars: list[Progress] = []

    class Kept(Progress):
        def __enter__(self) -> Progress:
            bars.append(self)
            assert self.done_trials == (4 if len(bars) == 2 else 0)
            return super().__enter__()

    monkeypatch.setattr(runner, "Progress", Kept)
    write_customers(tmp_path / "data", 1)
    TuneRunner(**definition(tmp_path / "data")).run(str(tmp_path / "run"), progress=False, in_process=True)
    TuneRunner.resume(str(tmp_path / "run"), progress=False, in_process=True, trials=6)
    assert [(bar.done_trials, bar.n_trials) for bar in bars] == [(4, 4), (6, 6)]


def test_the_rest_is_judged_by_the_pace_so_far() -> None:
    clock = Clock()
    bar = Progress(n_trials=100, n_studies=1, shown=False, done_trials=20, clock=clock)
    pace = Pace(bar, Timing(first_trial_s=3.0))
    clock.now = 2.9
    bar({"part": "a", "trials": 1})
    assert not pace.slower_than(8.0)  # it has waited for libraries
    clock.now = 3.9
    bar({"part": "b", "trials": 8})
    assert pace.slower_than(8.0)  # 71 more, 8 per second
    assert not pace.slower_than(9.0)
    clock.now = 4.9
    bar({"part": "c", "trials": 63})
    assert not pace.slower_than(8.0)
    clock.now = 13.0  # nothing has come since
    assert pace.slower_than(8.0)


def test_a_first_trial_that_takes_long_is_a_slow_one() -> None:
    clock = Clock()
    bar = Progress(n_trials=100, n_studies=1, shown=False, clock=clock)
    pace = Pace(bar, Timing(first_trial_s=3.0))
    clock.now = 2.9
    assert not pace.slower_than(8.0)
    clock.now = 3.1
    assert pace.slower_than(8.0)
    bar({"part": "a", "trials": 1})
    assert not pace.slower_than(8.0)
    clock.now = 4.2  # more than a second for the next
    assert pace.slower_than(8.0)
