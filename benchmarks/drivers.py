"""What a further driver on one machine costs: memory, seconds to its first trial, CPU, with Ray and without.

    python -m benchmarks.drivers --most 3 --output json

Each driver is a command `tuning run` of its own, on customers of its own, with one slot:

- `here`: in its own process (`--in-process`);
- `forks`: as a small run works, in a fork, without Ray (`placement: auto`);
- `ray`: with a Ray of its own (`placement: packed`).

One, two, … drivers are started at once. `mb` is what all their processes hold at most, where memory that several of
them share counts once (PSS); `resident_mb` counts it in each. `first_trial_s` is the median over the drivers of the
seconds from the start to the end of the first trial, `core_s` the CPU seconds of all processes. `further` is what each
driver after the first adds to the memory and the CPU seconds, and to the seconds until the first trial.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click

from benchmarks.first_second import definition_of
from benchmarks.million.alone import environment
from benchmarks.process_tree import watching

Figures = dict[str, float]
KINDS = {"here": ("auto", ("--in-process",)), "forks": ("auto", ()), "ray": ("packed", ())}
LOOK_S = 0.2
MB = 2**20


def measured(kind: str, drivers: int) -> Figures:
    """So many drivers at once, to their ends."""
    placement, options = KINDS[kind]
    with tempfile.TemporaryDirectory(prefix="drivers-") as folder, contextlib.ExitStack() as stack:
        started, running, usages = time.time(), [], []
        for number in range(drivers):
            place = Path(folder, str(number))
            place.mkdir()
            given = definition_of(place, placement=placement, slots=1, report=False)
            (place / "d.yaml").write_text(json.dumps(given))
            words = ["run", "d.yaml", "--run-dir", "run", "--progress", "none", "--output", "json", *options]
            command = [sys.executable, "-m", "tuning.cli", *words]
            driver = subprocess.Popen(command, cwd=place, env=environment(), stdout=subprocess.DEVNULL)
            stack.callback(driver.kill)
            running.append(driver)
            usages.append(stack.enter_context(watching(driver.pid, LOOK_S)))
        most, resident = 0.0, 0.0
        while any(driver.poll() is None for driver in running):
            pids = [pid for usage in usages for pid in (usage.samples[-1][2] if usage.samples else ())]
            most = max(most, sum(map(_shared_once, pids)))
            resident = max(resident, sum(sum(usage.samples[-1][2].values()) for usage in usages if usage.samples))
            time.sleep(LOOK_S)
        if any(driver.returncode for driver in running):
            raise click.ClickException(f"{kind}: a driver ended with {[driver.returncode for driver in running]}")
        ended = time.time()
        return {
            "drivers": drivers,
            "mb": round(most / MB, 1),
            "resident_mb": round(resident / MB, 1),
            "first_trial_s": round(statistics.median(_first_trials(Path(folder))) - started, 2),
            "seconds": round(ended - started, 2),
            "core_s": round(sum(sum(usage.cpu(started, ended).values()) for usage in usages), 2),
        }


def _shared_once(pid: int) -> int:
    """Bytes that a process holds; of memory that several share, its part. 0 when it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


def _first_trials(folder: Path) -> Iterator[float]:
    """When the first trial of each run had ended."""
    from tuning import RunResult

    for place in sorted(folder.iterdir()):
        yield min(trial.started + trial.seconds for trial in RunResult(place / "run").trial_records)


def further(found: list[Figures]) -> Figures:
    """What each driver after the first adds."""
    first, last = found[0], found[-1]
    names = ("mb", "resident_mb", "first_trial_s", "core_s")
    return {name: round((last[name] - first[name]) / (last["drivers"] - first["drivers"]), 2) for name in names}


@click.command()
@click.option("--most", type=click.IntRange(min=2), default=3, show_default=True, help="Drivers at once.")
@click.option("--only", multiple=True, type=click.Choice(list(KINDS)), help="Some of the ways to work.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def main(most: int, only: tuple[str, ...], output: str) -> None:
    """Measure one driver, two, and so on."""
    shown: dict[str, dict[str, object]] = {}
    for kind in only or KINDS:
        found = [measured(kind, drivers) for drivers in range(1, most + 1)]
        shown[kind] = {"at_once": found, "further": further(found)}
        if output == "text":
            for figures in [*found, {"drivers": 0.0, **further(found)}]:
                what = f"{figures['drivers']:.0f} at once" if figures["drivers"] else "a further one adds"
                rest = "  ".join(f"{name} {value:g}" for name, value in figures.items() if name != "drivers")
                click.echo(f"{kind:6} {what:18}  {rest}")
    if output == "json":
        click.echo(json.dumps({**shown, "load": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
