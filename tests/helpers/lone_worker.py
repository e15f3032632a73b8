"""A worker without Ray, in a process of its own: goes through the first batch of a run, under its limits."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from chaos import environment, hazard, hazards, write_hazards

from tuning import RunResult
from tuning.execution.crash_log import Nodes, crashes
from tuning.execution.packed import WORK, work_batch
from tuning.execution.worker import WorkerRun
from tuning.runs.begin import begin
from tuning.storage.run_directory import RunDirectory

MORE = 2**31  # bytes that a hungry trial takes


def hunger(config: Mapping[str, float], data: Any, seed: int) -> Iterator[float]:
    """As `hazard`, but the second trial wants two gigabytes."""
    yield from hazard(config, data, seed)
    if config["x"] > 0.3:
        yield float(len(bytearray(MORE)))


def lone_workers(
    folder: Path, kind: str, off: str = "", seconds: float = 240.0, run: str | None = None, **fields: Any
) -> RunResult | None:
    """One customer of a kind, gone through by workers one after the other until one ends in order, at most four.

    off: Python that each worker executes first, to switch a protection off. run: the run directory. None when one
    does not end in time.
    """
    run = run or str(folder / "run")
    write_hazards(folder / "data", 1, {0: kind})
    owned = begin(hazards(folder / "data", **fields).definition, run)
    owned.lease.release()
    script = f"{off}\nimport lone_worker\nlone_worker.main({run!r})"
    for _ in range(4):
        try:
            done = subprocess.run(
                [sys.executable, "-c", script],
                env=environment(),
                cwd=Path(__file__).parent,
                capture_output=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode == 0:
            break
    return RunResult(run)


def main(run: str) -> None:
    """One worker's life."""
    result = RunResult(run)
    directory = RunDirectory(run)
    assert len(crashes(directory, result.term, 0, WORK)) < 4
    work_batch(WorkerRun(directory.uri, result.term), 0, lambda _: None, Nodes())
