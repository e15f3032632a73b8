"""`tuning delete`: a run and everything that it has recorded."""

from __future__ import annotations

import json
import sys

import click

from tuning.cli.program import Command
from tuning.cli.run_argument import newest
from tuning.errors import RunError
from tuning.serving.kept_runs import KEPT, delete_unneeded
from tuning.storage.run_directory import RunDirectory


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN")
@click.option("--yes", is_flag=True, help="Delete without asking, which a script has to say.")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=KEPT,
    show_default=True,
    metavar="N",
    help="Newest releases of champions whose runs are not deleted.",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def delete(run_dir: str, yes: bool, keep: int, output: str) -> None:
    """Delete the folder RUN with the run in it: records, models and reports.

    A run that somebody works on is refused, and one that champions need. A deletion that was cut off is finished by the
    same command. What was copied to an MLflow elsewhere stays there.
    """
    directory = RunDirectory(newest(run_dir))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"{directory.shown} would be deleted for good: say --yes, since nobody can be asked here."
            )
        click.confirm(f"Delete {directory.shown} for good?", abort=True, err=True)
    if not delete_unneeded(directory, keep):
        raise RunError(f"{directory.shown} is not a run directory, so nothing was deleted.")
    click.echo(json.dumps({"deleted": directory.shown}) if output == "json" else f"deleted {directory.shown}")
