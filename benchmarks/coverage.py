"""`python -m benchmarks.coverage`: do intervals hold what they promise on rows that nobody has seen?

    python -m benchmarks.coverage                                 every second customer of four sets
    python -m benchmarks.coverage --level 0.9 --output json       another level, one JSON object last
    python -m benchmarks.coverage --ensemble none                 calibrated on the hold-out alone
    python -m benchmarks.coverage --given 40 --pool on            few rows each, with what the pool knows of others

80 % of each customer's rows are given to a run, everything at its default but trials and metric; the rest is unseen.
`covered`: the share of all unseen rows within their interval, and the mean of customers' shares. `score` is the median
interval score (Gneiting and Raftery, JASA 102, 2007: width, and 2 / (1 - level) times what lies beyond) against that of
the interval between two quantiles of the given targets, which knows no column; smaller is better, 1 is no better.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import numpy as np

from benchmarks.quality.rounds import Round, rounds
from benchmarks.quality.sets import TARGET, NotHereError, sets
from benchmarks.quality.tools import METRICS, SPLITS

if TYPE_CHECKING:
    from tuning import RunResult
    from tuning.models.customer_model import CustomerModel

SETS = "taxi,california,diamonds,friedman"


@dataclass(frozen=True)
class Told:
    """What the intervals of one customer's unseen rows came to.

    inside: which held the target. score, plain: interval scores, of ours and of the given targets' quantiles.
    """

    set: str
    inside: np.ndarray
    score: float
    plain: float


def interval_score(low: np.ndarray, high: np.ndarray, y: np.ndarray, level: float) -> float:
    """The mean interval score of intervals."""
    beyond = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    return float(np.mean(high - low + 2 / (1 - level) * beyond))


@contextmanager
def searched(name: str, chosen: list[Round], keys: dict[str, object]) -> Iterator[RunResult]:
    """One run of all customers of a set, without Ray."""
    from tuning import TuneRunner

    metric, split = (of_task[chosen[0].customer.task] for of_task in (METRICS, SPLITS))
    with tempfile.TemporaryDirectory() as folder:
        files = {}
        for one in chosen:
            files[one.customer.name] = str(Path(folder, f"{len(files)}.parquet"))
            one.given.to_parquet(files[one.customer.name])
        runner = TuneRunner(
            name=f"coverage-{name}",
            data=files,
            target=TARGET,
            metric=metric,
            split=split,
            mlflow=False,
            report=False,
            **keys,
        )
        yield runner.run(f"{folder}/run", progress=False, in_process=True)


def told_of(one: Round, model: CustomerModel, level: float) -> Told:
    """Of the intervals of a customer's unseen rows."""
    low, high = ends_of(one, model, level)
    known = np.quantile(one.given[TARGET], [(1 - level) / 2, (1 + level) / 2])
    return Told(
        one.customer.set,
        (low <= one.truth) & (one.truth <= high),
        interval_score(low, high, one.truth, level),
        interval_score(*np.broadcast_arrays(*known, one.truth), level),
    )


def ends_of(one: Round, model: CustomerModel, level: float) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of a customer's unseen rows."""
    told = model.predict(one.unseen, interval=level)
    return told["prediction_low"].to_numpy(), told["prediction_high"].to_numpy()


def figures(found: list[Told]) -> dict[str, float]:
    """Of all customers together."""
    shares = np.array([one.inside.mean() for one in found])
    return {
        "customers": len(found),
        "rows": sum(len(one.inside) for one in found),
        "covered": float(np.concatenate([one.inside for one in found]).mean()),
        "covered_mean": float(shares.mean()),
        "score": float(np.median([one.score / one.plain for one in found if one.plain])),
    }


@click.command()
@click.option("--sets", "chosen", default=SETS, show_default=True, metavar="NAMES", help="Separated by commas.")
@click.option("--every", default=2, show_default=True, help="Take every n-th customer of a set.")
@click.option("--level", default=0.8, show_default=True)
@click.option("--trials", default=8, show_default=True)
@click.option("--given", "most", type=int, help="Rows given to each customer, of those with as many; default all.")
@click.option("--pool", type=click.Choice(["on", "off"]), default="off", show_default=True)
@click.option("--ensemble", type=click.Choice(["greedy", "none"]), default="greedy", show_default=True)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(
    chosen: str, every: int, level: float, trials: int, most: int | None, pool: str, ensemble: str, output: str
) -> None:
    """Say how many unseen targets lie within their interval."""
    told: list[Told] = []
    customers = 0
    for name in chosen.split(","):
        try:
            all_of_set = [*sets()[name]()][::every]
        except NotHereError as reason:
            click.echo(f"{name}: left out, {reason}", err=True)
            continue
        given = [one for customer in all_of_set for one in rounds(customer, 1)]
        given = [replace(one, given=one.given[:most]) for one in given if most is None or len(one.given) >= most]
        customers += len(given)
        with searched(name, given, {"trials": trials, "ensemble": ensemble, "pool": pool}) as result:
            models = [(one, result.model(one.customer.name)) for one in given]
        told += [told_of(one, model, level) for one, model in models]
    if not told:
        sys.exit("no set is here")
    rows = {name: figures([one for one in told if one.set == name]) for name in dict.fromkeys(one.set for one in told)}
    rows["all"] = {**figures(told), "core_s_per_customer": time.process_time() / customers}
    lines = [
        f"| level {level:g} | customers | rows | covered, rows | covered, mean of customers | score |",
        "|---" * 6 + "|",
    ]
    for name, row in rows.items():
        shares = f"{100 * row['covered']:.1f} % | {100 * row['covered_mean']:.1f} %"
        lines.append(f"| {name} | {row['customers']} | {row['rows']} | {shares} | {row['score']:.2f} |")
    click.echo("\n".join(lines), err=output == "json")
    if output == "json":
        click.echo(json.dumps({"level": level, **rows}))


if __name__ == "__main__":
    main()
