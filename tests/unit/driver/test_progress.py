"""The progress: how much there will be, what has come of it so far, and how long it will take."""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from builders import definition, tuner_of, write_customers

from tuning import TuneRunner
from tuning.basics.timing import Timing
from tuning.driver import display, session
from tuning.driver.display import Display
from tuning.driver.progress import Counter, Pace
from tuning.errors import DefinitionError
from tuning.records.parts import ENDING
from tuning.records.reports import PartWritten, StepReport, TrialLength, WorkerReport
from tuning.steps import Step
from tuning.study.study import TRIAL_ROWS


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_estimate_waits_until_there_is_a_pace() -> None:
    clock = Clock()
    counter = Counter(n_trials=1010, n_studies=101, work=1010, clock=clock)
    clock.now = 40.0  # Ray and the workers have started
    for worker in range(10):  # whose first reports come all at once
        counter(PartWritten(f"first-{worker}", trials=1, work=1))
    assert counter.now.seconds_left is None
    clock.now = 44.0
    counter(PartWritten("a", trials=50, work=50))
    assert counter.now.seconds_left is None
    clock.now = 50.0
    counter(PartWritten("b", trials=41, work=41))
    assert counter.now.seconds_left == pytest.approx(133.0, abs=0.1)
    assert "2 min left" in str(counter.now)
    counter(PartWritten("c", studies=101, work=909))
    assert counter.now.seconds_left is None


@pytest.mark.parametrize(
    ("trials", "each", "first"),
    [(1000, 0.5, 10.0), (40, 0.5, 5.0), (200, 4.0, 36.0), (9, 60.0, 120.0)],
    ids=["many reports: ten seconds", "a short run: a quarter of it", "slow trials: ten of them", "few and slow ones"],
)
def test_no_time_is_named_before_enough_has_come_to_judge_by(trials: int, each: float, first: float) -> None:
    clock = Clock()
    counter = Counter(n_trials=trials, n_studies=1, work=trials, clock=clock)
    said = dict[float, float]()
    for number in range(trials):
        clock.now = number * each
        counter(PartWritten(str(number), trials=1, work=1))
        if (left := counter.now.seconds_left) is not None:
            said[clock.now] = left
    assert min(said) == first < trials * each / 2
    assert all(left == pytest.approx((trials - 1) * each - at) for at, left in said.items())


def test_what_all_workers_report_at_once_is_no_pace() -> None:
    clock = Clock()
    counter = Counter(n_trials=1000, n_studies=1, work=1000, clock=clock)
    for worker in range(16):
        clock.now = worker / 20
        counter(PartWritten(f"first-{worker}", trials=1, work=1))
    for clock.now in (1.0, 5.0, 10.0, 20.0):
        assert counter.now.seconds_left is None


def test_while_other_workers_start_nothing_is_estimated_and_then_by_their_pace_alone() -> None:
    clock = Clock()
    counter = Counter(n_trials=200, n_studies=20, work=200, clock=clock, doing="starting")
    for clock.now in range(20):
        counter(PartWritten(f"fork-{clock.now}", trials=1, work=1))
    assert counter.now.seconds_left == pytest.approx(180.0)
    counter.doing = "starting Ray"
    clock.now = 30.0
    assert str(counter.now) == "0/20 customers, 20 trials, starting Ray"
    for clock.now in range(40, 60):
        assert counter.now.seconds_left is None or clock.now >= 45
        counter(PartWritten(f"ray-{clock.now}", trials=4, work=4))
    assert counter.now.seconds_left == pytest.approx(25.0)
    assert counter.now.rate == pytest.approx(4.0)


def test_while_a_last_fit_takes_longer_than_the_pace_says_no_time_is_named() -> None:
    clock = Clock()
    counter = Counter(n_trials=1000, n_studies=2, work=1004, clock=clock)
    for clock.now in range(101):
        counter(PartWritten(f"{clock.now}", trials=10 * (clock.now > 0), work=10 * (clock.now > 0)))
    counter(PartWritten("first", studies=1, work=2))
    for clock.now in (100.0, 101.0, 160.0, 1000.0, 10_000.0):
        assert counter.now.seconds_left is None
        assert "left" not in str(counter.now)
    resumed = Counter(n_trials=10, n_studies=1, work=12, done_trials=10, done_work=12, clock=clock)
    for clock.now in (0.0, 10.0):
        resumed(PartWritten(f"{clock.now}", trials=0, work=1))
    assert str(resumed.now) == "10/10 trials"


