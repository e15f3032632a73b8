"""Works through a run's batches in child processes, and starts one that died again, as Tune does: a run in seconds.

    python tests/helpers/supervisor.py RUN [--kill SEED MOST LIFE] [--interval TRIALS]

Children are forks of this process, so that a start costs milliseconds. With --kill, children end by SIGKILL, MOST of
them in all, each at a random one of its first LIFE moments: a step of a trial, before and after a file is written. So
a seed gives the same kills on every machine. --interval counts the time between record parts in trials.
Prints one line of JSON: {"starts": n, "kills": n, "ran": trials begun in all, "ends": [wait statuses]}.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

MOST_STARTS = 2000


def main() -> None:
    from tuning.execution.study_run import warm_up
    from tuning.execution.worker import WorkerContext
    from tuning.records.ownership import newest_term
    from tuning.runs.plan_file import read_batch, read_plan
    from tuning.storage.run_directory import RunDirectory

    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--kill", nargs=3, type=int, default=(0, 0, 1))
    parser.add_argument("--interval", type=int, default=5)
    options = parser.parse_args()
    seed, most, longest = options.kill
    rng, life, kills, ran = random.Random(seed), Life(), 0, 0
    seen, beats = os.pipe()
    os.set_blocking(seen, False)
    watch_trials(beats, life)
    watch_writes(life)
    count_time_in_trials(life)
    directory = RunDirectory(options.run)
    term = newest_term(directory)
    assert term is not None
    plan = read_plan(directory, term)
    for batch in range(plan.batches):  # load libraries once, for all children
        if studies := read_batch(directory, term, batch).studies:
            context = WorkerContext.open(directory, plan.run, plan.spec)
            studies[0].algorithm.build(studies[0].space, metric="score", mode="max", seed=0, n_trials=2).suggest("0")
            studies[0].scheduler.build(metric="score", mode="max", max_steps=2, seed=0)
            context.data(studies[0].customer)
            warm_up(context, studies[0])
            break
    ends: list[int] = []
    for batch in range(plan.batches):
        while len(ends) < MOST_STARTS:
            left = rng.randint(1, longest) if kills < most else None
            child = os.fork()
            if child == 0:
                life.left, life.trials = left, 0
                work(directory.uri, batch, options.interval)
            ends.append(os.waitpid(child, 0)[1])
            ran += _owned(seen)
            kills += ends[-1] == signal.SIGKILL
            if ends[-1] == 0:
                break
    print(json.dumps({"starts": len(ends), "kills": kills, "ran": ran, "ends": ends}))


def _owned(pipe: int) -> int:
    """Trials that began since the last call; no child has more of them than a pipe takes."""
    try:
        return len(os.read(pipe, 65536))
    except BlockingIOError:
        return 0


def work(uri: str, batch: int, interval: int) -> None:
    """A child's life; never returns."""
    from tuning.basics.timing import Timing
    from tuning.execution.crash_log import Nodes
    from tuning.execution.packed import WornOutError, work_batch
    from tuning.execution.worker import WorkerRun
    from tuning.records.ownership import newest_term
    from tuning.storage.run_directory import RunDirectory

    directory, timing = RunDirectory(uri), Timing(parts_s=interval, cold_start_s=0.0)  # it is warm
    term = newest_term(directory)
    assert term is not None
    try:
        work_batch(WorkerRun(directory.uri, term, timing=timing), batch, lambda _: None, Nodes())
    except WornOutError:
        os._exit(75)
    os._exit(0)


def watch_trials(pipe: int, life: Life) -> None:
    """Let the objective write a byte to a pipe whenever a trial of it begins, and count its moments."""
    import chaos

    hazard = chaos.hazard

    def watched(config: Mapping[str, float], data: pd.DataFrame, seed: int) -> Iterator[float]:
        os.write(pipe, b".")
        life.trials += 1
        for step in hazard(config, data, seed):
            life.moment()
            yield step

    chaos.hazard = watched


def watch_writes(life: Life) -> None:
    """Count the moments before and after every file of the run."""
    from tuning.storage.run_directory import RunDirectory

    write = RunDirectory.write

    def watched(self: RunDirectory, name: str, data: bytes) -> None:
        life.moment()
        write(self, name, data)
        life.moment()

    RunDirectory.write = watched


def count_time_in_trials(life: Life) -> None:
    """Let the interval between parts be a number of trials, so that the work a kill may cost is one, too."""
    from tuning.execution.reports import PartWriter

    flush = PartWriter.flush

    def watched(self: PartWriter) -> None:
        flush(self)
        life.flushed = life.trials

    PartWriter.flush = watched
    PartWriter.due = property(lambda self: life.trials - life.flushed >= self.interval)


class Life:
    """How many moments a child has left (no end without a number), and how many trials it has begun."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.trials = self.flushed = 0

    def moment(self) -> None:
        """Something happens in the child; its last moment ends it, as SIGKILL from outside would."""
        if self.left is not None:
            self.left -= 1
            if self.left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
