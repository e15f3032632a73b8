"""`tuning runs`: which runs there are."""

from __future__ import annotations

import json

import click

from tuning.cli.output import aligned
from tuning.cli.program import Command
from tuning.cli.run_argument import STORAGE

COLUMNS = ("run", "last worked on", "state", "customers", "succeeded", "trials", "wall_seconds", "reason")


@click.command(cls=Command)
@click.argument("storage", metavar="[FOLDER]", default=STORAGE)
@click.option("--most", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="How many.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def runs(storage: str, most: int, output: str) -> None:
    """List the runs in FOLDER (default: runs), the newest first, with what came of each."""
    from tuning.runs.listing import runs_in

    found = runs_in(storage)
    shown = [
        {"run": run.path, "last worked on": f"{run.worked:%Y-%m-%d %H:%M}", **run.outcome()} for run in found[:most]
    ]
    if output == "json":
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    for line in aligned(COLUMNS, [[row.get(name) for name in COLUMNS] for row in shown]):
        click.echo(line)
    if not shown:
        click.echo(f"no run in {storage}", err=True)
    if len(found) > most:
        click.echo(f"… and {len(found) - most} older ones: --most {len(found)}", err=True)
