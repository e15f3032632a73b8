"""`tuning rollback`: the champions of an earlier release."""

from __future__ import annotations

import json

import click

from tuning.champions.releases import Releases
from tuning.champions.rollback import roll_back
from tuning.cli.champions import say_copied, say_refused
from tuning.cli.program import Command
from tuning.cli.shared_options import champions_options


@click.command(cls=Command)
@champions_options
@click.option(
    "--to", "number", type=click.IntRange(min=1), metavar="N", help="Release to bring back (default: the one before)."
)
@click.option("--customer", metavar="ID", help="Only this customer's champion.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def rollback(name: str, storage: str, number: int | None, customer: str | None, output: str) -> None:
    """Make a new release of the champions NAME that equals an earlier one.

    Nothing is overwritten, and the way forward again is another rollback. By default the release before the newest
    comes back, of one customer the champion that it had before.
    """
    releases = Releases(name, storage)
    release, new = roll_back(releases, number, customer)
    say_refused(releases)
    whose = "" if customer is None else f" for {customer}"
    if output == "json":
        click.echo(json.dumps({"release": release.number, "new": new, "equals": release.equals, "customer": customer}))
    elif new:
        click.echo(f"release {release.number} of {name} equals release {release.equals}{whose}")
    else:
        click.echo(f"release {release.number} of {name} is that already{whose}; nothing was changed")
    say_copied(releases)
