"""The progress: how much there will be, and what has come of it so far."""

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
import pyarrow.parquet as pq
import pytest
from builders import definition, tuner_of, write_customers

from tuning import RunResult, TuneRunner
from tuning.driver import display, session
from tuning.driver.display import Display
from tuning.errors import DefinitionError
from tuning.execution.reports import StepReport, TrialLength, WorkerReport
from tuning.records.parts import ENDING, PartWritten
from tuning.runs.progress import Counter, Progress, read_progress
from tuning.steps import Step


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_line_says_what_has_come_of_the_run_so_far() -> None:
    clock = Clock()
    counter = Counter(Progress(trials=40, studies=4), work=44.0, clock=clock, doing="starting Ray")
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


@pytest.mark.parametrize(("gain", "said"), [(12.34, "+12.3 %"), (-50.0, "-50 %"), (-0.0, "+0 %")])
def test_of_an_error_the_median_gain_is_in_percent(gain: float, said: str) -> None:
    counter = Counter(Progress(trials=40, studies=4, relative=True))
    counter(PartWritten("a", studies=3, gains=(gain, 900.0, -900.0)))
    assert f"median gain {said}" in str(counter.now)
    assert (counter.now.to_dict()["median_gain"], counter.now.relative) == (gain, True)


def test_while_a_last_fit_goes_on_that_is_said() -> None:
    one = Counter(Progress(trials=5, studies=1))
    assert str(one.now) == "0/5 trials"
    one(PartWritten("trials", trials=5))
    assert str(one.now) == "5/5 trials, the last fit goes on"
    one(PartWritten("study", studies=1))
    assert str(one.now) == "5/5 trials"
    many = Counter(Progress(trials=20, studies=4))
    many(PartWritten("trials", trials=19, studies=1))
    assert str(many.now) == "1/4 customers, 19 trials"
    many(PartWritten("trial", trials=1))
    assert str(many.now) == "1/4 customers, 20 trials, 3 last fits go on"
    many.settle()  # the last reports of Ray's workers may come after their end
    assert str(many.now) == "4/4 customers, 20 trials"
    objective = Counter(Progress(trials=5, studies=1, noun="study"))
    objective(PartWritten("trials", trials=5))
    assert str(objective.now) == "5/5 trials, choosing the winner"


def test_workers_have_started_with_the_first_step_of_a_trial() -> None:
    counter = Counter(Progress(trials=9, studies=1), doing="starting workers")
    counter(StepReport(Step(1, 0.5), 0.1, 0.1, TrialLength(9, True, True, 9)))
    assert str(counter.now) == "0/9 trials"


def test_a_run_of_one_study_says_its_best_score() -> None:
    counter = Counter(Progress(trials=9, studies=1, noun="study"), smaller=True)
    counter(PartWritten("a", trials=4, best=0.25))
    counter(PartWritten("b", trials=4, best=0.5))
    assert str(counter.now) == "8/9 trials, best 0.25"
    assert repr(counter.now) == "Progress(8/9 trials, best 0.25)"


@pytest.mark.long
def test_the_median_of_a_million_gains_is_not_computed_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    counter, medians = Counter(Progress(trials=3_000_000, studies=1_000_000)), [0]
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
            seen.append((self.counted.done_trials, self.counted.trials))

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


def test_after_a_resume_the_median_gain_is_of_all_customers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, counters = list[float | None](), list[Counter]()

    class Kept(Counter):
        def __post_init__(self) -> None:
            super().__post_init__()
            counters.append(self)

        def add_ended(self, *ended: Any) -> None:
            super().add_ended(*ended)
            begun.append(self.now.median_gain)

    monkeypatch.setattr(session, "Counter", Kept)
    write_customers(tmp_path / "data", 2)
    TuneRunner(**definition(tmp_path / "data")).run(str(tmp_path / "run"), progress=False, in_process=True)
    write_customers(tmp_path / "data", 3)
    TuneRunner.resume(str(tmp_path / "run"), progress=False, in_process=True)
    assert begun == [counters[0].now.median_gain]


