"""The run in a driver of its own, watched from outside; killed with everything it started, and resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.million.alone import CommandError, environment, python, stamp
from benchmarks.process_tree import Usage, watching

LOOK_S, SAY_S, SAMPLE_S = 1.0, 60.0, 0.5
FINE = (0, 3)  # exit codes of a run: all customers have a model, or some have none


@dataclass
class Driver:
    """One process that owned the run. Moments are seconds since 1970.

    first: when its first record was there. last: when its last look found another one. ended: of the process. code:
    its exit code. usage: of all its processes.
    """

    usage: Usage
    began: float
    first: float = 0.0
    last: float = 0.0
    ended: float = 0.0
    code: int | None = None

    @property
    def core_seconds(self) -> dict[str, float]:
        """By process."""
        return self.usage.cpu(self.began, self.ended)

    def driver_mb(self, begin: float, end: float) -> float:
        """Resident in the driver's own process, the mean between two moments."""
        return self.usage.resident(begin, end).get("driver", 0.0) / 1e6

    @property
    def most_mb(self) -> float:
        """The most that the driver's own process ever had resident."""
        return max((resident.get(self.usage.root, 0) for _, _, resident in self.usage.samples), default=0) / 1e6

    @property
    def tenths(self) -> list[float]:
        """MB resident in the driver in each tenth of the time between its first and its last record."""
        if not self.first:
            return [0.0] * 10
        step = (self.last - self.first) / 10
        return [round(self.driver_mb(self.first + n * step, self.first + (n + 1) * step), 1) for n in range(10)]


@dataclass
class Records:
    """How many studies are recorded in a run directory, by the footers of its parts; each part is read once."""

    folder: Path
    studies: int = 0
    known: set[str] = field(default_factory=set)
    when: float = 0.0  # the newest of them was written

    def look(self) -> bool:
        """Count what is new, if anything is."""
        import pyarrow.parquet as pq

        parts = {entry.path for term in _entries(self.folder) for entry in _entries(Path(term.path))}
        new = sorted(part for part in parts - self.known if part.endswith(".parquet"))
        for part in new:
            self.known.add(part)
            if Path(part).name.startswith("studies-"):
                self.studies += pq.read_metadata(part).num_rows
        if new:
            self.when = time.time()
        return bool(new)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except FileNotFoundError:
        return []


def search(work: Path, words: list[str], customers: int, enough: int | None = None) -> Driver:
    """Run `tuning …` until it ends, or until so many studies are recorded: then everything is killed at once."""
    records = Records(work / "run" / "records")
    records.look()
    with _started(work, words) as (child, driver):
        said = time.monotonic()
        while child.poll() is None:
            time.sleep(LOOK_S if customers > 10_000 else 0.1)
            if records.look():
                driver.first = driver.first or records.when
                driver.last = records.when
            if enough is not None and records.studies >= enough and driver.first:
                _kill(child)
                break
            if time.monotonic() - said >= SAY_S:
                said += SAY_S
                _say(records, driver, customers)
        driver.code = child.wait()
        driver.ended = time.time()
    if enough is None and driver.code not in FINE:
        told = (work / "driver.log").read_text(errors="replace")[-2000:]
        raise CommandError(f"tuning {' '.join(words)} ended with code {driver.code}:\n{told}")
    return driver


@contextmanager
def _started(work: Path, words: list[str]) -> Iterator[tuple[subprocess.Popen[bytes], Driver]]:
    """A driver at the head of a process group; whatever happens here, nothing of it is left."""
    with open(work / "driver.log", "ab") as log:
        child = subprocess.Popen(
            python("tuning.cli", *words), stdout=log, stderr=log, env=environment(), start_new_session=True
        )
        began = time.time()
        with watching(child.pid, SAMPLE_S) as usage:
            try:
                yield child, Driver(usage, began)
            finally:
                if child.poll() is None:
                    _kill(child)


def _kill(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


def _say(records: Records, driver: Driver, customers: int) -> None:
    """One line of progress."""
    now = time.time()
    took = max(1e-9, now - driver.began)
    mb = driver.driver_mb(now - 2, now)
    pace = records.studies / took
    print(
        f"{stamp()} {records.studies:,} of {customers:,} customers recorded after {took / 60:.1f} min of this driver, "
        f"{pace:.0f} a second, {len(records.known):,} parts, driver {mb:.0f} MB",
        file=sys.stderr,
        flush=True,
    )
