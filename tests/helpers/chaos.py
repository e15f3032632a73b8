"""Shared by the tests that break things: small definitions, crashes at chosen moments, and comparing two runs."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import pandas as pd
import pyarrow as pa
from builders import SPACE, valley
from warm_children import run_script

from tuning import RunResult, TuneRunner
from tuning.records.figures import STUDY_FIGURES, TRIAL_FIGURES
from tuning.records.ownership import LEASES
from tuning.runs.progress import PROGRESS
from tuning.storage.run_directory import RunDirectory

# What may differ between two executions of the same search: times, places, and how often it was tried.
CLOCK = {each.name for each in (*STUDY_FIGURES, *TRIAL_FIGURES) if each.clock}
TIMES = CLOCK | {"run", "worker", "attempt", "model_path"}


class Crash(BaseException):
    """The process ends here; nothing in the product may catch it."""


def truth(result: RunResult) -> dict[str, Any]:
    """Everything that a run found out, without times and places: equal for equal searches."""
    trials = [_without_times(asdict(record)) for record in result.trial_records]
    studies = [_without_times(asdict(record)) for record in result.study_records]
    board = result.leaderboard().drop(columns=TIMES, errors="ignore").astype({"held_back": float})  # as it is with gaps
    return {"trials": trials, "studies": studies, "board": [_without_times(row) for row in board.to_dict("records")]}


def _without_times(row: dict[str, Any]) -> dict[str, Any]:
    row = {key: value for key, value in row.items() if key not in TIMES}
    if "steps" in row:
        row["steps"] = [{key: value for key, value in step.items() if key != "seconds"} for step in row["steps"]]
    return {key: repr(value) for key, value in row.items()}  # repr: NaN equals NaN, and every digit counts


def duplicates(result: RunResult) -> list[Any]:
    """Keys that stand in more than one accepted part."""
    from tuning.records.parts import TRIALS, accepted, intact, of_kind
    from tuning.records.tables import decode

    names = of_kind(accepted(result.directory, result.term), TRIALS)
    counts = Counter(record.key for name in names for record in decode(intact(result.directory, name)))
    return [key for key, count in counts.items() if count > 1]


@contextmanager
def crashing(monkeypatch: Any, after: int, when: str = "after", only: str = "") -> Iterator[list[str]]:
    """End the process at the n-th durable step (from 1): before it, in the middle of it, or after it.

    only: steps whose file name has this in it count. Gives the names of the steps that were reached.
    """
    reached: list[str] = []
    ended: list[str] = []

    def end(name: str) -> None:
        ended.append(name)
        raise Crash(name)

    def broken(action: Callable[..., None]) -> Callable[..., None]:
        def step(self: RunDirectory, name: str, given: bytes | Iterable[bytes]) -> None:
            by_a_clock = name == PROGRESS or name.startswith(f"{LEASES}/")
            if ended and by_a_clock:
                return None  # in a thread that has ended with its process
            if ended:
                raise Crash(f"a process that had ended wrote {name}")
            data = bytes(given) if isinstance(given, bytes | pa.Buffer) else list(given)
            if only not in name or by_a_clock:
                return action(self, name, data)
            reached.append(name)
            here = len(reached) == after
            if here and when == "during":
                _half_written(self, name, data if isinstance(data, bytes) else b"".join(data))
            if here and when in ("before", "during"):
                end(name)
            action(self, name, data)
            if here:
                end(name)
            return None

        return step

    with monkeypatch.context() as patch:
        patch.setattr(RunDirectory, "write", broken(RunDirectory.write))
        patch.setattr(RunDirectory, "write_pieces", broken(RunDirectory.write_pieces))
        patch.setattr(RunDirectory, "claim", broken(RunDirectory.claim))
        yield reached


def _half_written(directory: RunDirectory, name: str, data: bytes) -> None:
    """What a process that ends within a write leaves behind: half of a temporary file."""
    from tuning.storage.backend import TEMPORARY

    path = Path(directory.path(name))
    path.parent.mkdir(parents=True, exist_ok=True)
    (path.parent / f"{TEMPORARY}{len(data)}").write_bytes(data[: len(data) // 2])


def figure(text: str) -> None:
    """A measured figure, for whoever runs `make chaos` (pytest shows it with `-s` or `-rP`)."""
    print(f"FIGURE {text}")


def promised(text: str, value: float, most: float) -> None:
    """A figure that users were promised: shown like others, and an error where it is above `most`.

    `most` is for a machine without other work. With more processes than its cores and this test have use for, seconds
    get longer, and the limit with them: two for each core are the test's own.
    """
    crowd = max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1) - 1.0)
    figure(f"{text} (promised: {most:g}; load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores)")
    assert value <= most * crowd, f"{text}: {value:.2f} is more than {most:g} × {crowd:.1f}, for a load so high"


def seed_of(test: str) -> int:
    """A new seed, printed so that a failure can be repeated with the environment variable CHAOS_SEED."""
    import random

    seed = int(os.environ.get("CHAOS_SEED") or random.randrange(10**6))
    print(f"CHAOS_SEED={seed} ({test})")
    return seed


def paced(config: Mapping[str, float], seed: int) -> float:
    """`valley` that takes the seconds in CHAOS_PAUSE, and notes its process and the one above in the file CHAOS_LOG.

    From the trial CHAOS_HOLD on it waits until trials have run below three processes: Ray's of three nodes.
    """
    if log := os.environ.get("CHAOS_LOG"):
        with open(log, "a") as lines:
            lines.write(f"{os.getpid()} {os.getppid()} {config['x']!r} {seed}\n")
        held = int(os.environ.get("CHAOS_HOLD") or 2**62)
        while len(parents := parents_of(Path(log))) >= held and len(set(parents)) < 3:
            time.sleep(0.05)
    time.sleep(float(os.environ.get("CHAOS_PAUSE") or 0))
    return valley(config, seed)


def parents_of(log: Path) -> list[str]:
    """The process above that of each trial which `paced` noted."""
    return [line.split()[1] for line in log.read_text().splitlines()] if log.exists() else []


def command(folder: Path, *arguments: str, **variables: str) -> subprocess.Popen[bytes]:
    """The command `tuning` in a process group of its own; its stderr goes to `folder`/err."""
    tests = str(Path(__file__).resolve().parent)
    base = environment()
    path = os.pathsep.join([base["PYTHONPATH"], tests])  # workers import objectives from here
    with (folder / "err").open("wb") as err:
        return subprocess.Popen(
            [sys.executable, "-m", "tuning.cli", *arguments],
            env={**base, "PYTHONPATH": path, **variables},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=err,
            start_new_session=True,
        )


def wait_for(condition: Callable[[], Any], seconds: float = 300.0, what: str = "") -> Any:
    """What `condition` gives once it is true; an error when that takes too long."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = condition()
        if found:
            return found
        time.sleep(0.02)
    raise AssertionError(f"{what or condition} did not come true within {seconds:g} s")


