"""`tuning leaderboard`: one row per customer."""

from __future__ import annotations

import click

from tuning.basics.wording import command, did_you_mean
from tuning.cli.output import show_leaderboard
from tuning.cli.program import Command
from tuning.cli.run_argument import run_argument
from tuning.cli.shared_options import formulas_option, output_option
from tuning.errors import PlanError
from tuning.runs.leaderboard import LEADERBOARD
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult


def _column(_: click.Context, __: click.Parameter, given: str) -> str:
    if given not in LEADERBOARD:
        hint = did_you_mean(given, LEADERBOARD)
        raise click.BadParameter(f"{given!r} is no column.{hint} There are {', '.join(LEADERBOARD)}.")
    return given


@click.command(cls=Command)
@run_argument
@click.option(
    "--sort",
    default="customer",
    show_default=True,
    metavar="COLUMN",
    callback=_column,
    shell_complete=lambda _, __, begun: [name for name in LEADERBOARD if name.startswith(begun)],
    help="Any column, such as gain, test_score, seconds or model: better values first.",
)
@formulas_option("guard")
@output_option
def leaderboard(run_dir: str, sort: str, formulas: str, output: str) -> None:
    """Print the leaderboard of the run in folder RUN: one row per customer.

    By default the customers with a model come first, in the order of their ids.
    """
    result = RunResult(run_dir)
    if frozen_definition(result.directory).compare is not None:
        raise PlanError(
            f"{result.directory.shown} compares algorithms, so it has no leaderboard of models. "
            f"Its report: {command('compare', '--from-run', result.directory.shown)}"
        )
    show_leaderboard(result, output, sort, formulas=formulas)
