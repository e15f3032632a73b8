"""Whether one driver keeps up with a thousand workers, and what it runs into next.

    python -m benchmarks.thousand_workers                     two to four minutes
    python -m benchmarks.thousand_workers --output json       one JSON object last

A thousand real workers do not fit on one machine, so fewer make their load. Each of them would write two parts every
125 seconds (`Timing.of_run`) and report them; batches end and begin. Here a few actors report through the run's own
Tuner (its search algorithm, scheduler, callbacks, stopper) at that rate, and as fast as they can. `*_core_ms` are CPU
time of the driver's process, all its threads; `*_per_s` is what it can do at most. `live_actor_core` is the share of a
core that an actor costs which does nothing. The rest is what grows with the files of a run: a look for new parts (in
MLflow's process), a beat of the lease, a batch's look for its earlier parts (in a worker).
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from tuning.basics.timing import USUAL
from tuning.definition.options import Resources
from tuning.driver.cluster import start_ray
from tuning.driver.hosts.base import StopConditions
from tuning.driver.hosts.tune_workers import TuneWorkers
from tuning.driver.signals import Signals
from tuning.driver.tuner import build_tuner, run_queue
from tuning.execution import bridge
from tuning.execution.jobs import BatchJob, job_in
from tuning.execution.reports import report_to_tune
from tuning.planning.capacity import Capacity
from tuning.records.lease import Lease
from tuning.records.ownership import claim
from tuning.records.parts import TRIALS, PartWritten, batch_parts, part_name
from tuning.runs.progress import Counter, Progress
from tuning.storage.run_directory import RunDirectory
from tuning.tracking.follow import RunParts

WORKERS, STUDIES = 1000, 1_000_000
KINDS = ("trials", "studies")
WRITTEN = {
    "trials": PartWritten("", trials=100, work=51_000.0, best=0.5),
    "studies": PartWritten("", studies=100, work=102_000.0, gains=tuple(0.01 * number for number in range(100))),
}
SPEC = SimpleNamespace(
    definition=SimpleNamespace(objective=None, limits=SimpleNamespace(crashes_before_quarantine=2), loggers=())
)


def worker(reports: int, pause: float) -> Callable[[dict[str, Any]], None]:
    """A trainable that works through a batch as a packed worker reports it: pairs of parts, each after a pause."""

    def work(config: dict[str, Any]) -> None:
        job = job_in(config)
        assert isinstance(job, BatchJob)
        for _ in range(reports):
            time.sleep(pause)
            for kind in KINDS:
                data = f"{job.batch} {time.time_ns()}".encode()
                name = part_name("0001-00000000", job.batch, kind, data)
                report_to_tune(replace(WRITTEN[kind], part=name))

    return work


class Watched:
    """What the driver heard, and what it took meanwhile, from the first report to the last."""

    def __init__(self, counter: Counter) -> None:
        self.counter = counter
        self.heard = 0
        self.marks: list[tuple[float, float, int]] = []  # when, CPU seconds so far, reports so far

    def __call__(self, result: Any) -> None:
        self.counter(result)
        self.heard += 1
        self.marks.append((time.monotonic(), time.process_time(), self.heard))

    def steady(self, skip: float = 0.2) -> tuple[float, float, int]:
        """(seconds, CPU seconds, reports) without the first and the last part of them, when workers start and end."""
        first, last = (self.marks[int(share * (len(self.marks) - 1))] for share in (skip, 1 - skip / 2))
        return last[0] - first[0], last[1] - first[1], last[2] - first[2]


def tuned(folder: Path, actors: int, batches: int, reports: int, pause: float) -> Watched:
    """Run the run's own Tuner over batches whose workers only report."""
    directory = RunDirectory(folder / f"run-{actors}-{batches}-{reports}")
    directory.create()
    term = claim(directory, 1, (), 3, 0.0)
    plan = SimpleNamespace(
        slots=actors,
        studies=range(100 * batches),
        resources=[Resources(cpus=1)] * batches,
        spread_at_once=lambda _: 1,
        helpers=0,
        spec=SPEC,
    )
    spread: Any = SimpleNamespace(job_of=None, capacity=Capacity(lambda: [{"CPU": actors}]), report=None)
    owned: Any = SimpleNamespace(plan=plan, term=term, timing=USUAL, directory=directory, run="thousand")
    with Lease(directory, term).hold() as lease:
        counter = Counter(Progress(trials=batches * reports * 100, studies=batches))
        watched = Watched(counter)
        workers = TuneWorkers(StopConditions(lease, Signals()), watched)
        with _workers_that(worker(reports, pause)), contextlib.redirect_stdout(io.StringIO()):
            build_tuner(owned, run_queue(owned, spread), 0, workers, [workers]).fit()
        workers.kill()
    return watched


