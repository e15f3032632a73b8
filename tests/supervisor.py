"""Works through a run's shards in child processes, and starts one that died again, as Tune does: a run in seconds.

    python tests/supervisor.py RUN [--kill SEED MOST] [--interval SECONDS]

Children are forks of this process, so that a start costs milliseconds. With --kill, children are SIGKILLed at random
moments, MOST times in all: some time after a random number of trials, so that a fast machine sees as many kills as a
slow one. Prints one line of JSON: {"starts": n, "kills": n, "ends": [wait statuses]}.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

MOST_STARTS = 2000


def main() -> None:
    from tuning import guard
    from tuning.epochs import newest_epoch
    from tuning.run import read_plan, read_shard
    from tuning.storage import RunDirectory
    from tuning.worker import Workshop, warm_up

    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--kill", nargs=2, type=int, default=(0, 0))
    parser.add_argument("--interval", type=float, default=0.2)
    options = parser.parse_args()
    killer = Killer(*options.kill)
    report_trials(killer.beats)
    directory = RunDirectory(options.run)
    epoch = newest_epoch(directory)
    assert epoch is not None
    settings, _, _ = read_plan(directory, epoch)
    for shard in range(settings.shards):  # load libraries once, for all children
        if studies := read_shard(directory, epoch, shard)[1]:
            workshop = Workshop.open(directory, epoch, settings)
            studies[0].algorithm.build(workshop.space, metric="score", mode="max", seed=0, trials=2).suggest("0")
            studies[0].scheduler.build(metric="score", mode="max", max_steps=2, seed=0)
            workshop.data(studies[0].customer)
            warm_up(workshop, studies[0])
            break
    guard.FIRST_S = 0.0  # children are warm
    ends: list[int] = []
    for shard in range(settings.shards):
        while len(ends) < MOST_STARTS:
            child = os.fork()
            if child == 0:
                work(directory.uri, shard, options.interval)
            ends.append(killer.wait(child))
            if ends[-1] == 0:
                break
    print(json.dumps({"starts": len(ends), "kills": killer.kills, "ends": ends}))


def work(uri: str, shard: int, interval: float) -> None:
    """A child's life; never returns."""
    from tuning.epochs import newest_epoch
    from tuning.packed import Nodes, WornOutError, work_shard
    from tuning.storage import RunDirectory

    directory = RunDirectory(uri)
    epoch = newest_epoch(directory)
    assert epoch is not None
    try:
        work_shard(directory, epoch, shard, lambda _: None, interval=interval, nodes=Nodes())
    except WornOutError:
        os._exit(75)
    os._exit(0)


def report_trials(pipe: int) -> None:
    """Let the objective write a byte to a pipe whenever a trial of it begins."""
    import chaos

    hazard = chaos.hazard

    def reporting(config: Mapping[str, float], data: pd.DataFrame, seed: int) -> Iterator[float]:
        os.write(pipe, b".")
        yield from hazard(config, data, seed)

    chaos.hazard = reporting


class Killer:
    """Kills children at random moments, up to a number of times."""

    def __init__(self, seed: int, most: int) -> None:
        self._rng = random.Random(seed)
        self._most = most
        self._seen, self.beats = os.pipe()
        os.set_blocking(self._seen, False)
        os.set_blocking(self.beats, False)  # a full pipe never holds up a child
        self.kills = 0

    def wait(self, child: int) -> int:
        """The wait status of a child, which may be killed meanwhile."""
        self._trials()  # those of its predecessor
        left = self._rng.randint(1, 15)
        while self.kills < self._most:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                return status
            left -= self._trials()
            if left <= 0:
                time.sleep(self._rng.uniform(0.0, 0.005))  # anywhere in a trial, a flush or the end
                os.kill(child, signal.SIGKILL)
                status = os.waitpid(child, 0)[1]
                self.kills += os.WIFSIGNALED(status)
                return status
            time.sleep(0.0005)
        return os.waitpid(child, 0)[1]

    def _trials(self) -> int:
        """Trials that began since the last call."""
        try:
            return len(os.read(self._seen, 65536))
        except BlockingIOError:
            return 0


if __name__ == "__main__":
    main()