def test_between_two_reports_the_time_left_falls_until_it_is_over() -> None:
    """As while the largest customer's last fit goes on, and nobody else is left."""
    clock = Clock()
    counter = Counter(n_trials=100, n_studies=1, work=100, clock=clock)
    for clock.now in range(81):
        counter(PartWritten(f"{clock.now}", trials=1, work=1))
    said = []
    for clock.now in range(80, 100, 5):
        said.append(counter.now.seconds_left)
    assert said == [pytest.approx(19.0), pytest.approx(14.0), pytest.approx(9.0), pytest.approx(4.0)]
    clock.now = 100.0
    assert counter.now.seconds_left is None


@pytest.mark.parametrize("order", ["largest first", "smallest first", "as they come"])
def test_at_half_time_the_estimate_is_right_although_customers_differ_in_size(order: str) -> None:
    """A customer takes as long as its rows say, the largest a thousand times as long as the smallest."""
    rng = np.random.default_rng(1)
    rows = np.exp(rng.uniform(np.log(50), np.log(50_000), 200))
    rows = rows if order == "as they come" else np.sort(rows)[:: -1 if order == "largest first" else 1]
    trials, clock = 20, Clock()
    unit = TRIAL_ROWS + rows
    seconds = 1e-4 * unit * rng.lognormal(sigma=0.5, size=(trials + ENDING, len(rows)))  # of each trial, and the end
    counter = Counter(trials * len(rows), len(rows), float((trials + ENDING) * unit.sum()), clock=clock)
    total, said = seconds.sum(), None
    for customer, each in enumerate(unit):
        for trial in range(trials):
            clock.now += seconds[trial, customer]
            counter(PartWritten(f"{customer}-{trial}", trials=1, work=each))
            if said is None and clock.now >= total / 2:
                said = counter.now.seconds_left
        clock.now += seconds[trials:, customer].sum()
        counter(PartWritten(f"{customer}", studies=1, work=ENDING * each))
    assert said == pytest.approx(total / 2, rel=0.2)
    assert counter.now.share == pytest.approx(1.0)


def test_the_line_says_what_has_come_of_the_run_so_far() -> None:
    clock = Clock()
    counter = Counter(n_trials=40, n_studies=4, work=44.0, clock=clock, doing="starting Ray")
    assert str(counter.now) == "0/4 customers, 0 trials, starting Ray"
    counter(PartWritten("a", trials=10, work=10, failed=2, best=0.5))
    clock.now = 10.0
    counter(PartWritten("b", trials=10, work=10, failed=0, best=0.7))
    counter(PartWritten("c", studies=2, work=2, unspent=5, no_model=1, gains=(0.25,)))
    counter(PartWritten("d", studies=1, work=1, unspent=0, no_model=0, gains=(0.75,)))
    counter(PartWritten("d", studies=1, work=1, unspent=0, no_model=0, gains=(0.75,)))  # told twice
    assert str(counter.now) == (
        "3/4 customers, 20 trials, 16 s left, median gain +0.5, 1 without a model, 2 trials failed, 1 trials/s"
    )


@pytest.mark.parametrize(("gain", "said"), [(0.1234, "+12.3 %"), (-0.5, "-50 %"), (-0.0, "+0 %")])
def test_of_an_error_the_median_gain_is_in_percent(gain: float, said: str) -> None:
    counter = Counter(n_trials=40, n_studies=4, relative=True)
    counter(PartWritten("a", studies=3, gains=(gain, 9.0, -9.0)))
    assert f"median gain {said}" in str(counter.now)
    assert (counter.now.to_dict()["median_gain"], counter.now.relative) == (gain, True)


def test_workers_have_started_with_the_first_step_of_a_trial() -> None:
    counter = Counter(n_trials=9, n_studies=1, doing="starting workers")
    counter(StepReport(Step(1, 0.5), 0.1, 0.1, TrialLength(9, True, True, 9)))
    assert str(counter.now) == "0/9 trials"


def test_a_run_of_one_study_says_its_best_score() -> None:
    counter = Counter(n_trials=9, n_studies=1, noun="study", smaller=True)
    counter(PartWritten("a", trials=4, best=0.25))
    counter(PartWritten("b", trials=4, best=0.5))
    assert str(counter.now) == "8/9 trials, best 0.25"
    assert repr(counter.now) == "Progress(8/9 trials, best 0.25)"


