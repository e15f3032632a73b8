"""`python -m benchmarks.pooling FILE`: from how few rows and how many customers on is a pool worth it?

    python -m benchmarks.pooling FILE --sets taxi,california     customers of benchmarks.quality
    python -m benchmarks.pooling FILE                            what FILE says

Every customer is given 30, 60, 120, … of its rows, and searches with 20 trials once for each. The trials and the winner
are the same with and without a pool. So each pool, of blocks of 5, 10, 20 or 40 customers with as many rows, costs
another choice of the ensemble only. FILE gets one JSON object per customer and number of rows; what it has is not done
again, so a run that was ended goes on. A customer takes three CPU seconds with 100 rows, on one core.
"""

from __future__ import annotations

import copy
import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click
import numpy as np
import pandas as pd

from benchmarks.portfolio.prefixes import FittedOnce
from benchmarks.quality.judgement import Paired
from benchmarks.quality.rounds import Round, rounds
from benchmarks.quality.sets import TARGET, Customer, churn, diamonds, flights, sets
from benchmarks.quality.tools import METRICS, SPLITS
from benchmarks.workload import ONE_THREAD
from tuning.basics.seeds import derive
from tuning.definition.definition import define
from tuning.errors import CustomerError
from tuning.evaluation.ensemble import find_ensemble
from tuning.evaluation.pooling import PoolRows, fitted_pool, pooled_answers
from tuning.evaluation.study_data import StudyData
from tuning.evaluation.winner import choose
from tuning.execution.worker import WorkerContext, planned_study
from tuning.models.compute import trains_with
from tuning.models.pooled import RunPool
from tuning.planning.plan import make_plan
from tuning.records.schema import TrialRecord
from tuning.storage.run_directory import RunDirectory
from tuning.study.recorded_study import RecordedStudy

ROWS = (30, 60, 120, 240, 480, 960, 1920)  # given
BLOCKS = (5, 10, 20, 40)  # customers of a pool
TRIALS = 20
MOST_CUSTOMERS = 40  # of a set, for one number of rows
LARGE: dict[str, Callable[[], Iterator[Customer]]] = {
    "flights": lambda: flights(20_000),
    "diamonds": lambda: diamonds(20_000),
    "churn": lambda: churn(2_400, 2_401),
}


@dataclass(frozen=True)
class Searched:
    """A customer whose trials have run. name: of the customer in the run."""

    one: Round
    name: str
    data: StudyData
    context: WorkerContext
    records: list[TrialRecord]

    def errors(self, pools: dict[int, StudyData]) -> dict[str, float]:
        """The error with each pool, by its customers, and without one as "0". pools: the data with a pool's answers."""
        winner = choose(self.records).winner
        assert winner is not None
        found = {}
        metric = self.context.customers.metric(self.data)
        fits = FittedOnce(self.one, self.data, self.context)
        for block, data in {0: self.data, **pools}.items():
            data = replace(data, kept=copy.deepcopy(self.data.kept))
            fits.pooled = None if data.pooled is None else data.pooled.member
            ensemble = find_ensemble(self.records, winner, data, metric)
            found[str(block)] = fits.error_of(((winner, 1),) if ensemble is None else ensemble.members)
        return found


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--sets", "names", default="", metavar="NAMES", help="Sets of benchmarks.quality, separated by commas.")
@click.option("--rows", default=",".join(map(str, ROWS)), show_default=True, help="Given to each customer.")
def main(file: Path, names: str, rows: str) -> None:
    """Search for each customer with each number of rows, and say what a pool is worth."""
    os.environ.update(ONE_THREAD)
    warnings.simplefilter("ignore")
    known = {(row["set"], row["rows"]) for row in _read(file)}
    for count in map(int, rows.split(",")):
        for name in filter(None, names.split(",")):
            if (name, count) in known:
                continue
            found = list(_with_rows(name, count))
            with file.open("a") as there:
                there.writelines(json.dumps(row) + "\n" for row in found)
            click.echo(f"{name}: {len(found)} customers with {count} rows", err=True)
    click.echo(report(pd.DataFrame(_read(file))))


def _with_rows(name: str, count: int) -> Iterator[dict[str, object]]:
    """What came of each customer of a set that has so many rows to give."""
    chosen = [one for customer in LARGE.get(name, sets()[name])() for one in rounds(customer, 1)]
    chosen = [one for one in chosen if len(one.given) >= count]
    chosen.sort(key=lambda one: derive(0, "pooling", one.key))
    chosen = [replace(one, given=one.given[:count]) for one in chosen[:MOST_CUSTOMERS]]
    if len(chosen) < BLOCKS[0]:
        return
    with tempfile.TemporaryDirectory() as folder:
        searched = list(_searched(chosen, folder))
        pools: dict[str, dict[int, StudyData]] = {each.name: {} for each in searched}
        for block in BLOCKS:
            for first in range(0, len(searched) - block + 1, block):
                part = searched[first : first + block]
                found = fitted_pool({each.name: PoolRows.of(each.data) for each in part}, {}, 0)
                for each in part:
                    pools[each.name][block] = _asked(found, each)
        for each in searched:
            yield {"set": name, "customer": each.name, "rows": count, **each.errors(pools[each.name])}


def _asked(pool: RunPool, each: Searched) -> StudyData:
    """A customer's data with what the pool says of it, as far as the pool takes its columns."""
    try:
        return replace(each.data, pooled=pooled_answers(pool, each.data, each.name))
    except CustomerError:
        return each.data


def _searched(chosen: Sequence[Round], folder: str) -> Iterator[Searched]:
    files = {}
    for number, one in enumerate(chosen):
        path = Path(folder, f"{number}.parquet")
        one.given.to_parquet(path)
        files[str(number)] = str(path)
    task = chosen[0].customer.task
    keys = {"target": TARGET, "metric": METRICS[task], "split": SPLITS[task], "trials": TRIALS, "storage": folder}
    plan = make_plan(define({"data": files, "pool": "on", **keys}), in_process=True)
    context = WorkerContext.open(RunDirectory(folder), "pooling", plan.spec, list(plan.studies))
    for study in plan.studies:
        with trains_with(study.resources.compute):
            try:
                data = context.data(study.customer)
                assert isinstance(data, StudyData)
                search = RecordedStudy(planned_study("pooling", plan.spec, study), context.training(study, data))
                yield Searched(chosen[int(study.customer.id)], study.customer.id, data, context, list(search))
            except Exception as problem:  # a customer that cannot be tuned says nothing of a pool
                click.echo(f"{chosen[int(study.customer.id)].key}: left out, {problem}", err=True)


def report(found: pd.DataFrame) -> str:
    """By set, rows and customers of the pool: errors with it against those without, in Markdown."""
    lines = [
        "| set | rows | customers of a pool | better / same / worse | median | mean | p |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, count), part in found.groupby(["set", "rows"]):
        for block in map(str, BLOCKS):
            if block not in part or not part[block].notna().any():
                continue
            both = part.dropna(subset=[block])
            ratio = np.log(both[block] / both["0"])
            paired = Paired.of(ratio)
            lines.append(
                f"| {name} | {count} | {block} | {paired.better} / {paired.tie} / {paired.worse} "
                f"| {100 * paired.median:+.1f} % "
                f"| {100 * np.expm1(ratio.clip(-0.3, 0.3).mean()):+.1f} % | {paired.p:.2g} |"
            )
    return "\n".join(lines)


def _read(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


if __name__ == "__main__":
    main()
