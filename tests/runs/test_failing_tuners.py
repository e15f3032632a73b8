"""What follows when Tune itself fails: a new Tuner, and an end with the reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import definition, write_customers
from chaos import duplicates, truth

from tuning import RunResult, TuneRunner
from tuning.basics.timing import Timing
from tuning.errors import DiskFullError, RunError
from tuning.execution.packed import work_batch
from tuning.execution.worker import WorkerRun
from tuning.runs.begin import OwnedRun

QUIET = {"progress": False}


OUT_OF_MEMORY = "Caught unexpected exception: OutOfMemoryError()\n" + 50 * "Memory on the node was …\n"


class _Tuners:
    """Stand-ins that do part of the work and raise, as Tune does when a callback or a killed trial ends it.

    work: how many batches each of them finishes before it raises; None finishes the rest in peace. error: what it
    raises.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, work: list[int | None], error: Exception | None = None) -> None:
        self.work, self.built, self.done = work, 0, 0
        self.error = error or RuntimeError(OUT_OF_MEMORY)
        monkeypatch.setattr("tuning.driver.hosts.ray.start_ray", lambda slots: False)
        monkeypatch.setattr("tuning.driver.hosts.ray.build_tuner", self.build)

    def build(self, owned: OwnedRun, queue: object, attempt: int, *_: Any) -> _Tuners:
        self.built += 1
        assert attempt == self.built
        self.owned = owned
        return self

    def fit(self) -> None:
        batches = len(self.owned.plan.batches)
        wanted = self.work[self.built - 1]
        until = batches if wanted is None else min(batches, self.done + wanted)
        for batch in range(self.done, until):
            work_batch(WorkerRun.from_owned(self.owned), batch, lambda _: None)
        self.done = until
        if wanted is not None:
            raise self.error


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> TuneRunner:
    folder = tmp_path_factory.mktemp("customers")
    write_customers(folder, 6)
    runner = TuneRunner(**definition(folder))
    runner.timing = Timing(attempt_pause_s=0.0)
    return runner


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
    search: TuneRunner,
    undisturbed: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = str(tmp_path / "run")
    tuners = _Tuners(monkeypatch, [2, 0, 0, 0])
    with pytest.raises(RunError) as stopped:
        search.run(run, **QUIET)
    assert [record.getMessage() for record in caplog.records if "Memory on" in record.getMessage()] == []
    assert "Memory on" not in str(stopped.value)
    assert tuners.built == 4
    assert "could not be finished in 3 attempts without progress" in str(stopped.value)
    assert "RuntimeError: Caught unexpected exception: OutOfMemoryError()" in str(stopped.value)
    assert f"Resume with: TuneRunner.resume({run!r})" in str(stopped.value)
    assert len(RunResult(run).study_records) > 0
    assert truth(TuneRunner.resume(run, progress=False, in_process=True)) == undisturbed


def test_tuners_that_a_full_disk_ends_are_that(
    search: TuneRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tune writes a snapshot of its own into the run's folder, by itself and not by our storage."""
    _Tuners(monkeypatch, [0, 0, 0], OSError(28, "Error writing bytes to file"))
    with pytest.raises(DiskFullError, match="3 attempts without progress") as stopped:
        search.run(tmp_path / "run", **QUIET)
    (reason,) = stopped.value.reasons
    assert reason.startswith("OSError")


@pytest.mark.slow
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


def _raising_once(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the first Tuner's callback raise at its first result; gives the numbers of all Tuners made."""
    from tuning.driver.hosts import ray as host
    from tuning.driver.hosts.tune_workers import TuneWorkers

    made: list[int] = []
    build, heard = host.build_tuner, TuneWorkers.on_trial_result

    def built(owned: OwnedRun, queue: Any, attempt: int, *rest: Any) -> Any:
        made.append(attempt)
        return build(owned, queue, attempt, *rest)

    def hears(self: TuneWorkers, *given: Any, **info: Any) -> None:
        if len(made) == 1:
            raise RuntimeError("a callback failed")
        heard(self, *given, **info)

    monkeypatch.setattr(host, "build_tuner", built)
    monkeypatch.setattr(TuneWorkers, "on_trial_result", hears)
    return made
