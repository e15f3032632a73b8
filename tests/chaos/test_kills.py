"""SIGKILL of real drivers and real Ray workers, at moments that are counted in records and trials, never in seconds."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from builders import SPACE
from chaos import command, duplicates, environment, figure, parents_of, promised, seed_of, truth, wait_for
from paths import HELPERS

from tuning import RunResult, TuneRunner

pytestmark = [pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(3600)]
DRIVER_KILLS = int(os.environ.get("CHAOS_DRIVER_KILLS") or 20)
WORKER_KILLS = int(os.environ.get("CHAOS_WORKER_KILLS") or 20)
PATIENCE_S = 600  # a loaded machine is no failure
RESUME_S = 20.0  # at most, from the command to the first new record, beyond Ray's own start


def _write(folder: Path, trials: int, **fields: Any) -> dict[str, Any]:
    """A definition of a paced objective, for a driver with two workers."""
    definition = {"name": "kills", "objective": "chaos:paced", "metric": "loss", "mode": "min", "search_space": SPACE}
    definition |= {"trials": trials, "seed": 5, "slots": 2, "mlflow": False, "placement": "packed", **fields}
    (folder / "definition.yaml").write_text(yaml.safe_dump(definition))
    return definition


def _parts(folder: Path, term: int) -> int:
    """What this owner's workers wrote; those of a killed one may still write for a moment."""
    return len(list((folder / "run").glob(f"records/{term:04d}-*/trials-*")))


def _customers(folder: Path, number: int) -> str:
    (folder / "data").mkdir()
    for customer in range(number):
        (folder / "data" / f"c{customer}.csv").write_text("a\n1\n")
    return str(folder / "data" / "*.csv")


def _undisturbed(definition: dict[str, Any], folder: Path) -> dict[str, Any]:
    return truth(TuneRunner(**definition).run(str(folder / "whole"), progress=False, in_process=True))


class Timed:
    """When a driver said what, and when it recorded something new."""

    def __init__(self, folder: Path, driver: subprocess.Popen[bytes], term: int) -> None:
        self._folder, self._driver, self._term = folder, driver, term
        self.started = time.monotonic()
        self.seen: dict[str, float] = {}

    def look(self) -> bool:
        """Note what is new; true when the driver has ended."""
        err = (self._folder / "err").read_text(errors="replace")
        for what in ("starting Ray", "starting workers"):
            if what in err:
                self.seen.setdefault(what, time.monotonic())
        if _parts(self._folder, self._term):
            self.seen.setdefault("part", time.monotonic())
        return self._driver.poll() is not None

    @property
    def resume_seconds(self) -> float:
        """From the command to the first new record, without the start of Ray."""
        ray = self.seen["starting workers"] - self.seen["starting Ray"]
        return self.seen["part"] - self.started - ray


