"""Limits of a study, and what follows when Tune itself fails: a new Tuner, and an end with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from chaos import hazards, write_hazards

from tuning import RunResult
from tuning.definition.options import Limits
from tuning.execution.limits import TimeLimits, TrialTimeoutError
from tuning.execution.lost_nodes import worker_died
from tuning.execution.packed import Nodes, WorkerHooks, work_shard
from tuning.runs.begin import begin
from tuning.steps import Step

QUIET = {"progress": False}


class _Clock:
    """Seconds that pass only when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("tuning.execution.limits.time.monotonic", lambda: self.now)


def test_a_study_proposes_nothing_more_after_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock(monkeypatch)
    with (tmp_path / "stack").open("wb") as stack, TimeLimits(Limits(study_seconds=100), stack) as guard:
        guard.study()
        clock.now += 99
        assert guard.ended_by() == ""
        clock.now += 2
        assert guard.ended_by() == "it took longer than limits.study_seconds: 100"
        guard.study()
        assert guard.ended_by() == ""


def test_a_trial_that_reports_steps_fails_at_its_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock(monkeypatch)
    with (tmp_path / "stack").open("wb") as stack, TimeLimits(Limits(trial_seconds=100), stack) as guard:
        steps = guard.steps(lambda: iter([Step(1, 1.0), Step(2, 2.0)]), paused=False)()
        iterator = iter(steps)
        next(iterator)
        clock.now += 101
        with pytest.raises(TrialTimeoutError, match=r"it took longer than limits\.trial_seconds: 100"):
            next(iterator)


def test_only_the_first_study_of_a_process_has_more_time_for_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock(monkeypatch)
    monkeypatch.setattr(TimeLimits, "_studies", 0)
    late = "it took longer than limits.study_seconds: 100"
    for reason in ("", late):  # two shards, the same process
        with (
            (tmp_path / "stack").open("wb") as stack,
            TimeLimits(Limits(study_seconds=100), stack, warm=False) as guard,
        ):
            guard.study()
            clock.now += 101
            assert guard.ended_by() == reason


def test_a_study_whose_time_is_up_keeps_what_it_has_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def ended_by(self: WorkerHooks) -> str:
        asked.append(self.position)
        return "it took longer than limits.study_seconds: 9" if len(asked) == 3 else ""

    monkeypatch.setattr(WorkerHooks, "ended_by", ended_by)
    write_hazards(tmp_path / "data", 1, {})
    owned = begin(hazards(tmp_path / "data", limits={"study_seconds": 900}).definition, str(tmp_path / "run"))
    work_shard(owned.directory, owned.term, 0, lambda _: None, nodes=Nodes())
    owned.lease.release()
    record = RunResult(owned.directory).study_records[0]
    assert record.status == "ok"
    assert record.trials == 3
    assert record.notes == "it took longer than limits.study_seconds: 9; 3 of 10 trials were run"


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
