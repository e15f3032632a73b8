"""Limits of a study, and what follows when Tune itself fails: a new Tuner, and an end with the reason."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from builders import definition, write_customers
from chaos import hazards, write_hazards
from mlflow_records import trial as trial_of

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.definition.customer_limits import Limits
from tuning.execution.crash_log import Nodes, ProgressMarker
from tuning.execution.jobs import TrialJob
from tuning.execution.limits import MemoryLimit, TimeLimits, TrialTimeoutError, study_limit
from tuning.execution.packed import work_batch
from tuning.execution.reports import report_in, worker_died
from tuning.execution.spread.worker import run_trial
from tuning.execution.worker import WorkerRun
from tuning.notes import texts
from tuning.runs.begin import begin
from tuning.steps import Step
from tuning.study.interfaces import Rule

QUIET = {"progress": False}


class _Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("tuning.execution.limits.time.monotonic", lambda: self.now)


def test_a_trial_that_reports_steps_fails_at_its_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock(monkeypatch)

    def training() -> Iterator[Step]:
        clock.now += 60
        yield Step(1, 1.0)
        clock.now += 41
        yield Step(2, 2.0)

    limits = Limits(trial_seconds=100.0)
    steps = TimeLimits(limits).limited(training)()
    next(iter(steps))
    clock.now += 1000  # other trials take their turn
    with pytest.raises(TrialTimeoutError, match=r"it took longer than limits\.trial_seconds: 100"):
        next(iter(steps))
    for enough in (TimeLimits(Limits()), TimeLimits(limits, grace=10.0)):
        assert len(list(enough.limited(training)())) == 2


def test_only_the_first_study_of_a_process_has_more_time_for_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimeLimits, "_studies", 0)
    for grace in (10.0, 0.0):  # two batches, the same process
        with (
            (tmp_path / "stack").open("wb") as stack,
            TimeLimits(Limits(trial_seconds=100), stack, grace=10.0) as guard,
        ):
            guard.study()
            assert guard.grace == grace


@pytest.mark.parametrize(
    ("loading", "grace"),
    [((), 10.0), ((math.inf,), 10.0), ((0.5, math.inf, 1.0), 3.0), ((60.0,), 10.0)],
    ids=[
        "no crash before",
        "none in which libraries were loaded",
        "two in which they were",
        "slower than ever allowed",
    ],
)
def test_a_worker_that_stands_in_has_as_long_for_loading_as_those_before_it_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loading: tuple[float, ...], grace: float
) -> None:
    monkeypatch.setattr(TimeLimits, "_studies", 0)
    monkeypatch.setattr(TimeLimits, "loading", math.inf)
    armed: list[float] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda seconds, **_: armed.append(seconds))
    clock = _Clock(monkeypatch)
    monkeypatch.setattr("builders.tick", lambda: setattr(clock, "now", clock.now + 1))
    write_hazards(tmp_path / "data", 2, {})
    fields: dict[str, Any] = {"limits": {"trial_seconds": 100}, "objective": "builders:grows", "trials": 3}
    owned = begin(hazards(tmp_path / "data", slots=1, **fields).definition, str(tmp_path / "run"))
    for number, seconds in enumerate(loading):
        left = ProgressMarker(owned.directory, owned.term, 0)  # of a worker that died
        left.at(0, number)
        left.loaded(seconds)
    work_batch(WorkerRun.from_owned(owned), 0, lambda _: None, Nodes())
    owned.lease.release()
    assert armed[0] == pytest.approx(1.1 * (126 + grace))


def test_what_a_worker_took_to_load_its_libraries_is_its_first_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TimeLimits, "_studies", 0)
    monkeypatch.setattr(TimeLimits, "loading", math.inf)
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda seconds, **_: None)
    clock = _Clock(monkeypatch)
    with (tmp_path / "stack").open("wb") as stack, TimeLimits(Limits(trial_seconds=100), stack, grace=10.0) as guard:
        for seconds in (4.0, 7.0):
            guard.study()
            guard.trial()
            clock.now += seconds
            guard.final_fit()
            assert guard.loading == 4.0


def slow_after(trials: int, seconds: float) -> Callable[..., list[Rule]]:
    """In place of `study_limit`: the clock jumps after so many looks at it."""

    def built(limits: Limits) -> list[Rule]:
        looks = count()
        return study_limit(limits, clock=lambda: seconds if next(looks) >= trials else 0.0)

    return built


@pytest.mark.parametrize("scheduler", ["fifo", "asha", "hyperband", "pbt"])
@pytest.mark.parametrize("nodes", [Nodes(), None], ids=["packed", "in_process"])
def test_a_study_whose_time_is_up_keeps_what_it_has_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scheduler: str, nodes: Nodes | None
) -> None:
    """Also under schedulers that pause trials, and without Ray; the default configuration is there in any case."""
    monkeypatch.setattr("tuning.execution.worker.study_limit", slow_after(8, 901.0))
    write_hazards(tmp_path / "data", 1, {})
    fields: dict[str, Any] = {"scheduler": scheduler, "limits": {"study_seconds": 900}, "objective": "builders:grows"}
    owned = begin(hazards(tmp_path / "data", algorithm="random", steps=4, **fields).definition, str(tmp_path / "run"))
    work_batch(WorkerRun.from_owned(owned), 0, lambda _: None, nodes)
    owned.lease.release()
    record = RunResult(owned.directory).study_records[0]
    assert record.status == "ok"
    assert 1 <= record.trials < 10
    why = "it took longer than limits.study_seconds: 900"
    assert texts(record.notes) == f"{why}; {record.trials} of 10 trials were run"


def test_a_trial_that_takes_too_long_fails_in_process_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock(monkeypatch)
    monkeypatch.setattr("builders.tick", lambda: setattr(clock, "now", clock.now + 30))
    write_hazards(tmp_path / "data", 1, {})
    fields: dict[str, Any] = {"limits": {"trial_seconds": 100}, "objective": "builders:grows", "steps": 4, "trials": 2}
    result = hazards(tmp_path / "data", **fields).run(str(tmp_path / "run"), in_process=True, **QUIET)
    for trial in result.trial_records:
        assert str(trial.reason) == "TrialTimeoutError: it took longer than limits.trial_seconds: 100"
        assert len(trial.steps) == 3


def test_without_a_limit_a_trial_that_makes_no_step_ends_its_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    armed: list[float] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda seconds, **_: armed.append(seconds))
    clock = _Clock(monkeypatch)
    slow = replace(trial_of(), seconds=100.0)
    with (tmp_path / "stack").open("wb") as stack, TimeLimits(Limits(), stack) as guard:
        guard.study(600.0)
        guard.part()
        assert armed.pop() == pytest.approx(660)
        steps = iter(guard.each_step(lambda: iter([Step(1, 1.0), Step(2, 2.0)]))())
        next(steps)
        clock.now += 599
        next(steps)  # it made a step, so it does not hang, and has as long again
        assert armed.pop() == pytest.approx(660)
        guard.took([slow])
        guard.part()
        assert armed.pop() == pytest.approx(5500)


def test_a_default_run_is_watched_from_its_first_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[float] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda seconds, **_: armed.append(seconds))
    write_customers(tmp_path / "data", 1)
    owned = begin(TuneRunner(**definition(tmp_path / "data")).definition, str(tmp_path / "run"))
    work_batch(WorkerRun.from_owned(owned), 0, lambda _: None, Nodes())
    owned.lease.release()
    assert 600 < armed[0] < 700


@pytest.mark.parametrize(
    ("objective", "limits", "said"),
    [
        (
            "builders:grows",
            {"trial_seconds": 100},
            "TrialTimeoutError: it took longer than limits.trial_seconds: 100",
        ),
        ("lone_worker:hunger", {"memory_gb": 0.5}, "MemoryError"),
    ],
)
def test_a_spread_trial_has_the_limits_of_time_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, objective: str, limits: dict[str, float], said: str
) -> None:
    clock = _Clock(monkeypatch)
    monkeypatch.setattr("builders.tick", lambda: setattr(clock, "now", clock.now + 30))
    reports: list[Any] = []
    monkeypatch.setattr("ray.tune.report", lambda result, **_: reports.append(report_in(result)))
    monkeypatch.setattr("ray.tune.get_checkpoint", lambda: None)
    write_hazards(tmp_path / "data", 1, {})
    fields: dict[str, Any] = {"limits": limits, "objective": objective, "steps": 4, "placement": "spread"}
    owned = begin(hazards(tmp_path / "data", **fields).definition, str(tmp_path / "run"))
    job = TrialJob(study="c0000", trial=1, config={"x": 1.0, "y": 0.0}, bundles=[])
    run_trial(WorkerRun.from_owned(owned, Timing(checkpoint_s=math.inf)), job)
    owned.lease.release()
    assert [report.step.step for report in reports[:-1]] == list(range(1, len(reports)))
    assert str(reports[-1].reason) == said


@pytest.mark.parametrize(
    ("text", "died"),
    [
        ("The actor died unexpectedly before finishing this task.\n\tclass_name: ImplicitFunc\n", True),
        (
            "Task was killed due to the node running low on memory.\nPID MEM(GB) COMMAND\n7 8.1 ray::ImplicitFunc\n",
            True,
        ),
        ("", True),
        ('Traceback (most recent call last):\n  File "a.py", line 1\nModuleNotFoundError: No module named x\n', False),
        ('ray::ImplicitFunc.train() (pid=7)\n  File "a.py", line 1\nOSError: no space\n', False),
    ],
)
def test_a_worker_that_died_is_told_from_one_that_could_not_begin(text: str, died: bool) -> None:
    assert worker_died(text) is died


def test_final_fits_may_take_as_long_as_a_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    armed: list[float] = []
    monkeypatch.setattr("faulthandler.dump_traceback_later", lambda seconds, **_: armed.append(seconds))
    clock = _Clock(monkeypatch)
    with (tmp_path / "stack").open("wb") as stack, TimeLimits(Limits(study_seconds=100), stack) as guard:
        guard.study()
        guard.part()
        clock.now += 120
        guard.part()
        assert armed == [126], "a trial has what is left of its study's time"
        for _ in range(3):
            guard.final_fit()
            clock.now += 120
        assert armed == [126] * 4


def test_a_default_limit_of_memory_leaves_the_other_runs_of_a_service_their_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tuning.execution.limits.free_memory", lambda: 100 * 2**30)
    alone = MemoryLimit(None, slots=2).limit
    monkeypatch.setenv("TUNING_MACHINE_SLOTS", "8")
    assert (alone, MemoryLimit(None, slots=2).limit) == (40 * 2**30, 10 * 2**30)
    assert MemoryLimit(3.0, slots=2).limit == 3 * 2**30
