"""`python -m benchmarks.portfolio.by_rows FILE`: how many trials are worth it, by task and rows?

    python -m benchmarks.portfolio.by_rows FILE --tables 120                tables that no portfolio was learned on
    python -m benchmarks.portfolio.by_rows FILE --sets taxi,flights         customers of benchmarks.quality
    python -m benchmarks.portfolio.by_rows FILE                             what FILE says

FILE gets one JSON object per table; what it has is not done again, so a run that was ended goes on. A table takes three
CPU seconds, on one core.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from pathlib import Path

import click
import numpy as np
import pandas as pd

from benchmarks.portfolio.prefixes import prefixes
from benchmarks.portfolio.tables import tables
from benchmarks.quality.judgement import Paired
from benchmarks.quality.rounds import Round, rounds
from benchmarks.quality.sets import CLASSES, Customer, sets
from benchmarks.workload import ONE_THREAD
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION

TRIALS = 20
#: The tables that the shipped portfolios were learned on, which are the first ones.
LEARNED_ON = {REGRESSION: 45, BINARY: 40, MULTICLASS: 24}
ROWS = (50, 800)
SHOWN = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20)


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--tables", "most", default=0, show_default=True, help="Fresh tables of each task.")
@click.option("--tasks", default=",".join(LEARNED_ON), show_default=True, help="Of these tables, separated by commas.")
@click.option("--sets", "names", default="", metavar="NAMES", help="Sets of benchmarks.quality, separated by commas.")
@click.option("--every", default=1, show_default=True, help="Take every n-th customer of a set.")
def main(file: Path, most: int, tasks: str, names: str, every: int) -> None:
    """Tune each table once, and say what fewer trials would have come to."""
    os.environ.update(ONE_THREAD)
    warnings.simplefilter("ignore")
    known = {row["table"] for row in _read(file)}
    ways = [_fresh(task, most) for task in tasks.split(",")]
    ways += [_customers(name, every) for name in names.split(",") if name]
    for one in _in_turn(ways):
        if one.key in known:
            continue
        try:
            found = asdict(prefixes(one, TRIALS))
        except Exception as problem:  # a table that cannot be tuned says nothing of how long to search on it
            click.echo(f"{one.key}: left out, {problem}", err=True)
            continue
        with file.open("a") as there:
            there.write(json.dumps(found) + "\n")
        click.echo(f"{one.key}: {found['rows']} rows, {found['after'][-1]['s']:.1f} s", err=True)
    click.echo(report(frame(_read(file))))


def frame(found: list[dict]) -> pd.DataFrame:
    """One row per table and number of trials: its error, and its seconds."""
    rows = []
    for each in found:
        kind = each["task"] if each["task"] == REGRESSION else CLASSES
        shared = {"table": each["table"], "set": each["table"].split("/")[0], "task": kind, "rows": each["rows"]}
        for count, after in enumerate(each["after"], 1):
            rows.append({**shared, "trials": count, **after, "nothing": each["nothing"]})
    return pd.DataFrame(rows)


def against(found: pd.DataFrame, chosen: pd.Series) -> dict[str, float]:
    """Those numbers of trials, by table, against the most.

    median, mean: of the relative error, in percent; the mean of the middle 90 %, since one table whose error is almost
    nothing would decide it. of_nothing: the difference as a share of what is known without a model, and its standard
    error.
    """
    from scipy.stats import trim_mean

    by = found.set_index(["table", "trials"])
    all_trials = by.xs(TRIALS, level="trials")
    less = by.loc[list(zip(chosen.index, chosen, strict=True))].droplevel("trials")
    ratio = np.log(less["error"] / all_trials["error"])[chosen.index]
    paired = Paired.of(ratio)
    scale = all_trials["nothing"][chosen.index]
    difference = ((less["error"] - all_trials["error"])[chosen.index] / scale).clip(-1, 1)
    return {
        "tables": len(ratio),
        "better": paired.better,
        "worse": paired.worse,
        "median": 100 * paired.median,
        "mean": 100 * float(np.expm1(trim_mean(ratio, 0.05))),
        "of_nothing": 100 * float(difference.mean()),
        "error": 100 * float(difference.std() / np.sqrt(len(ratio))),
        "p": paired.p,
        "s": 100 * float(less["s"].sum() / all_trials["s"].sum()),
    }


def report(found: pd.DataFrame) -> str:
    """Every number of trials against the most, in Markdown."""
    lines = [
        "| tables | rows | trials | better / worse | median | mean | of nothing | p | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    complete = found[found.groupby("table")["trials"].transform("max") == TRIALS]
    fresh = ~complete["set"].isin(sets())
    groups = [(f"{task}, fresh", part) for task, part in complete[fresh].groupby("task")]
    groups += list(complete[~fresh].groupby("set"))
    for name, part in groups:
        for low, high in ((0, 80), (80, 160), (160, 320), (320, 10**6), (0, 10**6)):
            within = part[(part["rows"] >= low) & (part["rows"] < high)]
            keys = within["table"].unique()
            for count in SHOWN if len(keys) else ():
                row = against(within, pd.Series(count, index=keys))
                lines.append(
                    f"| {name}: {row['tables']} | {low} to {high} | {count} | {row['better']} / {row['worse']} "
                    f"| {row['median']:+.1f} % | {row['mean']:+.1f} % "
                    f"| {row['of_nothing']:+.2f} ± {row['error']:.2f} % "
                    f"| {row['p']:.2g} | {row['s']:.0f} % |"
                )
    return "\n".join(lines)


def _read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _fresh(task: str, most: int) -> Iterator[Round]:
    kind = task if task == REGRESSION else CLASSES
    first = LEARNED_ON[task]
    found = tables(task, first + most, ROWS) if most else iter(())
    for name, rows in islice(found, first, None):
        yield from rounds(Customer(task, name.replace("/", "-"), kind, rows), 1)


def _customers(name: str, every: int) -> Iterator[Round]:
    for customer in list(sets()[name]())[::every]:
        yield from rounds(customer, 1)


def _in_turn(ways: list[Iterator[Round]]) -> Iterator[Round]:
    """One of each way, then the next of each: a run that is ended has seen something of all."""
    while ways:
        for way in list(ways):
            found = next(way, None)
            if found is None:
                ways.remove(way)
            else:
                yield found


if __name__ == "__main__":
    main()