@pytest.mark.long
def test_the_median_of_a_million_gains_is_not_computed_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, medians = Counter(n_trials=3_000_000, n_studies=1_000_000), [0]
    median = np.median
    monkeypatch.setattr(np, "median", lambda values: medians.append(len(values)) or median(values))
    for part in range(6000):
        counter(PartWritten(str(part), studies=166, gains=(part / 6000,) * 166))
        assert counter.now.median_gain == pytest.approx(part / 12000, abs=0.02)
    assert len(medians) < 700
    assert sum(medians) < 120_000_000  # a second's work


def run_watched(monkeypatch: pytest.MonkeyPatch, search: TuneRunner, run: Path) -> list[tuple[int, int]]:
    """How many trials were done, of how many, after each report of a run in this process."""
    seen: list[tuple[int, int]] = []

    class Watched(Counter):
        def __call__(self, result: WorkerReport) -> None:
            super().__call__(result)
            seen.append((self.done_trials, self.n_trials))

    monkeypatch.setattr(session, "Counter", Watched)
    search.run(str(run), progress=False, in_process=True)
    return seen


def test_trials_of_customers_who_can_have_none_do_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_customers(tmp_path / "data", 3)
    for name in ("c0001", "c0002"):
        pd.read_csv(tmp_path / "data" / f"{name}.csv").head(2).to_csv(tmp_path / "data" / f"{name}.csv", index=False)
    asked = TuneRunner(**definition(tmp_path / "data"))
    assert asked.plan().n_trials == 12
    assert run_watched(monkeypatch, asked, tmp_path / "run")[-1] == (4, 4)


def test_a_resumed_run_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made, begun = list[Counter](), list[float | None]()

    class Kept(Counter):
        def __post_init__(self) -> None:
            super().__post_init__()
            made.append(self)
            begun.append(self.now.best)
            assert self.done_trials == (4 if len(made) == 2 else 0)

    monkeypatch.setattr(session, "Counter", Kept)
    write_customers(tmp_path / "data", 1)
    TuneRunner(**definition(tmp_path / "data")).run(str(tmp_path / "run"), progress=False, in_process=True)
    TuneRunner.resume(str(tmp_path / "run"), progress=False, in_process=True, trials=6)
    assert [(counter.done_trials, counter.n_trials) for counter in made] == [(4, 4), (6, 6)]
    assert [counter.now.share for counter in made] == pytest.approx([1.0, 1.0])
    assert begun == [None, made[0].now.best]


def test_after_a_resume_the_median_gain_is_of_all_customers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, counters = list[float | None](), list[Counter]()

    class Kept(Counter):
        def __post_init__(self) -> None:
            super().__post_init__()
            counters.append(self)
            begun.append(self.now.median_gain)

    monkeypatch.setattr(session, "Counter", Kept)
    write_customers(tmp_path / "data", 2)
    TuneRunner(**definition(tmp_path / "data")).run(str(tmp_path / "run"), progress=False, in_process=True)
    write_customers(tmp_path / "data", 3)
    TuneRunner.resume(str(tmp_path / "run"), progress=False, in_process=True)
    assert begun == [None, counters[0].now.median_gain]


def test_in_a_narrow_window_a_figure_is_there_whole_or_not_at_all() -> None:
    counter = Counter(1000, 300, relative=True)
    counter(PartWritten("a", trials=40, studies=10, work=5, no_model=2, failed=3, gains=(0.1234,)))
    whole = str(counter.now).split(", ")
    assert len(whole) > 3
    for width in range(10, 80):
        shown = counter.now.line(width).split(", ")
        assert shown == whole[: len(shown)]
        assert len(", ".join(shown)) <= width or len(shown) == 1


def test_where_all_trials_are_recorded_the_last_fits_are_still_to_come(tmp_path: Path) -> None:
    """They are what a resumed run does then, and take as long as some trials."""
    write_customers(tmp_path, 3)
    plan = TuneRunner(**definition(tmp_path)).plan()
    counter = Counter.of(plan, recorded=plan.n_trials)
    assert counter.now.done_trials == counter.now.trials == 12
    assert counter.now.share == pytest.approx(4 / (4 + ENDING))
    for study in plan.studies:
        counter(PartWritten(study.id, studies=1, work=ENDING * study.budget.trial_work))
    assert counter.now.share == pytest.approx(1.0)


