"""`tuning init`: a starter definition from a look at the data."""

from __future__ import annotations

import os

import click

from tuning.basics.wording import command
from tuning.cli.output import say_wait
from tuning.cli.program import Command
from tuning.cli.starter import starter
from tuning.errors import DefinitionError


@click.command(cls=Command)
@click.argument("data", metavar="DATA")
@click.option("--target", metavar="COLUMN", help="The column to predict.")
@click.option("--by", multiple=True, metavar="COLUMN", help="Key column(s) of one table: each value is a customer.")
@click.option("--metric", metavar="NAME", help="What to score by, such as rmse (default: by what the target holds).")
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file (default: print it).")
@click.option("--force", is_flag=True, help="Replace the file when it is there.")
def init(
    data: str, target: str | None, by: tuple[str, ...], metric: str | None, output: str | None, force: bool
) -> None:
    """Write a commented definition for DATA (a file, folder or pattern), with what was guessed and why.

    \b
    tuning init 'customers/*.csv' --target churned > churn.yaml
    tuning plan churn.yaml
    """
    if output is not None and os.path.exists(output) and not force:
        raise DefinitionError(f"{output!r} is there already; choose another --output, or replace it with --force.")
    folder = os.path.dirname(os.path.abspath(output)) if output is not None else os.getcwd()
    say_wait("looking at the data")
    text = starter(data, target, by, folder, metric)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise DefinitionError(f"--output: {output!r} cannot be written: {error.strerror}.") from error
    click.echo(f"{output} is written; next: {command('plan', output)}", err=True)
