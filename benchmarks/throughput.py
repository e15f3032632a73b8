"""How fast we are: every contender on the same customers and configurations, in one run, interleaved.

    python -m benchmarks.throughput                       all tiers, both tables, scaling (two hours on 2 cores)
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
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import click

from benchmarks import report as reporting
from benchmarks.contenders import Contender, contenders
from benchmarks.measure import TooShortError, measure, pure_fits, worker_split
from benchmarks.results import TierResult
from benchmarks.workload import FIXED, OWN, TIERS, TRIALS, Scenario, make_workload

SCALED = "M"  # the tier that is run on one core, too
SPLIT_CUSTOMERS = 1000  # at most, of those that a worker is watched part by part with
QUICK_SECONDS = 225.0  # of the four minutes; what is left is for ending
# Measured again on the way back; the slow two are measured once in a quick run.
QUICK_ONCE = ("tuner_per_customer", "grid_tuner", "ours_bare", "plain_loop")


@dataclass(frozen=True)
class Size:
    """customers: of the fast contenders. slow: the shares of the slow ones are at least so many customers.

    slow_trials: per customer for one Tuner per customer. seconds: no measurement begins later than this.
    """

    customers: int = 200
    trials: int = 20
    slow: int = 3
    slow_trials: int = 20
    rounds: int = 2
    pure_customers: int = 10
    seconds: float = float("inf")


def sized(tier: str, quick: bool, customers: int | None, trials: int | None, rounds: int | None) -> Size:
    """Full and quick sizes by tier; both can be scaled. Where a trial is longer, fewer customers fill as much time."""
    if quick:
        count, slow_trials, pure = {"S": (120, 10, 4), "M": (12, 5, 2), "L": (4, 5, 1), "T": (1000, 3, 10)}[tier]
        size = Size(customers=count, slow=2, slow_trials=slow_trials, pure_customers=pure, seconds=QUICK_SECONDS)
    else:
        count, pure = {"S": (200, 10), "M": (100, 10), "L": (24, 4), "T": (20_000, 100)}[tier]
        size = Size(customers=count, pure_customers=pure)
    return replace(
        size,
        customers=customers or size.customers,
        trials=trials or TRIALS.get(tier, size.trials),
        rounds=rounds or size.rounds,
    )


def run_tier(
    tier: str,
    size: Size,
    search: str,
    chosen: Iterable[Contender],
    folder: Path,
    cores: int,
    tell: Callable[[str], None],
) -> TierResult:
    """Measure the contenders there and back."""
    began = time.monotonic()
    place = folder / f"{tier}-{search}"
    everyone = make_workload(place, TIERS[tier], size.customers, size.trials)
    scenario = Scenario(tier, str(place), everyone, size.trials, search, cores)
    repeats = 3 if size.pure_customers > 1 else 1
    pure = pure_fits(replace(scenario, customers=everyone[: size.pure_customers], options={"repeats": repeats}))
    tell(f"{tier}: pure fits {1000 * pure['plain']:.2f} ms plain, {1000 * pure['prepared']:.2f} ms prepared")
    result = TierResult(tier, search, cores, size.customers, size.trials, pure)
    if TIERS[tier].keyed and "ours" in [contender.name for contender in chosen]:
        result.split = worker_split(tier, min(size.customers, SPLIT_CUSTOMERS), size.trials)
    for number, contender in there_and_back(list(chosen), size):
        left = size.seconds - (time.monotonic() - began)
        longest = max((run.total for run in result.runs.get(contender.name, [])), default=10.0)
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


def there_and_back(chosen: list[Contender], size: Size) -> Iterator[tuple[int, Contender]]:
    """(round, contender) in the order A B … B A; in a quick run the slow ones once, at the turning point."""
    once = [one for one in chosen if one.name in QUICK_ONCE] if size.seconds != float("inf") else []
    often = [one for one in chosen if one not in once]
    for number in range(1, size.rounds + 1):
        yield from ((number, one) for one in (often if number % 2 else often[::-1]))
        if number == 1:
            yield from ((number, one) for one in once)


def given_to(contender: Contender, scenario: Scenario, size: Size) -> Scenario:
    """A contender's own share of the work."""
    if contender.share == 1.0:
        return scenario
    count = max(size.slow, round(contender.share * len(scenario.customers)))
    trials = size.slow_trials if contender.name == "tuner_per_customer" else scenario.trials
    return replace(scenario, customers=scenario.customers[:count], trials=min(trials, scenario.trials))


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
    place = Path(tempfile.mkdtemp(prefix="throughput-", dir=folder))
    results: list[TierResult] = []
    scaled: dict[str, Any] | None = None
    try:
        for tier in tiers or tuple(TIERS):
            size = sized(tier, quick, customers, trials, rounds)
            here = [one for one in chosen if tier in one.tiers]
            results.append(run_tier(tier, size, FIXED, here, place, cores, tell))
            keep()
            if not quick and not TIERS[tier].keyed:
                searching = [one for one in here if one.searches]
                own = replace(size, customers=max(2, size.customers // 2))
                results.append(run_tier(tier, own, OWN, searching, place, cores, tell))
                keep()
            if tier == SCALED and not quick and cores == 2 and "ours" in [one.name for one in chosen]:
                scaled = scaling(tier, size, place, tell)
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
