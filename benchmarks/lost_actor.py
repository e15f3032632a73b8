"""What several processes that train a trial cost: until they have begun, and when one of them is killed.

    python -m benchmarks.lost_actor                  a table
    python -m benchmarks.lost_actor --output json    one JSON object last

Each way to train (`--model`) does so undisturbed, and with each `recovery` while the process of an actor is killed in
the middle. It is halted for a while before, so that all steps that were done are told: rounds lost are then known to a
step, and the most is printed. Seconds lost are those on top of the undisturbed training, without that while.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

from tuning.basics.timing import USUAL
from tuning.models.base import EncodedRows
from tuning.models.families.xgboost import FAMILY as XGBOOST
from tuning.models.registry import families
from tuning.models.worker_group import RECOVERIES, ActorGroup
from tuning.preprocessing.task import REGRESSION, Task
from tuning.worker_groups.xgboost_actors import TrialPlace

ACTORS = {"xgboost": "ray::GroupActor", "xgboost_ray": "ray::_RemoteRayXGBoostActor"}  # their processes
NOTHING = "nothing is lost"
HALT_S = 3.0
TASK, SEED = Task(REGRESSION, ()), 3


@dataclass(frozen=True)
class Trained:
    """One training, and what a killed actor did to it.

    Attributes:
        steps: rounds after each step that was told.
        starts: rounds after which the actors began, each time.
        actors: how many there were in all.
        first_s: seconds from the beginning to the first step.
        total_s: of the whole training, without the while that an actor is halted.
        told: rounds of the last step before the kill; 0 without one.
        again_s: from the kill until the actors trained again; 0 without one.
        distance: largest difference of a prediction from one process's, in standard deviations of these.
    """

    steps: tuple[int, ...]
    starts: tuple[int, ...]
    actors: int
    first_s: float
    total_s: float
    told: int
    again_s: float
    distance: float

    @property
    def rounds_lost(self) -> int:
        """How many rounds were trained twice at most."""
        return max(0, self.told + XGBOOST.step_length - self.starts[1]) if len(self.starts) > 1 else 0


def rows_of(count: int, seed: int) -> EncodedRows:
    """Made-up rows of few values: so several processes find the candidates for splits that one does."""
    X = np.round(np.random.default_rng(seed).normal(size=(count, 10)) * 4) / 4
    return EncodedRows(X, 2 * X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]))


def trained(
    model: str, worker_group: ActorGroup, place: TrialPlace, rows: int, rounds: int, kill_after: int | None
) -> Trained:
    """Train in the actors of a placement group, whose first bundle this process is in.

    model: "xgboost" or "xgboost_ray". kill_after: the step after which an actor is killed; None kills none.
    """
    os.environ["RXGB_ELASTIC_RESTART_RESOURCE_CHECK_S"] = "1"  # else a lost actor is taken back after half a minute
    train, unseen = rows_of(rows, 0), rows_of(1_000, 1)
    config = {"n_estimators": rounds, "max_depth": 4, "learning_rate": 0.05}
    before, began = set(siblings(model)), time.monotonic()
    training: Any = families()[model].train(place, {**config, **asdict(worker_group)}, [train], TASK, SEED, [None])
    steps, last, first, kill = list[int](), b"", 0.0, _Kill()
    try:
        for (said,) in training:
            last, first = said, first or time.monotonic() - began
            steps.append(XGBOOST.load("", said).num_boosted_rounds())
            if len(steps) == kill_after:
                kill.begin(max(set(siblings(model)) - before), steps)
        total = time.monotonic() - began
        begun, actors = _figures(training)
    finally:
        training.close()
    expected = XGBOOST.predict(XGBOOST.fit(config, train, TASK, SEED), unseen, TASK).values
    distance = np.abs(XGBOOST.predict(XGBOOST.load("", last), unseen, TASK).values - expected).max() / expected.std()
    after = [at for at, _ in begun if at > kill.at > 0]
    return Trained(
        steps=tuple(steps),
        starts=tuple(rounds for _, rounds in begun),
        actors=actors,
        first_s=first,
        total_s=total - (HALT_S if kill_after else 0.0),
        told=kill.told,
        again_s=after[0] - kill.at if after else 0.0,
        distance=float(distance),
    )


class _Kill:
    """Halts a process and ends it a while later. at: when it has; told: the last of the steps by then."""

    at, told = 0.0, 0

    def begin(self, pid: int, steps: list[int]) -> None:
        os.kill(pid, signal.SIGSTOP)
        threading.Timer(HALT_S, self._end, (pid, steps)).start()

    def _end(self, pid: int, steps: list[int]) -> None:
        self.at, self.told = time.monotonic(), steps[-1]
        os.kill(pid, signal.SIGKILL)


def _figures(training: Any) -> tuple[list[tuple[float, int]], int]:
    """When training began and after how many rounds, each time, and how many actors it has started."""
    if hasattr(training, "trainings"):  # of XGBoost-Ray
        (one,) = training.trainings
        return one.beginnings, sum("RayXGBoostActor" in str(each) for each in one.actors)
    return training.beginnings, training.starts


def processes(model: str) -> list[int]:
    """The processes of a model's actors on this machine, of any Ray."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _name(pid).startswith(ACTORS[model])]


