"""`tuning plan`: what would run."""

from __future__ import annotations

import json
from typing import Unpack

import click

from tuning.cli.output import say_wait
from tuning.cli.program import Command
from tuning.cli.shared_options import Overrides, definition_options, read
from tuning.planning.plan import make_plan


@click.command(cls=Command)
@definition_options
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def plan(definition: str, output: str, **options: Unpack[Overrides]) -> None:
    """Show what would run, and where, without starting anything."""
    say_wait("looking at the data")
    made = make_plan(read(definition, **options))
    click.echo(json.dumps(made.to_dict()) if output == "json" else made.describe())