@contextlib.contextmanager
def _workers_that(work: Callable[[dict[str, Any]], None]) -> Any:
    """Workers do that instead of searching."""
    before = bridge.run_trainable

    def instead(*words: Any) -> Any:
        work.__name__ = words[2]
        return work

    bridge.run_trainable = instead
    try:
        yield
    finally:
        bridge.run_trainable = before


def of_tune(folder: Path, actors: int) -> dict[str, float]:
    """Costs of a report, of a batch and of an actor that lives, by running at three loads."""
    plan: Any = SimpleNamespace(slots=actors, spec=SPEC)
    start_ray(plan)
    few = min(4, actors)
    busy_seconds, busy_core, reports = tuned(folder, few, few, 400, 0.0).steady()
    per_report = busy_core / reports
    batch_seconds, batch_core, of_batches = tuned(folder, few, 50 * few, 1, 0.0).steady()
    batches = of_batches / len(KINDS)
    # The rate of a thousand workers, from few and from many actors: what differs is what an actor costs.
    shares = []
    rate = len(KINDS) * WORKERS / USUAL.of_run(WORKERS, STUDIES).parts_s
    for number in (few, actors):
        seconds, core, heard = tuned(
            folder, number, number, max(4, int(20 * rate / 2 / number)), 2 * number / rate
        ).steady()
        shares.append((core - per_report * heard) / seconds)
    per_actor = (shares[1] - shares[0]) / (actors - few) if actors > few else 0.0
    return {
        "report_core_ms": 1000 * per_report,
        "reports_per_s": reports / busy_seconds,
        "batch_core_ms": 1000 * (batch_core / batches - len(KINDS) * per_report),
        "batches_per_s": batches / batch_seconds,
        "idle_core": shares[0],
        "live_actor_core": per_actor,
        "reports_per_s_of_workers": rate,
    }


def of_listener(reports: int = 200_000) -> float:
    """µs that our own listener takes for a report."""
    names = [part_name("0001-00000000", number % 8000, TRIALS, str(number).encode()) for number in range(reports)]
    counter = Counter(Progress(trials=reports, studies=reports))
    began = time.process_time()
    for name in names:
        counter(replace(WRITTEN["trials"], part=name))
    return 1e6 * (time.process_time() - began) / reports


def of_files(folder: Path, parts: int) -> dict[str, float]:
    """ms of what is done again and again in a run with so many parts."""
    directory = RunDirectory(folder / "files")
    directory.create()
    term = claim(directory, 1, (), 3, 0.0)
    records = folder / "files" / term.records
    records.mkdir(parents=True)
    for number in range(parts):
        kind = KINDS[number % 2]
        (folder / "files" / part_name(term.folder, number // 2 % 8000, kind, str(number).encode())).touch()
    with Lease(directory, term).hold() as lease:
        followed = RunParts(directory, term, threading.Event())
        return {
            "look_for_parts_ms": _ms(followed.look),
            "batch_start_ms": _ms(lambda: batch_parts(directory, term, 7)),
            "lease_beat_ms": _ms(lambda: (lease._beat(), lease._look())),
        }


def _ms(action: Callable[[], object], times: int = 7) -> float:
    """CPU time of a call, the median."""
    took = []
    for _ in range(times):
        began = time.process_time()
        action()
        took.append(1000 * (time.process_time() - began))
    return sorted(took)[times // 2]


@click.command()
@click.option("--actors", type=click.IntRange(2), default=24, show_default=True, help="Real actors at most.")
@click.option("--parts", type=click.IntRange(1), default=20_000, show_default=True, help="Record parts of the run.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(actors: int, parts: int, output: str) -> None:
    """Measure what a thousand workers would cost their driver."""
    logging.getLogger("ray").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(prefix="thousand-") as name:
        figures = {"listener_us": of_listener(), **of_files(Path(name), parts)}
        print(f"without Ray: {figures}", file=sys.stderr, flush=True)
        figures |= of_tune(Path(name), actors)
    rate, batches = figures["reports_per_s_of_workers"], WORKERS / USUAL.of_run(WORKERS, STUDIES).parts_s
    figures["driver_core_of_workers"] = (
        figures["idle_core"]
        + WORKERS * figures["live_actor_core"]
        + rate * figures["report_core_ms"] / 1000
        + batches * figures["batch_core_ms"] / 1000
    )
    rounded = {name: round(value, 4) for name, value in figures.items()}
    if output == "json":
        print(json.dumps({"actors": actors, "parts": parts, **rounded}))
    else:
        for name, value in rounded.items():
            print(f"{name:28} {value}")


if __name__ == "__main__":
    main()
