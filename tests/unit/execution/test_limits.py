"""Limits of a study, and what follows when Tune itself fails: a new Tuner, and an end with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from chaos import definition, duplicates, hazards, supervised, truth, write_customers, write_hazards

from tuning import RunResult, TuneRunner
from tuning.definition.options import Limits
from tuning.errors import RunError
from tuning.execution.cluster import worker_died
from tuning.execution.limits import TimeLimits, TrialTimeoutError
from tuning.execution.packed import Nodes, WorkerHooks, work_shard
from tuning.runs.begin import OwnedRun, begin
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
        assert guard.over() == ""
        clock.now += 2
        assert guard.over() == "it took longer than limits.study_seconds: 100"
        guard.study()
        assert guard.over() == ""


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
            assert guard.over() == reason


def test_a_study_whose_time_is_up_keeps_what_it_has_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def over(self: WorkerHooks) -> str:
        asked.append(self.position)
        return "it took longer than limits.study_seconds: 9" if len(asked) == 3 else ""

    monkeypatch.setattr(WorkerHooks, "over", over)
    write_hazards(tmp_path / "data", 1, {})
    owned = begin(hazards(tmp_path / "data", limits={"study_seconds": 900}).definition, str(tmp_path / "run"))
    work_shard(owned.directory, owned.term, 0, lambda _: None, nodes=Nodes())
    owned.lease.release()
    record = RunResult(owned.directory).study_records[0]
    assert record.status == "ok"
    assert record.trials == 3
    assert record.notes == "it took longer than limits.study_seconds: 9; 3 of 10 trials were run"


@pytest.mark.chaos
@pytest.mark.parametrize("kind", ["loop", "loop_in_c"])
def test_a_study_that_hangs_is_ended_by_its_own_limit(tmp_path: Path, kind: str) -> None:
    write_hazards(tmp_path / "data", 1, {0: kind})
    limits = {"study_seconds": 1.0, "crashes_before_quarantine": 1}
    supervised(hazards(tmp_path / "data", limits=limits), str(tmp_path / "run"))
    record = RunResult(str(tmp_path / "run")).study_records[0]
    assert record.status == "quarantined"
    assert "it ran longer than its time limit" in record.reason


class _Tuners:
    """Stand-ins that do part of the work and raise, as Tune does when a callback or a killed trial ends it.

    work: how many shards each of them finishes before it raises; None finishes the rest in peace.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: list[int | None]) -> None:
        self.work, self.built, self.done = work, 0, 0
        monkeypatch.setattr("tuning.driver.runner.start_ray", lambda slots: None)
        monkeypatch.setattr("tuning.driver.runner.check_room", lambda needs: None)
        monkeypatch.setattr("tuning.driver.runner.build_tuner", self.build)
        monkeypatch.setattr("tuning.driver.runner.PAUSE_S", 0.0)

    def build(self, owned: OwnedRun, attempt: int, callbacks: Any, stop: Any) -> _Tuners:
        self.built += 1
        assert attempt == self.built
        self.owned = owned
        return self

    def fit(self) -> None:
        shards = len(self.owned.plan.shards)
        wanted = self.work[self.built - 1]
        until = shards if wanted is None else min(shards, self.done + wanted)
        for shard in range(self.done, until):
            work_shard(self.owned.directory, self.owned.term, shard, lambda _: None)
        self.done = until
        if wanted is not None:
            raise RuntimeError("Caught unexpected exception: OutOfMemoryError()")


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> TuneRunner:
    folder = tmp_path_factory.mktemp("customers")
    write_customers(folder, 6)
    return TuneRunner(**definition(folder))


@pytest.fixture(scope="module")
def undisturbed(search: TuneRunner, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    run = str(tmp_path_factory.mktemp("undisturbed") / "run")
    return truth(search.run(run, progress=False, in_process=True))


@pytest.mark.parametrize("work", [[1, 1, 1, None], [0, 0, 1, 0, 0, 1, 0, 0, None]], ids=["progress", "now and then"])
def test_a_tuner_that_raises_is_followed_by_another_one(
    search: TuneRunner,
    undisturbed: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    work: list[int | None],
) -> None:
    tuners = _Tuners(monkeypatch, work)
    result = search.run(str(tmp_path / "run"), **QUIET)
    assert tuners.built == len(work)
    assert truth(result) == undisturbed
    assert duplicates(result) == []


def test_three_tuners_without_progress_end_the_run_with_the_reason(
    search: TuneRunner, undisturbed: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = str(tmp_path / "run")
    tuners = _Tuners(monkeypatch, [2, 0, 0, 0])
    with pytest.raises(RunError) as stopped:
        search.run(run, **QUIET)
    assert tuners.built == 4
    assert "could not be finished in 3 attempts without progress" in str(stopped.value)
    assert "RuntimeError: Caught unexpected exception: OutOfMemoryError()" in str(stopped.value)
    assert f"go on with: tuning resume {run}" in str(stopped.value)
    assert len(RunResult(run).study_records) > 0
    assert truth(TuneRunner.resume(run, progress=False, in_process=True)) == undisturbed


@pytest.mark.ray
def test_a_real_tuner_that_a_callback_ends_is_followed_by_another_one(
    search: TuneRunner,
    undisturbed: dict[str, Any],
    ray_cluster: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = _raising_once(monkeypatch)
    assert truth(search.run(str(tmp_path / "run"), **QUIET)) == undisturbed
    assert len(made) == 2
    assert "Tune ended with" in caplog.text


def _raising_once(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let the first Tuner's callback raise at its first result; gives the keys of all callbacks made."""
    from tuning.driver import progress

    keys: list[str] = []

    def callback(key: str) -> Any:
        made = progress.reports_callback(key)
        keys.append(key)
        if len(keys) == 1:

            def raises(*_: Any, **__: Any) -> None:
                raise RuntimeError("a callback failed")

            made.on_trial_result = raises
        return made

    monkeypatch.setattr("tuning.driver.runner.reports_callback", callback)
    return keys


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
