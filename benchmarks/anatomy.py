"""Where one worker's time goes, part by part: a batch of studies in this process, without Ray.

    python -m benchmarks.anatomy --tier S --customers 30
    python -m benchmarks.anatomy --tier T --customers 500 --output json      core-ms per customer by phase

CPU time of the thread is hardly touched by what else runs on the machine, so this is the tool for a busy one.
Each part's time is its own: what it calls and is listed as well is not in it. What other threads do (they write
models) is one line of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from benchmarks.workload import ONE_THREAD, OWN, TIERS, TRIALS, Scenario, definition, make_workload

# part → the functions that it consists of
PARTS = {
    "read the file": ("tuning.data.loading:Loader.read",),
    "split, find columns": ("tuning.study.customer_data:study_data",),
    "encode": ("tuning.evaluation.study_data:StudyData.folds", "tuning.evaluation.study_data:StudyData.whole"),
    "fit": ("tuning.study.local_trial:LocalTrial.pull",),
    "score": ("tuning.evaluation.metrics:Metric.score",),
    "sampler": (
        "search_spaces.searcher:StudySearcher.suggest",
        "search_spaces.searcher:StudySearcher.on_trial_complete",
        "search_spaces.algorithms.base:Algorithm.build",
    ),
    "scheduler": ("tuning.study.core:StudyCore.on_trial_result",),
    "refit the winner": ("tuning.execution.study_run:conclude", "tuning.execution.study_run:fitted_on_all"),
    "save the model": ("tuning.models.customer_model:CustomerModel.save",),
    "encode records": ("tuning.execution.reports:encode",),
    "write files": ("tuning.storage.run_directory:RunDirectory.write",),
    "records and loop": ("tuning.execution.study_run:run_study", "tuning.execution.packed:work_batch"),
}
# The same by what it is for: everything that happens while a winner is refitted belongs to refitting.
REFIT = "refit the winner"
PHASES = {
    "reading": ("read the file",),
    "preparing": ("split, find columns", "encode"),
    "searching": ("fit", "score", "sampler", "scheduler"),
    "refitting": (REFIT,),
    "saving": ("save the model",),
    "recording": ("encode records", "write files", "records and loop"),
}


@dataclass
class Stopwatch:
    """Own CPU and wall seconds of nested parts, CPU seconds of phases, and how often each part was entered."""

    cpu: dict[str, float] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    wall: dict[str, float] = field(default_factory=dict)
    calls: dict[str, int] = field(default_factory=dict)
    _stack: list[str] = field(default_factory=list)
    _mark: tuple[float, float] = (0.0, 0.0)
    _thread: int = field(default_factory=threading.get_ident)

    @property
    def here(self) -> bool:
        """Whether this is the thread that is watched."""
        return threading.get_ident() == self._thread

    def enter(self, part: str) -> None:
        self._book()
        self._stack.append(part)
        self.calls[part] = self.calls.get(part, 0) + 1

    def leave(self) -> None:
        self._book()
        self._stack.pop()

    def _book(self) -> None:
        now = (time.thread_time(), time.perf_counter())
        if self._stack:
            part = self._stack[-1]
            self.cpu[part] = self.cpu.get(part, 0.0) + now[0] - self._mark[0]
            phase = _phase(REFIT if REFIT in self._stack else part)
            self.phases[phase] = self.phases.get(phase, 0.0) + now[0] - self._mark[0]
            self.wall[part] = self.wall.get(part, 0.0) + now[1] - self._mark[1]
        self._mark = now


def _phase(part: str) -> str:
    return next(phase for phase, parts in PHASES.items() if part in parts)


@contextmanager
def timed(watch: Stopwatch) -> Iterator[None]:
    """Every function of `PARTS` reports to the watch until the block ends."""
    with ExitStack() as stack:
        for part, names in PARTS.items():
            for name in names:
                module, _, path = name.partition(":")
                owner: Any = importlib.import_module(module)
                *outer, attribute = path.split(".")
                for step in outer:
                    owner = getattr(owner, step)
                original = getattr(owner, attribute)
                setattr(owner, attribute, _wrapped(original, part, watch))
                stack.callback(setattr, owner, attribute, original)
        yield


def _wrapped(function: Callable[..., Any], part: str, watch: Stopwatch) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if not watch.here:
            return function(*args, **kwargs)
        watch.enter(part)
        try:
            answer = function(*args, **kwargs)
        finally:
            watch.leave()
        return _resumed(answer, part, watch) if hasattr(answer, "send") else answer

    return call


def _resumed(generator: Any, part: str, watch: Stopwatch) -> Iterator[Any]:
    while True:
        watch.enter(part)
        try:
            item = next(generator, watch)
        finally:
            watch.leave()
        if item is watch:
            return
        yield item


def dissect(tier: str, customers: int, trials: int, search: str, folder: Path) -> tuple[Stopwatch, float]:
    """The parts of a worker that is warm already, and the CPU seconds of its other threads."""
    from tuning.execution import packed
    from tuning.execution.worker import WorkerRun
    from tuning.runs.begin import begin

    watch, others = Stopwatch(), 0.0
    for number, count in enumerate((2, customers)):
        work = folder / f"work{number}"
        ids = make_workload(work, TIERS[tier], count, trials)
        wanted = definition(Scenario(tier, str(work), ids, trials, search, 1), mlflow=False)
        owned = begin(wanted, str(folder / f"run{number}"))
        owned.lease.release()
        with ExitStack() as stack:
            if number == 1:
                stack.enter_context(timed(watch))
            before = time.process_time() - time.thread_time()
            for batch in range(len(owned.plan.batches)):
                packed.work_batch(WorkerRun.from_owned(owned), batch, lambda _: None)
            others = time.process_time() - time.thread_time() - before
    return watch, others


def split(watch: Stopwatch, others: float, customers: int) -> dict[str, float]:
    """Core-milliseconds per customer by phase; what other threads do is saving, too."""
    seconds = {phase: watch.phases.get(phase, 0.0) for phase in PHASES}
    seconds["saving"] += others
    return {phase: round(1000 * value / customers, 3) for phase, value in seconds.items()}


@click.command()
@click.option("--tier", type=click.Choice(sorted(TIERS)), default="S", show_default=True)
@click.option("--customers", type=click.IntRange(2), default=30, show_default=True)
@click.option("--trials", type=click.IntRange(2), help="Per customer; 20 unless told, 3 of tier T.")
@click.option("--search", type=click.Choice(["fixed", OWN]), default="fixed", show_default=True)
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def main(tier: str, customers: int, trials: int | None, search: str, output: str) -> None:
    """Print a table of the parts, or one JSON object of phases."""
    trials = trials or TRIALS.get(tier, 20)
    os.environ.update(ONE_THREAD)  # before anything numerical is loaded
    folder = Path(tempfile.mkdtemp(prefix="anatomy-"))
    try:
        watch, others = dissect(tier, customers, trials, search, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if output == "json":
        print(json.dumps(split(watch, others, customers)))
        return
    count = customers * trials
    print(f"{'part':<22}{'core-ms/trial':>14}{'wall ms/trial':>14}{'core-ms/customer':>18}{'calls':>8}")
    for part in PARTS:
        cpu, wall = watch.cpu.get(part, 0.0), watch.wall.get(part, 0.0)
        print(
            f"{part:<22}{1000 * cpu / count:>14.3f}{1000 * wall / count:>14.3f}"
            f"{1000 * cpu / customers:>18.2f}{watch.calls.get(part, 0):>8}"
        )
    print(f"{'other threads':<22}{1000 * others / count:>14.3f}{'':>14}{1000 * others / customers:>18.2f}")
    rest = others + sum(watch.cpu.values()) - watch.cpu.get("fit", 0.0) - watch.cpu.get("sampler", 0.0)
    print(f"{'all but fit, sampler':<22}{1000 * rest / count:>14.3f}")


if __name__ == "__main__":
    main()
