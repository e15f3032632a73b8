"""`tuning leaderboard`: one row per customer."""

from __future__ import annotations

import click

from tuning.cli.options import output_option
from tuning.cli.output import show_leaderboard
from tuning.runs.results import RunResult


@click.command()
@click.argument("run_dir", metavar="RUN")
@output_option
def leaderboard(run_dir: str, output: str) -> None:
    """Print the leaderboard of the run in folder RUN: one row per customer."""
    show_leaderboard(RunResult(run_dir), output)
