"""Works through a run's shards in child processes, and starts one that died again, as Tune does: a run in seconds.

    python tests/supervisor.py RUN [--kill SEED MOST] [--interval SECONDS]

Children are forks of this process, so that a start costs milliseconds. With --kill, children are SIGKILLed at random
moments, MOST times in all. Prints one line of JSON: {"starts": n, "kills": n, "ends": [wait statuses]}.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

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
    killer = Killer(*options.kill)
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


class Killer:
    """Kills children at random moments, up to a number of times."""

    def __init__(self, seed: int, most: int) -> None:
        self._rng = random.Random(seed)
        self._most = most
        self.kills = 0

    def wait(self, child: int) -> int:
        """The wait status of a child, which may be killed meanwhile."""
        until = time.monotonic() + self._rng.uniform(0.0, 0.6) if self.kills < self._most else float("inf")
        while True:
            pid, status = os.waitpid(child, os.WNOHANG if until != float("inf") else 0)
            if pid:
                return status
            if time.monotonic() >= until:
                os.kill(child, signal.SIGKILL)
                self.kills += 1
                return os.waitpid(child, 0)[1]
            time.sleep(0.002)


if __name__ == "__main__":
    main()