def test_drivers_killed_at_random_lose_nothing_and_resume_soon(tmp_path: Path) -> None:
    rng = random.Random(seed_of("driver kills"))
    data = _customers(tmp_path, 10)
    definition = _write(tmp_path, 8 * DRIVER_KILLS, data=data, scheduler="fifo")
    run, before, times, kills = str(tmp_path / "run"), dict[Any, float](), list[float](), 0
    for number in range(DRIVER_KILLS):
        arguments = ["run", "definition.yaml", "--run-dir", "run"] if number == 0 else ["resume", "run"]
        driver = command(tmp_path, *arguments, CHAOS_PAUSE="0.1")
        term, wanted = number + 1, rng.randint(1, 4)
        timed = Timed(tmp_path, driver, term)
        wait_for(lambda: timed.look() or _parts(tmp_path, term) >= wanted, PATIENCE_S, "new parts")  # noqa: B023  # called within this turn
        if driver.poll() is not None:  # it was through with everything
            assert driver.returncode == 0, (tmp_path / "err").read_text()
            break
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        kills += 1
        if number:
            times.append(timed.resume_seconds)
        known = {record.key: record.started for record in RunResult(run).trial_records}
        assert before.items() <= known.items()
        before = known
    last = command(tmp_path, "resume", "run")
    assert last.wait(PATIENCE_S) == 0, (tmp_path / "err").read_text()
    result = RunResult(run)
    assert before.items() <= {record.key: record.started for record in result.trial_records}.items()
    assert duplicates(result) == []
    assert truth(result) == truth(
        TuneRunner(**definition).run(str(tmp_path / "whole"), progress=False, in_process=True)
    )
    slowest, usual = max(times), sorted(times)[len(times) // 2]
    told = f"{kills} drivers killed: resumed in {usual:.1f} s (median), {slowest:.1f} s (most) beyond Ray's own start"
    promised(told, slowest, RESUME_S)


def test_workers_of_ray_killed_at_random_lose_nothing(tmp_path: Path) -> None:
    rng = random.Random(seed_of("kills of Ray's workers"))
    data, log = _customers(tmp_path, 10), tmp_path / "log"
    limits = {"crashes_before_quarantine": 1000}
    definition = _write(tmp_path, 50, data=data, limits=limits, scheduler="fifo")
    log.touch()
    driver = command(tmp_path, "run", "definition.yaml", "--run-dir", "run", CHAOS_PAUSE="0.05", CHAOS_LOG=str(log))
    killed: list[int] = []
    try:
        while len(killed) < WORKER_KILLS:
            wanted = len(log.read_text().splitlines()) + rng.randint(1, 500 // WORKER_KILLS)
            wait_for(
                lambda: driver.poll() is not None or len(log.read_text().splitlines()) >= wanted,  # noqa: B023  # called within this turn
                PATIENCE_S,
                "trials",
            )
            if driver.poll() is not None:
                break
            last = int(log.read_text().splitlines()[-1].split()[0])
            if last not in killed:  # else the log has nothing of its successor yet
                os.kill(last, signal.SIGKILL)
                killed.append(last)
        assert driver.wait(PATIENCE_S) == 0, (tmp_path / "err").read_text()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    result = RunResult(str(tmp_path / "run"))
    assert duplicates(result) == []
    assert truth(result) == truth(
        TuneRunner(**definition).run(str(tmp_path / "whole"), progress=False, in_process=True)
    )
    ran = len(log.read_text().splitlines())
    figure(f"{len(killed)} workers of Ray killed over 500 trials: {ran - 500} trials run again")
    # A batch is a second, and a trial takes a twentieth of it at least.
    assert 500 <= ran <= 500 + len(killed) * (round(1 / 0.05) + 2)


def test_a_run_starts_its_own_ray_again_when_that_loses_its_only_machine(tmp_path: Path) -> None:
    data, log = _customers(tmp_path, 10), tmp_path / "log"
    definition = _write(tmp_path, 40, data=data, scheduler="fifo")
    log.touch()
    driver = command(tmp_path, "run", "definition.yaml", "--run-dir", "run", CHAOS_PAUSE="0.2", CHAOS_LOG=str(log))
    try:
        wait_for(lambda: driver.poll() is not None or len(parents_of(log)) >= 40, PATIENCE_S, "trials")
        os.kill(int(parents_of(log)[-1]), signal.SIGKILL)  # Ray's process for the machine, above its workers
        assert driver.wait(PATIENCE_S) == 0, (tmp_path / "err").read_text()
    finally:
        if driver.poll() is None:
            os.killpg(driver.pid, signal.SIGKILL)
    assert "no machine of the Ray cluster" in (tmp_path / "err").read_text()
    result = RunResult(str(tmp_path / "run"))
    assert duplicates(result) == []
    assert truth(result) == _undisturbed(definition, tmp_path)


def test_a_node_that_is_lost_and_one_that_is_gained_change_nothing(tmp_path: Path) -> None:
    """Nodes of `ray.cluster_utils.Cluster`, in a process of their own."""
    data = _customers(tmp_path, 10)
    tests = HELPERS
    environ = environment()
    path, log = os.pathsep.join([environ["PYTHONPATH"], str(tests)]), tmp_path / "log"
    done = subprocess.run(
        [sys.executable, str(tests / "nodes.py"), str(tmp_path / "run")],
        env={**environ, "PYTHONPATH": path, "CHAOS_LOG": str(log), "CHAOS_HOLD": "60"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {"trials": 400, "alive": 3}
    assert len(set(parents_of(log))) == 3  # all three nodes had work
    result = RunResult(str(tmp_path / "run"))
    assert duplicates(result) == []
    assert set(result.leaderboard()["status"]) == {"ok"}  # losing its node is no fault of a study
    definition = _write(tmp_path, 40, data=data, scheduler="fifo")
    assert truth(result) == _undisturbed(definition, tmp_path)
