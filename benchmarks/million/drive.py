"""The run in a driver of its own, watched from outside; killed with its process group, and resumed."""

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

SAY_S = 60.0
MANY = 10_000  # customers; to list all their parts takes time from the run
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
    said: tuple[float, int] = (0.0, 0)  # when its number was told, and what it was
    known: set[str] = field(default_factory=set)
    earlier: set[str] = field(default_factory=set)  # folders of earlier owners: their workers may outlive them

    def look(self) -> bool:
        """Count what is new; whether any of it is of the newest owner."""
        import pyarrow.parquet as pq

        parts = {entry.path for term in _entries(self.folder) for entry in _entries(Path(term.path))}
        own = False
        for part in sorted(parts - self.known):
            with suppress(OSError, ValueError):  # what only looks must not end the run
                if Path(part).name.startswith("studies-"):
                    self.studies += pq.read_metadata(part).num_rows
                self.known.add(part)
                own |= os.path.dirname(part) not in self.earlier
        return own


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        return list(os.scandir(folder))
    except FileNotFoundError:
        return []


def search(work: Path, words: list[str], customers: int, enough: int | None = None) -> Driver:
    """Run `tuning …` until it ends, or until so many studies are recorded: then its process group is killed."""
    records = Records(work / "run" / "records")
    records.look()
    records.earlier = {os.path.dirname(part) for part in records.known}
    with _started(work, words, 1.0 if customers > MANY else 0.25) as (child, driver):
        said = looked = time.monotonic()
        while child.poll() is None:
            time.sleep(1.0 if customers > MANY else 0.1)
            seldom = customers > MANY and bool(driver.first)
            if seldom and time.monotonic() - looked < 10.0:
                continue
            looked = time.monotonic()
            if records.look():
                driver.last = time.time()
                driver.first = driver.first or driver.last
            if enough is not None and records.studies >= enough and driver.first:
                _kill(child)
                break
            if time.monotonic() - said >= SAY_S:
                said += SAY_S
                _say(records, driver, customers)
        driver.code = child.wait()
        driver.ended = time.time()
    return driver


def check_end(work: Path, driver: Driver) -> None:
    """`CommandError` when a driver that nobody killed has ended with an error."""
    if driver.code not in FINE:
        told = (work / "driver.log").read_text(errors="replace")[-2000:]
        raise CommandError(f"the run ended with code {driver.code}:\n{told}")


@contextmanager
def _started(work: Path, words: list[str], period: float) -> Iterator[tuple[subprocess.Popen[bytes], Driver]]:
    """A driver at the head of a process group; whatever happens here, nothing of it is left."""
    with open(work / "driver.log", "ab") as log:
        child = subprocess.Popen(
            python("tuning.cli", *words), stdout=log, stderr=log, env=environment(), start_new_session=True
        )
        began = time.time()
        with watching(child.pid, period) as usage:
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
    since, before = records.said
    pace = (records.studies - before) / (now - since) if since else 0.0
    records.said = (now, records.studies)
    print(
        f"{stamp()} {records.studies:,} of {customers:,} customers recorded after {(now - driver.began) / 60:.1f} min "
        f"of this driver, {pace:.0f} a second since the last line, {len(records.known):,} parts, "
        f"driver {driver.driver_mb(now - 2, now):.0f} MB",
        file=sys.stderr,
        flush=True,
    )