def environment() -> dict[str, str]:
    """For a driver in a process of its own: this checkout, no Ray token, no telemetry."""
    root = str(Path(__file__).resolve().parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join([root, *sys.path[:0]]), "RAY_AUTH_MODE": "disabled"}


def supervised(runner: TuneRunner, run: str, *options: str) -> dict[str, Any]:
    """Begin a run and let `tests/helpers/supervisor.py` work through it; gives what that prints."""
    import json

    from tuning.runs.begin import begin, resume_run

    owned = resume_run(RunDirectory(run)) if Path(run).exists() else begin(runner.definition, run)
    owned.lease.release()
    done = run_script(Path(__file__).with_name("supervisor.py"), run, *options)
    assert done.returncode == 0, done.stderr[-3000:]
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


# What a poisoned customer's trials do, by the word in its first row; healthy ones have "none" there.
POISON = ("exception", "nan", "segfault", "exit", "loop", "loop_in_c", "memory", "abort")
ENDING = ("segfault", "exit", "loop", "loop_in_c", "abort")  # of these, what ends its worker, or hangs it
POISONED_FILES = ("unreadable", "rows")  # no text at all; more rows than `limits.max_rows: 50` allows


@cache
def _begins(process: int) -> None:
    _note("begins")


def _note(what: str) -> None:
    """A line in the file CHAOS_NOTES: when, which process, and what."""
    if notes := os.environ.get("CHAOS_NOTES"):
        with open(notes, "a") as lines:
            lines.write(f"{time.time()} {os.getpid()} {what}\n")


def _end_soon() -> None:
    """Let the watchdog end this trial in a second, where trials have a limit.

    The limit itself can then be so high that no healthy trial comes near it, however slow the machine is.
    """
    from tuning.execution.worker import Worker

    frame: FrameType | None = sys._getframe()
    while frame is not None:
        worker = frame.f_locals.get("worker")
        if isinstance(worker, Worker) and worker.context.spec.definition.limits.trial_seconds is not None:
            worker.guard.part(1.0)
            return
        frame = frame.f_back


