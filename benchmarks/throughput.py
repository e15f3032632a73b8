"""How fast we are: every contender on the same customers and configurations, in one run, interleaved.

    python -m benchmarks.throughput                       all tiers, both tables, scaling; says how long it will take
    python -m benchmarks.throughput --report DIR          the same, kept as tables, plot and every single figure
    python -m benchmarks.throughput --tier S --quick --output json      one tier, within four minutes

Contenders run one at a time, each in a fresh process, in the order A B … B A. The last line with `--output json` is
one JSON object; docs/benchmarks.md explains its figures.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks import report as reporting
from benchmarks.contenders import contenders
from benchmarks.measure import TooShortError, measure, pure_fits, worker_split
from benchmarks.results import TierResult
from benchmarks.schedule import (
    FULL_SECONDS,
    SCALED,
    START_S,
    Size,
    Table,
    announced,
    given_to,
    scaling_seconds,
    sized,
    tables,
    there_and_back,
)
from benchmarks.workload import BINS, FIXED, TIERS, Scenario, make_workload

SPLIT_CUSTOMERS = 1000  # at most, of those that a worker is watched part by part with


def run_table(table: Table, seconds: float, folder: Path, cores: int, tell: Callable[[str], None]) -> TierResult:
    """Measure the contenders there and back; none begins that would hardly end within these seconds."""
    began = time.monotonic()
    tier, search, size = table.tier, table.search, table.size
    place = folder / f"{tier}-{search}"
    everyone = make_workload(place, TIERS[tier], size.customers, size.trials)
    scenario = Scenario(tier, str(place), everyone, size.trials, search, cores, BINS if search == FIXED else None)
    pure: dict[str, float] = {}
    if search == FIXED:
        repeats = 3 if size.pure_customers > 1 else 1
        pure = pure_fits(replace(scenario, customers=everyone[: size.pure_customers], options={"repeats": repeats}))
        tell(f"{tier}: pure fits {1000 * pure['plain']:.2f} ms plain, {1000 * pure['prepared']:.2f} ms prepared")
    result = TierResult(tier, search, cores, size.customers, size.trials, pure)
    if TIERS[tier].keyed and "ours" in [contender.name for contender in table.contenders]:
        result.split = worker_split(tier, min(size.customers, SPLIT_CUSTOMERS), size.trials)
    for number, contender in there_and_back(table.contenders, size):
        left = seconds - (time.monotonic() - began)
        longest = max((run.total for run in result.runs.get(contender.name, [])), default=START_S)
        try:
            if longest > left:
                raise TimeoutError
            run = measure(contender, given_to(contender, scenario, size), left)
        except TimeoutError:
            result.skipped.append(f"{contender.name} in round {number}: no time left")
            tell(f"{tier} {number}: {contender.title}: no time left")
        except TooShortError as short:
            result.skipped.append(f"{contender.name} in round {number}: {short}")
            tell(f"{tier} {number}: {short}")
        else:
            result.runs.setdefault(contender.name, []).append(run)
            core_ms = 1000 * run.core_seconds
            tell(
                f"{tier} {number}: {contender.title}: {1000 * run.seconds:.2f} ms per trial, "
                f"{core_ms:.2f} core-ms ({core_ms * scenario.trials:.1f} per customer), "
                f"start-up {run.startup:.1f} s, finish {run.finish:.1f} s"
            )
    shutil.rmtree(place, ignore_errors=True)
    return result


def scaling(tier: str, size: Size, folder: Path, tell: Callable[[str], None]) -> dict[str, Any]:
    """Ours on one core and on two."""
    place = folder / f"{tier}-scaling"
    everyone = make_workload(place, TIERS[tier], size.customers, size.trials)
    ours = contenders()["ours"]
    seconds: dict[int, list[float]] = {1: [], 2: []}
    for cores in (1, 2, 2, 1):
        run = measure(ours, Scenario(tier, str(place), everyone, size.trials, FIXED, cores))
        seconds[cores].append(run.seconds)
        tell(f"{tier} on {cores}: {1000 * run.seconds:.2f} ms per trial")
    shutil.rmtree(place, ignore_errors=True)
    return {
        "tier": tier,
        "customers": size.customers,
        "seconds": seconds,
        "speedup_1_to_2": round(median(seconds[1]) / median(seconds[2]), 3),
    }


@click.command(context_settings={"max_content_width": 110})
@click.option("--tier", "tiers", multiple=True, type=click.Choice(sorted(TIERS)), help="Default: all.")
@click.option("--quick", is_flag=True, help="Fixed configurations only, fewer customers, within four minutes per tier.")
@click.option("--customers", type=click.IntRange(2), help="Instead of the tier's own number.")
@click.option("--trials", type=click.IntRange(2), help="Per customer.")
@click.option("--rounds", type=click.IntRange(1), help="There, back, there …; 2 unless told.")
@click.option("--contenders", "names", help="Only these, separated by commas.")
@click.option("--cores", type=click.IntRange(1), default=2, show_default=True)
@click.option("--folder", type=click.Path(path_type=Path), help="For the customers and runs; default: a temporary one.")
@click.option("--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write tables and plot here (results.json, .md, .png).")
def main(
    tiers: tuple[str, ...],
    quick: bool,
    customers: int | None,
    trials: int | None,
    rounds: int | None,
    names: str | None,
    cores: int,
    folder: Path | None,
    output: str,
    report: Path | None,
) -> None:
    """Measure the contenders, one after another."""

    def tell(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def keep() -> None:
        if report is not None:  # as soon as there is something: what follows may take an hour
            reporting.write(report, results, scaled)

    known = contenders()
    chosen = [known[name] for name in names.split(",")] if names else list(known.values())
    wanted = tiers or tuple(TIERS)
    sizes = {tier: sized(tier, quick, customers, trials, rounds) for tier in wanted}
    planned = tables(wanted, chosen, sizes, quick)
    scales = SCALED in wanted and not quick and cores == 2 and "ours" in [one.name for one in chosen]
    last = scaling_seconds(sizes[SCALED]) if scales else 0.0
    # Whoever chooses other sizes waits as long as they take.
    most = FULL_SECONDS if customers is trials is rounds is None and not quick else float("inf")
    tell(announced(planned, last, most))
    began = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="throughput-", dir=folder))
    results: list[TierResult] = []
    scaled: dict[str, Any] | None = None
    try:
        for number, table in enumerate(planned):
            left = most - (time.monotonic() - began)
            share = table.seconds / (sum(one.seconds for one in planned[number:]) + last)
            results.append(run_table(table, min(table.size.seconds, share * left), place, cores, tell))
            keep()
        if scales and most - (time.monotonic() - began) > last / 2:
            scaled = scaling(SCALED, sizes[SCALED], place, tell)
            keep()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if report is not None:
        tell(f"written: {report}/results.md, results.json and results.png")
    if output == "text":
        print(reporting.text(results, scaled))
        return
    summaries = [result.summary() for result in results]
    print(json.dumps(summaries[0] if len(summaries) == 1 else {"tiers": summaries, "scaling": scaled}))


if __name__ == "__main__":
    main()