def test_where_nobody_watches_there_is_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    counter = Counter(n_trials=10, n_studies=2, clock=clock)
    way = display._WrittenLines(display.UNWATCHED_S, lambda progress: f"{progress.seconds:g} {progress}")
    counter.doing = "starting Ray"
    for clock.now in range(65):
        counter.doing = "" if clock.now > 5 else counter.doing
        way.draw(counter.now, last=False)
    way.draw(counter.now, last=True)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0] == "0 0/2 customers, 0 trials, starting Ray"
    assert [line.split()[0] for line in shown] == ["0", "30", "60", "64"]


def test_jsonl_is_an_object_per_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = tuner_of(lambda config: config["x"] ** 2, trials=5)
    search.run(str(tmp_path / "run"), progress="jsonl", in_process=True)
    said = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    last: dict[str, Any] = said[-1]
    assert (last["done_trials"], last["trials"], last["done_studies"], last["share"]) == (5, 5, 1, 1.0)
    assert last["best"] >= 0


def test_a_style_that_there_is_not_is_refused_before_anything_runs(tmp_path: Path) -> None:
    with pytest.raises(DefinitionError, match="progress: 'loud' is not one of line, jsonl, none"):
        tuner_of(lambda config: 1.0).run(str(tmp_path / "run"), progress="loud")
    assert not (tmp_path / "run").exists()


def test_in_a_terminal_a_line_stays_one_and_a_warning_has_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    counter = Counter(n_trials=3, n_studies=1)
    with Display(counter):
        logging.getLogger("tuning.driver.runner").warning("a worker was killed")
        counter(PartWritten("a", trials=3, studies=1))
    shown = capsys.readouterr().err
    assert "a worker was killed" in [line.strip() for line in shown.splitlines()]
    assert "3/3 trials" in shown.rstrip("\n").splitlines()[-1]
    assert shown.count("\n") == 2


def test_a_terminal_that_cannot_go_back_in_a_line_gets_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    importlib.import_module("ipykernel.kernelapp")  # by whatever code: that makes no notebook
    counter = Counter(n_trials=3, n_studies=1)
    with Display(counter):
        counter(PartWritten("a", trials=3, studies=1))
    shown = capsys.readouterr().err
    assert "\r" not in shown
    assert shown.endswith("3/3 trials\n")


def test_a_run_begins_while_another_thread_is_half_through_importing_ipython(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    counter = Counter(n_trials=3, n_studies=1)
    with Display(counter):
        counter(PartWritten("a", trials=3, studies=1))
    assert capsys.readouterr().err.endswith("3/3 trials\n")


def test_a_terminal_without_a_size_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()  # 0 x 0, as a program makes one
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        counter = Counter(n_trials=3, n_studies=1)
        with Display(counter):
            counter(PartWritten("a", trials=3, studies=1))
        shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "3/3 trials" in shown


def test_the_rest_is_judged_by_the_pace_so_far() -> None:
    clock = Clock()
    counter = Counter(n_trials=100, n_studies=1, done_trials=20, clock=clock)
    pace = Pace(counter, Timing(first_trial_s=3.0))
    clock.now = 2.9
    counter(PartWritten("a", trials=1))
    assert not pace.slower_than(8.0)  # it has waited for libraries
    clock.now = 3.9
    counter(PartWritten("b", trials=8))
    assert pace.slower_than(8.0)  # 71 more, 8 per second
    assert not pace.slower_than(9.0)
    clock.now = 4.9
    counter(PartWritten("c", trials=63))
    assert not pace.slower_than(8.0)
    clock.now = 13.0  # nothing has come since
    assert pace.slower_than(8.0)


def test_a_first_trial_that_takes_long_is_a_slow_one() -> None:
    clock = Clock()
    counter = Counter(n_trials=100, n_studies=1, clock=clock)
    pace = Pace(counter, Timing(first_trial_s=3.0))
    clock.now = 2.9
    assert not pace.slower_than(8.0)
    clock.now = 3.1
    assert pace.slower_than(8.0)
    counter(PartWritten("a", trials=1))
    assert not pace.slower_than(8.0)
    clock.now = 4.2  # more than a second for the next
    assert pace.slower_than(8.0)