def hazard(config: Mapping[str, float], data: pd.DataFrame, seed: int) -> Iterator[float]:
    """An objective of two steps that does what the customer's data says, in about every second trial.

    It notes when a process begins with it, and when what ends or hangs its process does so (`spent`).
    """
    import ctypes

    _begins(os.getpid())
    kind = str(data["kind"].iloc[0])
    yield valley(config, seed) + 1
    if config["x"] > 0.3 and kind in POISON:
        if kind in ENDING:
            _note("ends")
        if kind == "exception":
            raise ValueError("poison")
        if kind == "nan":
            yield float("nan")
        if kind == "segfault":
            ctypes.string_at(0)
        if kind == "exit":
            os._exit(3)
        if kind == "abort":
            os.abort()
        if kind == "memory":
            bytearray(2**42)
        if kind in ("loop", "loop_in_c"):
            _end_soon()
        while kind == "loop_in_c":
            ctypes.PyDLL(None).sleep(2**30)  # keeps the interpreter to itself, but no core busy
        while kind == "loop":
            time.sleep(0.1)
    yield valley(config, seed) + 0.1 * float(data["shift"].mean())


@dataclass(frozen=True)
class Spent:
    """What a run's slots spent their time on, in seconds of one slot, from its first record to its last.

    worked: on studies that are recorded. lost: from where a trial ended or hung its worker until a new process did
    something. rest: idle, between studies, and on trials that were run again. replaced: how often a process was new.
    held: seconds that the run is longer for what was lost. Half of it where the other one of two slots works, all of it
    where nobody has anything else to do: at the end.
    """

    worked: float
    lost: float
    rest: float
    replaced: int
    held: float

    def __str__(self) -> str:
        lost = f"{self.lost:.1f} s lost at {self.replaced} restarts, for which the run waited {self.held:.1f} s"
        return f"{self.worked:.1f} s of work, {lost}, {self.rest:.1f} s else"


def spent(result: RunResult, notes: Path, slots: int) -> Spent:
    """Of a run of `hazard` with the file CHAOS_NOTES.

    A process that begins stands in for the one that ended last, of those for which none stands in yet: where a free
    worker has done that, nothing is lost.
    """
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    last: dict[str, float] = {}
    for line in notes.read_text().splitlines():
        at, process, what = line.split()
        (began if what == "begins" else ended)[process] = float(at)
    records = result.study_records
    for record in records:
        process = record.worker.rpartition(":")[2]
        began[process] = min(began.get(process, math.inf), record.started)
        last[process] = max(last.get(process, 0.0), record.started + record.seconds)
    gaps: list[tuple[float, float]] = []
    alone: list[float] = []
    for at in sorted([*sorted(began.values())[slots:], *ended.values()]):
        if at in ended.values():
            alone.append(at)
        elif alone:
            gaps.append((alone.pop(), at))
    worked, lost = sum(record.seconds for record in records), sum(end - start for start, end in gaps)
    whole = slots * (max(last.values()) - min(began.values()))
    alive = [(start, ended.get(process, last.get(process, start))) for process, start in began.items()]
    return Spent(worked, lost, whole - worked - lost, len(gaps), _held(gaps, alive))


def _held(gaps: list[tuple[float, float]], alive: list[tuple[float, float]]) -> float:
    held = 0.0
    for start, end in pairwise(sorted({at for each in [*gaps, *alive] for at in each})):
        out, there = (sum(since <= start < until for since, until in those) for those in (gaps, alive))
        held += (end - start) * out / max(1, out + there)
    return held


def write_hazards(folder: Path, customers: int, poisoned: Mapping[int, str]) -> None:
    """Customers for `hazard`; those at the positions in `poisoned` are of that kind."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(customers):
        kind = poisoned.get(number, "none")
        rows = "".join(f"{kind},{number + row / 10}\n" for row in range(99 if kind == "rows" else 3))
        content = f"kind,shift\n{rows}".encode()
        (folder / f"c{number:04d}.csv").write_bytes(b"\xff\xfe\x00" if kind == "unreadable" else content)


def hazards(folder: Path, **fields: Any) -> TuneRunner:
    """A runner over the customers that `write_hazards` made."""
    base = {"data": str(folder / "*.csv"), "objective": "chaos:hazard", "steps": 2, "trials": 10, "slots": 2}
    base |= {"scheduler": "fifo", "placement": "packed"}
    return TuneRunner(
        **{**base, "search_space": SPACE, "metric": "loss", "mode": "min", "seed": 3, "mlflow": False, **fields}
    )