def siblings(model: str) -> list[int]:
    """The processes of a model's actors that were started by who started this worker: Ray on this machine."""
    return [pid for pid in processes(model) if _parent(pid) == os.getppid()]


def _name(pid: int) -> str:
    return _proc_file(pid, "cmdline").split("\0")[0]


def _parent(pid: int) -> int:
    lines = [line for line in _proc_file(pid, "status").splitlines() if line.startswith("PPid:")]
    return int(lines[0].split()[1]) if lines else 0


def _proc_file(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:  # it has ended meanwhile
        return ""


def run(model: str, worker_group: ActorGroup, rows: int, rounds: int, kill_after: int | None = None) -> Trained:
    """`trained` by a worker of the cluster that this process is connected to."""
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    group = ray.util.placement_group([{"CPU": worker_group.cpus_per_actor}, *worker_group.bundles])
    placed = PlacementGroupSchedulingStrategy(group, 0)
    with tempfile.TemporaryDirectory() as folder:
        try:
            task = ray.remote(trained).options(num_cpus=0, max_retries=0, scheduling_strategy=placed)
            place = TrialPlace(group, folder, "shards", USUAL.actor_start_s)
            found: Trained = ray.get(task.remote(model, worker_group, place, rows, rounds, kill_after))
        finally:
            ray.util.remove_placement_group(group)
    return found


@click.command(help=(__doc__ or "").replace("\n    python", "\n\n    python"))
@click.option("--rows", default=200_000, show_default=True)
@click.option("--rounds", default=400, show_default=True, help="Of ten a step.")
@click.option("--actors", default=2, show_default=True)
@click.option("--model", "models", type=click.Choice(list(ACTORS)), multiple=True, default=list(ACTORS))
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(rows: int, rounds: int, actors: int, models: Sequence[str], output: str) -> None:
    import ray

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    ray.init(address="local", num_cpus=actors + 1, include_dashboard=False, log_to_driver=False)
    load, found = os.getloadavg()[0], list[dict[str, Any]]()
    click.echo(f"{rows:,} rows, {rounds} rounds, {actors} actors, load {load:.1f}", err=output == "json")
    for model in models:
        undisturbed: Trained | None = None
        for recovery in ("", *RECOVERIES):
            worker_group = ActorGroup.of({"actors": actors, "recovery": recovery or "warm"})
            one = run(model, worker_group, rows, rounds, rounds // 20 if recovery else None)
            undisturbed = undisturbed or one
            figures = {
                "first_step_s": round(one.first_s, 2),
                "total_s": round(one.total_s, 2),
                "seconds_lost": round(one.total_s - undisturbed.total_s, 2),
                "again_after_s": round(one.again_s, 2),
                "rounds_lost_at_most": one.rounds_lost,
                "actors_in_all": one.actors,
                "distance": one.distance,
            }
            found.append({"model": model, "recovery": recovery or NOTHING, **figures})
            click.echo(
                f"{model:12} {recovery or NOTHING:15} first step {one.first_s:5.1f} s, in all {one.total_s:5.1f} s; "
                f"lost {figures['seconds_lost']:5.1f} s and at most {one.rounds_lost} rounds, on after "
                f"{one.again_s:.1f} s; {one.actors} actors in all; off {one.distance:.1e}",
                err=output == "json",
            )
    ray.shutdown()
    if output == "json":
        click.echo(
            json.dumps({"rows": rows, "rounds": rounds, "actors": actors, "load": round(load, 1), "runs": found})
        )


if __name__ == "__main__":
    main()
