"""Signals at every moment of a command's life: the right exit code, how to go on, and a lease that is let go."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from builders import objective_definition, write_customers
from chaos import environment, seed_of, wait_for

from tuning.records.lease import last_heartbeat
from tuning.records.ownership import newest_term
from tuning.storage.run_directory import RunDirectory

pytestmark = pytest.mark.ray
STARTING_RAY = "starting Ray"
SIGNALS = int(os.environ.get("CHAOS_SIGNALS") or 12)  # commands signalled, two for each of the moments below
PATIENCE_S = 600.0  # a loaded machine is no failure


class Command:
    """`tuning run` in a process group of its own, over a search that does not end by itself within a test."""

    def __init__(self, folder: Path, slots: int = 2, mlflow: bool = False, patience: float = 110.0) -> None:
        self._patience = patience
        write_customers(folder / "data", 2)
        fields = objective_definition(folder, trials=200_000, slots=slots, mlflow=mlflow, time_budget="1h")
        (folder / "definition.yaml").write_text(yaml.safe_dump(fields))
        self.run = folder / "run"
        self._out, self._err = folder / "out", folder / "err"
        with self._out.open("w") as out, self._err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tuning.cli", "run", "definition.yaml", "--run-dir", "run"],
                env=environment(),
                cwd=folder,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    @property
    def err(self) -> str:
        return self._err.read_text()

    def there(self, pattern: str) -> Callable[[], bool]:
        """Whether the run has such a file by now."""
        return lambda: any(self.run.glob(pattern))

    def until(self, moment: Callable[[], bool]) -> None:
        """Wait for a moment in the command's life."""
        wait_for(lambda: moment() or self.process.poll() is not None, self._patience, what="the moment")
        assert self.process.poll() is None, self.err

    def send(self, number: int, everybody: bool) -> None:
        """Signal the process, or all of its group, as a terminal and service managers do."""
        if everybody:
            os.killpg(self.process.pid, number)
        else:
            self.process.send_signal(number)

    def check(self, number: int, how_to_go_on: bool) -> None:
        """It ended for the signal, said so and let go of the run."""
        code = self.process.wait(timeout=self._patience)
        assert code == 128 + number, f"{code}\n{self.err}"
        assert "Aborted" not in self.err
        assert self._out.read_text() == ""
        directory = RunDirectory(str(self.run))
        term = newest_term(directory)
        if term is not None:
            assert last_heartbeat(directory, term).released
        if how_to_go_on:
            assert f"Resume with: tuning resume {self.run}" in self.err, self.err
        else:
            assert "stopped by" in self.err


@pytest.mark.slow
def test_a_sigterm_to_all_processes_while_ray_starts_is_neither_lost_nor_deadly(tmp_path: Path) -> None:
    """Ray's own handler raises where it stands, and its processes would end before the driver could finish."""
    command = Command(tmp_path, slots=1)
    command.until(lambda: STARTING_RAY in command.err)
    command.send(signal.SIGTERM, everybody=True)
    command.check(signal.SIGTERM, how_to_go_on=True)
    assert "Traceback" not in command.err
    assert "Token authentication" not in command.err


def test_a_sigterm_to_all_processes_ends_a_search_in_order(tmp_path: Path) -> None:
    """Without protection the cluster is gone first, and the driver waits a minute for it and dies with code 1."""
    command = Command(tmp_path, slots=1)
    command.until(command.there("records/*/trials-*"))
    command.send(signal.SIGTERM, everybody=True)
    command.check(signal.SIGTERM, how_to_go_on=True)
    assert "Stopping: what is finished is being written" in command.err
    assert "Traceback" not in command.err
    assert "SIGTERM received" not in command.err  # what Ray prints when its own handler gets there first
    assert not list(command.run.glob("in_progress/*/*"))  # every worker ended in order


# Moments of a command's life; those before its plan is in place have nothing to go on with.
MOMENTS: list[tuple[str, Callable[[Command], Callable[[], bool]]]] = [
    ("claimed", lambda command: command.there("terms/*")),
    ("planned", lambda command: command.there("plan/*.parquet")),
    ("starting Ray", lambda command: lambda: STARTING_RAY in command.err),
    ("Ray has started", lambda command: lambda: "starting workers" in command.err),
    ("a worker has started", lambda command: command.there("in_progress/*/*")),
    ("something is recorded", lambda command: command.there("records/*/trials-*")),
]


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_signals_at_many_moments(tmp_path: Path) -> None:
    """A random moment, a random pause after it, one signal or two, to the process or to its group."""
    seed = seed_of("signals")
    for number in range(SIGNALS):
        rng = random.Random(seed * 1000 + number)
        moment, reached = MOMENTS[number % len(MOMENTS)]
        which, everybody, twice = rng.choice([signal.SIGINT, signal.SIGTERM]), rng.random() < 0.5, rng.random() < 0.4
        print(f"number {number}: {which.name} after {moment}, {everybody=}, {twice=}")
        command = Command(tmp_path / str(number), mlflow=rng.random() < 0.3, patience=PATIENCE_S)
        command.until(reached(command))
        time.sleep(rng.choice([0.0, rng.uniform(0.0, 2.0)]))
        command.send(which, everybody)
        if twice:
            time.sleep(rng.uniform(0.0, 1.0))
            if command.process.poll() is None:
                command.send(which, everybody)
        command.check(which, how_to_go_on=moment not in ("claimed", "planned"))
        assert twice or "Traceback" not in command.err  # an exception in the middle of an import may leave words
