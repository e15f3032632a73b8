"""Works through a run in drivers that are killed, until it has ended: every driver a process, killed by SIGKILL.

    python tests/helpers/drivers.py RUN DEFINITION --kill SEED MOST LIFE

Drivers are forks of this process, so that a start costs milliseconds. The first MOST of them end at a random one of
their first LIFE moments: a step of a trial, before and after a file is written. Prints one line of JSON: {"kills": n,
"steps": trained in all, "resumed": drivers that found something recorded, "lost": records that did not stay as they
were}. `training` is also the objective of drivers on Ray, which their workers kill.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from builders import SPACE
from supervisor import Life, watch_writes

from tuning.steps import Step

STEPS = 9
#: The schedulers whose state is in memory only, as the arms of one run.
ARMS = ("optuna+hyperband", "bohb+bohb", "random+pbt")


class MainLife(Life):
    """The moments of the main thread; the lease has one of its own, which follows the clock."""

    def moment(self) -> None:
        if threading.current_thread() is threading.main_thread():
            super().moment()


LIFE = MainLife()
STEP_LOG: list[int] = []  # a pipe that takes a byte for each step
SEEN = [0]


def definition_of(folder: Path, customers: int) -> dict[str, Any]:
    """A run of all arms over some customers, whose files are made in the folder."""
    for number in range(customers):
        (folder / f"c{number}.csv").write_text(f"shift\n{number / 2}\n")
    definition = {"name": "killed", "objective": "drivers:training", "metric": "loss", "mode": "min", "seed": 5}
    definition |= {"search_space": SPACE, "data": str(folder / "c*.csv"), "trials": 12, "steps": STEPS, "slots": 2}
    return {**definition, "compare": {"algorithms": list(ARMS), "seeds": 1}, "placement": "packed", "mlflow": False}


def training(config: Mapping[str, float], data: Any, state: Any) -> Iterator[Step]:
    """An objective that can go on from a state; each of its steps is a moment of its process."""
    done, loss = state or (0, 9.0)
    for step in range(done + 1, STEPS + 1):
        loss = 0.7 * loss + 0.3 * ((config["x"] - data["shift"].mean()) ** 2 + config["y"] ** 2)
        for pipe in STEP_LOG:
            os.write(pipe, b".")
        LIFE.moment()
        if "CHAOS_VICTIM" in os.environ:
            strike(first=config["x"] == config["y"] == 0.0 and step == 1)
        yield Step(step, loss, get_state=lambda now=(step, loss): now)


def strike(first: bool) -> None:
    """Kill the driver that the file CHAOS_VICTIM names ("pid term n") at this process's n-th step behind its records.

    first: whether this is a study's first step: it takes a second, so that the study's records are due when it ends.
    """
    victim = Path(os.environ["CHAOS_VICTIM"])
    try:
        pid, term, after = victim.read_text().split()
    except FileNotFoundError:
        return
    if first:
        time.sleep(1.0)
    SEEN[0] += any(victim.parent.glob(f"run/records/{term}-*/trials-*"))
    if SEEN[0] == int(after):
        os.kill(int(pid), signal.SIGKILL)


def main() -> None:
    import yaml

    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("definition")
    parser.add_argument("--kill", nargs=3, type=int, required=True)
    options = parser.parse_args()
    seed, most, longest = options.kill
    rng, kills, resumed, lost = random.Random(seed), 0, 0, list[str]()
    definition = yaml.safe_load(Path(options.definition).read_text())
    trained, pipe = os.pipe()
    STEP_LOG.append(pipe)
    watch_writes(LIFE)
    load_libraries()
    known = dict[Any, float]()
    while True:
        left = rng.randint(1, longest) if kills < most else None
        driver = os.fork()
        if driver == 0:
            LIFE.left = left
            work(definition, options.run)
        status = os.waitpid(driver, 0)[1]
        found = recorded(options.run)
        lost += [str(key) for key, started in known.items() if found.get(key) != started]
        resumed, known = resumed + bool(known), found
        if status == 0:
            break
        assert status == signal.SIGKILL, status
        kills += 1
    os.close(pipe)
    steps = sum(len(piece) for piece in iter(lambda: os.read(trained, 65536), b""))
    print(json.dumps({"kills": kills, "steps": steps, "resumed": resumed, "lost": lost}))


def work(definition: Mapping[str, Any], run: str) -> None:
    """A driver's life; never returns."""
    from tuning import TuneRunner

    TuneRunner(**definition).run(run, resume=True, progress=False, in_process=True)
    os._exit(0)


def recorded(run: str) -> dict[Any, float]:
    """When each recorded trial began."""
    from tuning import RunResult
    from tuning.records.ownership import newest_term
    from tuning.storage.run_directory import RunDirectory

    if newest_term(RunDirectory(run)) is None:
        return {}
    return {record.key: record.started for record in RunResult(run).trial_records}


def load_libraries() -> None:
    """Load what all arms need, once for all drivers."""
    import schedulers
    from search_spaces import Float, SearchSpace, algorithms

    space = SearchSpace([Float("x", 0, 1)])
    for arm in ARMS:
        algorithm, _, scheduler = arm.partition("+")
        algorithms.parse(algorithm).build(space, metric="score", mode="min", seed=0, n_trials=2).suggest("0")
        mutations = schedulers.Mutations((schedulers.Range(("x",), 0.0, 1.0),))
        schedulers.parse(scheduler).build(metric="score", mode="min", max_steps=2, seed=0, mutations=mutations)


if __name__ == "__main__":
    import drivers

    drivers.main()  # and not this module's: definitions name their objective by `drivers`
