"""A single study under a scheduler that pauses trials: how much faster helpers on all slots make it, for equal records.

Each step sleeps, so that the logical slots of a small machine count like cores. Printed are the seconds from the first
step to the last one, and of the whole run, in one process and with helpers; whether the records are equal; and with
`--kill` what the death of a helper costs.

    python -m benchmarks.population [--members 8] [--steps 40] [--step-seconds 0.5] [--slots 8] [--scheduler pbt]
        [--kill]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tuning import RunResult, TuneRunner
from tuning.steps import Step

SEED = 3
SPACE = {name: {"type": "float", "low": 0.0, "high": 1.0, "default": 0.5} for name in ("x", "y")}


def climbing(steps: int, seconds: float, log: Path) -> Callable[..., Iterator[Step]]:
    """A made-up model of one weight; the state is (step, weight). log: gets the times of each step."""

    def climb(config: Mapping[str, float], state: Any) -> Iterator[Step]:
        done, weight = state or (0, 0.0)
        for step in range(done + 1, steps + 1):
            began = time.time()
            time.sleep(seconds)
            with log.open("a") as file:
                file.write(f"{began} {time.time()}\n")
            weight += (1 - weight) * 0.3 * config["x"] * (1 - abs(config["y"] - weight))
            yield Step(step, weight, get_state=lambda now=(step, weight): now)

    return climb


@dataclass(frozen=True)
class Search:
    """One run: seconds in all, seconds from its first step to its last, and how many steps were trained."""

    result: RunResult
    run: float
    training: float
    steps: int


def search(folder: Path, placement: str, options: argparse.Namespace) -> Search:
    """One run."""
    log = folder.parent / f"{placement}.log"
    climb = climbing(options.steps, options.step_seconds, log)
    runner = TuneRunner(
        name="population", objective=climb, search_space=SPACE, metric="weight", mode="max", steps=options.steps,
        trials=options.members + 1, algorithm="bohb" if options.scheduler == "bohb" else "random",
        scheduler=options.scheduler, seed=SEED, slots=options.slots, placement=placement, mlflow=False,
    )  # fmt: skip
    return searched(runner, folder, log)


def searched(runner: TuneRunner, folder: Path, log: Path) -> Search:
    """Run it. log: with the times of its steps."""
    began = time.monotonic()
    result = runner.run(folder, progress=False)
    seconds = time.monotonic() - began
    times = [[float(each) for each in line.split()] for line in log.read_text().splitlines()]
    training = max(end for _, end in times) - min(start for start, _ in times)
    return Search(result, seconds, training, len(times))


def found(result: RunResult) -> list[str]:
    """What the records say, without times and places."""
    records = sorted(result.trial_records, key=lambda record: record.trial)
    return [
        json.dumps([
            each.trial, each.config, each.state, str(each.reason), each.score, each.suggested, each.told, each.lineage,
            each.schedule, each.spent_steps, [(step.step, step.score) for step in each.steps],
        ])
        for each in records
    ]  # fmt: skip


def kill_one(after: float) -> None:
    """Kill the process of a helper that trains, some seconds after the first one is seen."""
    while not (pids := helpers()):
        time.sleep(0.1)
    time.sleep(after)
    os.kill(max(pids), signal.SIGKILL)


def helpers() -> list[int]:
    """The processes of helpers that are training."""
    seen = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.stat().st_uid == os.getuid():
            try:
                title = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if title.startswith(b"ray::HelperActor.train"):
                seen.append(int(entry.name))
    return seen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--members", type=int, default=8, help="trials beside the baseline")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--step-seconds", type=float, default=0.5)
    parser.add_argument("--slots", type=int, default=8)
    parser.add_argument("--scheduler", default="pbt")
    parser.add_argument("--kill", action="store_true", help="kill a helper in the middle")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        before = search(Path(folder) / "packed", "packed", options)
        if options.kill:
            threading.Thread(target=kill_one, args=(options.steps * options.step_seconds / 2,), daemon=True).start()
        after = search(Path(folder) / "spread", "spread", options)
        one, several = found(before.result), found(after.result)
        copies = sum(len(json.loads(each.lineage or "[]")) for each in before.result.trial_records)
        again = sum(each.attempt > 1 for each in after.result.trial_records)
    print(f"{options.scheduler}, {options.members} members of {options.steps} steps of {options.step_seconds} s")
    for what in ("training", "run"):
        first, second = getattr(before, what), getattr(after, what)
        times = f"{first / second:.1f} times as fast"
        print(f"{what}: {first:.1f} s in one process, {second:.1f} s on {options.slots} slots, {times}")
    print(f"equal records: {one == several} ({len(one)} trials, {copies} models copied)")
    print(f"steps trained: {before.steps} and {after.steps}; trials in which a helper died: {again}")


if __name__ == "__main__":
    main()
