"""`python -m benchmarks.weeks`: what serves customers best as rows come, and at what cost?

    python -m benchmarks.weeks                                   generated customers and taxi zones, within ten minutes
    python -m benchmarks.weeks --customers 1000 --weeks 26       as long as it says at the beginning
    python -m benchmarks.weeks --only retrain,better             some of the ways; `never` is always there
    python -m benchmarks.weeks --output json                     one JSON object last

Ways: `retrain` (a search for everybody every week, whose winners serve), a refresh with the rules `always` and
`better`, `fitted` (a refresh that never promotes), and `never` (the first models stay). All begin with the same first
search, and get the same rows. Each week they learn, and are judged on the next week's rows. It works in this process,
without Ray, and counts CPU seconds.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click
import pandas as pd

from benchmarks.quality.sets import TARGET, NotHereError
from benchmarks.weeks.judgement import WaySummary, summary, table
from benchmarks.weeks.rows import GENERATED, REAL, WeeklyRows, weekly_rows
from benchmarks.weeks.ways import NEVER, RETRAIN, WAYS, WeeklyWay, core_seconds
from tuning import TuneRunner
from tuning.definition.definition import Definition
from tuning.definition.given import definition_of

SETS = (GENERATED, *REAL)
#: Of the definition. Without a pool, which costs a run the same however few customers it has.
FIELDS: dict[str, object] = {"metric": "rmse", "slots": 1, "pool": "off", "mlflow": False, "report": False}
#: CPU seconds on a core of an Intel Xeon, with ridge and knn: of a run, and in it of a customer and of a trial.
RUN_S, CUSTOMER_S, TRIAL_S = 0.5, 0.05, 0.01


def estimate(customers: int, weeks: int, trials: int, ways: Sequence[str]) -> float:
    """About how many CPU seconds it takes; more with models that take longer to fit."""
    search = RUN_S + customers * (CUSTOMER_S + trials * TRIAL_S)
    refresh = 3 * RUN_S + customers * 2 * CUSTOMER_S + search / 3
    week = {name: 0.0 if name == NEVER else search if name == RETRAIN else refresh for name in ways}
    return search + weeks * sum(week.values())


def follow(
    customers: Sequence[WeeklyRows], weeks: int, fields: dict[str, object], names: Sequence[str], folder: Path
) -> tuple[pd.DataFrame, list[WeeklyWay]]:
    """Losses (columns way, customer, week, loss, rows) of all ways on the same weeks, and what the ways have cost."""
    data, storage = folder / "data", folder / "runs"
    data.mkdir(parents=True)
    for each in customers:
        each.first.to_csv(data / f"{each.name}.csv", index=False)
    definition: Definition = definition_of(None, {**fields, "data": f"{data}/*.csv", "target": TARGET})
    first = TuneRunner(definition).run(storage / "first", in_process=True, progress=False)
    ways = [WAYS[name](name, definition, storage) for name in names]
    for way in ways:
        way.begin(first)
    found: list[tuple[str, str, int, float, int]] = []
    for week in range(weeks):
        for each in customers:
            if len(each.coming[week]):
                each.coming[week].to_csv(data / f"{each.name}.csv", mode="a", header=False, index=False)
        judging = {each.name: each.judging[week + 1] for each in customers if len(each.judging[week + 1])}
        for way in ways:
            way.update(week, judging)
            losses = way.losses(judging)
            found += [(way.name, name, week, loss, len(judging[name])) for name, loss in losses.items()]
    return pd.DataFrame(found, columns=["way", "customer", "week", "loss", "rows"]), ways


@click.command()
@click.option("--customers", default=30, show_default=True, help="At most so many of a set.")
@click.option("--weeks", default=8, show_default=True, help="Weeks; of taxi zones days.")
@click.option("--rows", default=100, show_default=True, help="Rows a week of a generated customer.")
@click.option("--trials", default=10, show_default=True, help="Trials of a search.")
@click.option(
    "--models", default="ridge,knn", show_default=True, help="Model families, separated by commas, or default."
)
@click.option("--sets", "chosen", default=f"{GENERATED},taxi", show_default=True, help=f"Of {', '.join(SETS)}.")
@click.option("--only", metavar="WAYS", help=f"Of {', '.join(WAYS)}, separated by commas.")
@click.option("--seed", default=0, show_default=True, help="Of the generated customers.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def main(
    customers: int,
    weeks: int,
    rows: int,
    trials: int,
    models: str,
    chosen: str,
    only: str | None,
    seed: int,
    output: str,
) -> None:
    """Follow customers for weeks, served in several ways."""
    names = list(dict.fromkeys([*(only.split(",") if only else WAYS), NEVER]))
    if unknown := [name for name in names if name not in WAYS]:
        raise click.BadParameter(f"{unknown[0]!r} is no way. There are: {', '.join(WAYS)}.", param_hint="--only")
    if unknown := [name for name in chosen.split(",") if name not in SETS]:
        raise click.BadParameter(f"{unknown[0]!r} is no set. There are: {', '.join(SETS)}.", param_hint="--sets")
    fields: dict[str, object] = {**FIELDS, "trials": trials}
    if models != "default":
        fields["models"] = models.split(",")
    given: dict[str, list[WeeklyRows]] = {}
    for name in chosen.split(","):
        try:
            given[name] = weekly_rows(name, customers, weeks, rows, seed)
        except NotHereError as error:
            click.echo(f"{name}: left out, {error}", err=True)
    seconds = sum(estimate(len(each), weeks, trials, names) for each in given.values())
    click.echo(f"about {seconds / 60:.0f} CPU minutes, more with models that take longer than ridge and knn", err=True)
    figures: dict[str, list[WaySummary]] = {}
    began = core_seconds()
    for name, each in given.items():
        with tempfile.TemporaryDirectory() as folder:
            losses, ways = follow(each, weeks, fields, names, Path(folder))
        figures[name] = summary(losses, ways, weeks_tell=name == GENERATED)
        click.echo(table(name, len(each), figures[name]) + "\n", err=output == "json")
    click.echo(f"{core_seconds() - began:.0f} CPU seconds", err=True)
    if output == "json":
        click.echo(json.dumps({name: [asdict(each) for each in found] for name, found in figures.items()}))


if __name__ == "__main__":
    main()
