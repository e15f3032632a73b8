"""`tuning leaderboard`: one row per customer."""

from __future__ import annotations

import click

from tuning.cli.output import show_leaderboard
from tuning.cli.program import Command
from tuning.cli.run_argument import run_argument
from tuning.cli.shared_options import output_option
from tuning.errors import PlanError
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult


@click.command(cls=Command)
@run_argument
@click.option(
    "--sort",
    type=click.Choice(["customer", "gain", "seconds"]),
    default="customer",
    show_default=True,
    help="By id, by the gain over the default (largest first), or by the time taken (longest first).",
)
@output_option
def leaderboard(run_dir: str, sort: str, output: str) -> None:
    """Print the leaderboard of the run in folder RUN: one row per customer.

    By default the customers with a model come first, in the order of their ids.
    """
    result = RunResult(run_dir)
    if frozen_definition(result.directory).compare is not None:
        raise PlanError(
            f"{result.directory.shown} compares algorithms, so it has no leaderboard of models. "
            f"Its report: tuning compare --from-run {result.directory.shown}"
        )
    show_leaderboard(result, output, sort)
