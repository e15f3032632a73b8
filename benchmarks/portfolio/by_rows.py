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
from benchmarks.quality.judgement import TIE
from benchmarks.quality.rounds import Round, rounds
from benchmarks.quality.sets import CLASSES, Customer, sets
from benchmarks.workload import ONE_THREAD
from tuning.planning.trials_by_rows import FEWER
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION

TRIALS = 20
#: The tables that the shipped portfolios were learned on, which are the first ones.
LEARNED_ON = {REGRESSION: 45, BINARY: 40, MULTICLASS: 24}
ROWS = (50, 800)
SHOWN = (3, 6, 8, 9, 10, 12, 14, 16)
FEW = 200  # rows, below and above which tables are also told apart
HELD = 0.3  # logarithms of relative errors


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--tables", "most", default=0, show_default=True, help="Fresh tables of each task.")
@click.option("--tasks", default=",".join(LEARNED_ON), show_default=True, help="Of these tables, separated by commas.")
@click.option("--sets", "names", default="", metavar="NAMES", help="Sets of benchmarks.quality, separated by commas.")
@click.option("--every", default=1, show_default=True, help="Take every n-th customer of a set.")
@click.option("--repetitions", default=1, show_default=True, help="Outer splits of every customer of a set.")
def main(file: Path, most: int, tasks: str, names: str, every: int, repetitions: int) -> None:
    """Search each table once, and say what fewer trials would have come to."""
    os.environ.update(ONE_THREAD)
    warnings.simplefilter("ignore")
    known = {row["table"] for row in _read(file)}
    ways = [_fresh(task, most) for task in tasks.split(",")]
    ways += [_customers(name, every, repetitions) for name in names.split(",") if name]
    for one in _in_turn(ways):
        if one.key in known:
            continue
        try:
            found = asdict(prefixes(one, TRIALS))
        except Exception as problem:  # a table that cannot be searched says nothing of how long to search it
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
            rows.append({**shared, "trials": count, **after})
    return pd.DataFrame(rows)


def against(found: pd.DataFrame, chosen: pd.Series) -> dict[str, float]:
    """Those numbers of trials, by table, against the most.

    median, mean, low, high: of the relative error, in percent. The mean and its interval of 95 % are those of errors
    held within `HELD`, since a table whose error is almost nothing would decide it.
    """
    from scipy.stats import bootstrap, wilcoxon

    by = found.set_index(["table", "trials"])
    all_trials = by.xs(TRIALS, level="trials").loc[chosen.index]
    less = by.loc[list(zip(chosen.index, chosen, strict=True))].droplevel("trials")
    ratio = np.log(less["error"] / all_trials["error"])[chosen.index]
    decided, held = ratio[ratio.abs() > TIE], ratio.clip(-HELD, HELD)
    spread = (
        bootstrap([held], np.mean, method="percentile", rng=0).confidence_interval if held.std() > 0 else (0.0, 0.0)
    )
    return {
        "tables": len(ratio),
        "better": int((ratio < -TIE).sum()),
        "worse": int((ratio > TIE).sum()),
        "median": 100 * float(np.expm1(ratio.median())),
        "mean": 100 * float(held.mean()),
        "low": 100 * float(spread[0]),
        "high": 100 * float(spread[1]),
        "p": float(wilcoxon(decided).pvalue) if len(decided) > 5 else float("nan"),
        "s": 100 * float(less["s"].sum() / all_trials["s"].sum()),
    }


def report(found: pd.DataFrame) -> str:
    """Every number of trials, and that of `trials: auto`, against the most, in Markdown."""
    lines = ["| tables | trials | better / worse | median | mean | p | CPU |", "|---|---|---|---|---|---|---|"]
    complete = found[found.groupby("table")["trials"].transform("max") == TRIALS]
    fresh = ~complete["set"].isin(sets())
    groups = [(f"{task}, fresh", part) for task, part in complete[fresh].groupby("task")]
    groups += [*complete[~fresh].groupby("set")]
    groups += [(f"{task}, all sets", part) for task, part in complete[~fresh].groupby("task")]
    for name, part in groups:
        for rows, within in (
            (f", fewer than {FEW} rows", part["rows"] < FEW),
            (f", from {FEW}", part["rows"] >= FEW),
            ("", part["rows"] > 0),
        ):
            tables_ = part[within].drop_duplicates("table").set_index("table")
            numbers = {str(count): pd.Series(count, index=tables_.index) for count in SHOWN}
            numbers["auto"] = tables_.apply(lambda row: _auto(row["task"], row["rows"]), axis=1)
            for number, chosen in numbers.items() if len(tables_) else ():
                row = against(part, chosen)
                lines.append(
                    f"| {name}{rows}: {row['tables']} | {number} | {row['better']} / {row['worse']} "
                    f"| {row['median']:+.1f} % | {row['mean']:+.1f} % ({row['low']:+.1f} to {row['high']:+.1f}) "
                    f"| {row['p']:.2g} | {row['s']:.0f} % |"
                )
    return "\n".join(lines)


def _auto(task: str, rows: int) -> int:
    return next((trials for most, trials in FEWER.get(task, ()) if rows < most), TRIALS)


def _read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def _fresh(task: str, most: int) -> Iterator[Round]:
    kind = task if task == REGRESSION else CLASSES
    first = LEARNED_ON[task]
    found = tables(task, first + most, ROWS) if most else iter(())
    for name, rows in islice(found, first, None):
        yield from rounds(Customer(task, name.replace("/", "-"), kind, rows), 1)


def _customers(name: str, every: int, repetitions: int) -> Iterator[Round]:
    for customer in list(sets()[name]())[::every]:
        yield from rounds(customer, repetitions)


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