def test_in_a_narrow_window_a_figure_is_there_whole_or_not_at_all() -> None:
    counter = Counter(Progress(trials=1000, studies=300, relative=True))
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
    counter = Counter.for_plan(plan, recorded=plan.n_trials)
    assert counter.now.done_trials == counter.now.trials == 12
    assert counter.now.share == pytest.approx(4 / (4 + ENDING))
    for study in plan.studies:
        counter(PartWritten(study.id, studies=1, work=ENDING * study.budget.trial_work))
    assert counter.now.share == pytest.approx(1.0)


@pytest.mark.long
def test_what_is_counted_is_of_the_run_also_after_a_resume(tmp_path: Path) -> None:
    """Of a finished run that is resumed, of one with studies left, and of one with more trials."""

    def figures(**changes: Any) -> tuple[str, tuple[object, ...]]:
        TuneRunner.resume(run, progress=False, in_process=True, **changes)
        found = read_progress(run)
        assert found is not None
        told = (found.studies, found.done_studies, found.trials, found.done_trials, found.no_model, found.share)
        return str(found).partition(" customers, ")[0], told

    write_customers(tmp_path / "data", 3)
    (tmp_path / "data" / "tiny.csv").write_text("a,b,c,y\n1,2,3,4\n")
    run = tmp_path / "run"
    result = TuneRunner(**definition(tmp_path / "data", trials=4)).run(run, progress=False, in_process=True)
    whole = result.summary()
    assert (whole["customers"], whole["trials"]) == (4, 12)
    finished = ("4/4", (4, 4, 12, 12, 1, 1.0))
    assert figures() == finished
    last = sorted(run.glob("records/*/studies-*"))[-1]
    left = len(pq.read_table(last))
    last.unlink()
    assert left
    assert figures() == finished
    assert figures(trials=6) == ("4/4", (4, 4, 18, 18, 1, 1.0))
    assert RunResult(run).summary()["trials"] == 18


def test_failed_trials_of_earlier_owners_are_counted(tmp_path: Path) -> None:
    def fails(config: dict[str, float], seed: int) -> float:
        if config["x"] > 0.5:
            raise ValueError("too large")
        return config["x"]

    runner = tuner_of(fails, trials=6)
    runner.run(tmp_path / "run", progress=False, in_process=True)
    failed = read_progress(tmp_path / "run")
    assert failed is not None
    assert failed.failed_trials > 0
    runner.run(tmp_path / "run", progress=False, in_process=True, resume=True)
    again = read_progress(tmp_path / "run")
    assert again is not None
    assert (again.failed_trials, again.done_trials, again.term) == (failed.failed_trials, 6, 2)


def test_where_nobody_watches_there_is_a_line_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    counter = Counter(Progress(trials=10, studies=2), clock=clock)
    way = display._Lines(display.UNWATCHED_S, lambda progress: f"{progress.seconds:g} {progress}")
    counter.doing = "starting Ray"
    for clock.now in range(65):
        counter.doing = "" if clock.now > 5 else counter.doing
        way(counter.now, False)
    way(counter.now, True)
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
    counter = Counter(Progress(trials=3, studies=1))
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
    counter = Counter(Progress(trials=3, studies=1))
    with Display(counter):
        counter(PartWritten("a", trials=3, studies=1))
    shown = capsys.readouterr().err
    assert "\r" not in shown
    assert shown.endswith("3/3 trials\n")


def test_a_run_begins_while_another_thread_is_half_through_importing_ipython(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "IPython", ModuleType("IPython"))
    counter = Counter(Progress(trials=3, studies=1))
    with Display(counter):
        counter(PartWritten("a", trials=3, studies=1))
    assert capsys.readouterr().err.endswith("3/3 trials\n")


def test_a_terminal_without_a_size_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()  # 0 x 0, as a program makes one
    with open(theirs, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        counter = Counter(Progress(trials=3, studies=1))
        with Display(counter):
            counter(PartWritten("a", trials=3, studies=1))
        shown = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "3/3 trials" in shown
