"""What the loss of an actor costs a trial that several processes train, by its `recovery`: rounds and seconds.

An actor's process is killed in the middle of a training. Printed are when the first step was there, which rounds were
trained again, how long it took until the actors trained again, and how far the model's predictions are from those of
one process on the same rows.

    python -m benchmarks.experiments.lost_actor [--rows 200000] [--rounds 200] [--actors 2]
"""

from __future__ import annotations

import argparse
import os
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuning.models.base import Matrix
from tuning.models.families.xgboost import FAMILY as XGBOOST
from tuning.models.families.xgboost_ray import FAMILY
from tuning.models.gang import RECOVERIES, Gang
from tuning.models.xgboost_ray_adapter import Training
from tuning.preprocessing.task import REGRESSION, Task

ACTOR = "ray::_RemoteRayXGBoostActor"
TASK, SEED = Task(REGRESSION, ()), 3


@dataclass(frozen=True)
class Loss:
    """One training, and what a killed actor cost it.

    Attributes:
        steps: rounds after each step that was told.
        starts: rounds after which the actors began, each time.
        actors: how many there were in all.
        first_s: seconds from the beginning to the first step.
        lost_s: from the kill until the actors trained again; 0 without a kill.
        told: rounds that had been told when the actor was killed.
        total_s: seconds of the whole training.
        distance: largest difference of a prediction from one process's, in standard deviations of these.
    """

    steps: tuple[int, ...]
    starts: tuple[int, ...]
    actors: int
    first_s: float
    lost_s: float
    told: int
    total_s: float
    distance: float


def rows_of(count: int, seed: int) -> Matrix:
    """Made-up rows of few values: so several processes find the candidates for splits that one does."""
    X = np.round(np.random.default_rng(seed).normal(size=(count, 10)) * 4) / 4
    return Matrix(X, 2 * X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]))


def trained(group: Any, folder: str, gang: Gang, rows: int, rounds: int, kill_after: int | None) -> Loss:
    """Train in the actors of a placement group, whose first bundle this process is in.

    kill_after: the step after which an actor is killed; None kills none.
    """
    os.environ["RXGB_ELASTIC_RESTART_RESOURCE_CHECK_S"] = "1"  # else a lost actor is taken back after half a minute
    train, unseen = rows_of(rows, 0), rows_of(1_000, 1)
    config = {"n_estimators": rounds, "max_depth": 4, "learning_rate": 0.05}
    before, began = set(_actors()), time.monotonic()
    training = Training(FAMILY.work(config, gang, train, TASK, SEED, 1, folder), gang, group)
    told, steps, model, first, killed = 0, [], b"", 0.0, 0.0
    try:
        for done, said in training:
            steps.append(done)
            model, first = said, first or time.monotonic() - began
            if len(steps) == kill_after:
                os.kill(max(set(_actors()) - before), signal.SIGKILL)
                killed, told = time.monotonic(), done
    finally:
        training.close()
    total = time.monotonic() - began
    expected = XGBOOST.predict(XGBOOST.fit(config, train, TASK, SEED), unseen, TASK).values
    distance = np.abs(FAMILY.predict(FAMILY.load("", model), unseen, TASK).values - expected).max() / expected.std()
    again = [at - killed for at, _ in training.starts if killed and at > killed]
    return Loss(
        steps=tuple(steps),
        starts=tuple(begun for _, begun in training.starts),
        actors=sum("RayXGBoostActor" in str(each) for each in training.made),
        first_s=first,
        lost_s=again[0] if again else 0.0,
        told=told,
        total_s=total,
        distance=float(distance),
    )


def _actors() -> list[int]:
    """The processes of XGBoost-Ray's actors on this machine."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                name = (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace")
            except OSError:  # it has ended meanwhile
                continue
            if name.startswith(ACTOR):
                found.append(int(folder.name))
    return found


def run(gang: Gang, rows: int, rounds: int, kill_after: int | None) -> Loss:
    """`trained` by a worker of the cluster that this process is connected to."""
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = ray.util.placement_group([{"CPU": gang.cpus_per_actor}, *gang.bundles])
    placed = PlacementGroupSchedulingStrategy(group, 0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            task = ray.remote(trained).options(num_cpus=0, max_retries=0, scheduling_strategy=placed)
            found: Loss = ray.get(task.remote(group, folder, gang, rows, rounds, kill_after))
        finally:
            ray.util.remove_placement_group(group)
    return found


def main() -> None:
    import ray

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--actors", type=int, default=2)
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    ray.init(address="local", num_cpus=options.actors + 1, include_dashboard=False, log_to_driver=False)
    middle = options.rounds // 20
    print(f"{options.rows:,} rows, {options.rounds} rounds, {options.actors} actors, load {os.getloadavg()[0]:.1f}")
    cases = [("nothing is lost", "warm", None), *((name, name, middle) for name in RECOVERIES)]
    for title, recovery, kill_after in cases:
        gang = Gang.of({"actors": options.actors, "recovery": recovery})
        found = run(gang, options.rows, options.rounds, kill_after)
        begun = ", ".join(map(str, found.starts[1:])) or "-"
        print(
            f"{title:16} first step {found.first_s:5.1f} s, in all {found.total_s:5.1f} s; {found.told} told when "
            f"killed, on after {begun} in {found.lost_s:.1f} s; {found.actors} actors in all; off {found.distance:.1e}"
        )
    ray.shutdown()


if __name__ == "__main__":
    main()
