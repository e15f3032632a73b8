"""`tuning prune`: runs that no newer release of champions needs."""

from __future__ import annotations

import json
import sys

import click

from tuning.basics.wording import size_text
from tuning.champions.kept_runs import KEPT, prunable, prune_runs
from tuning.champions.releases import Releases
from tuning.cli.champions import say_refused
from tuning.cli.program import Command
from tuning.cli.shared_options import champions_options


@click.command(cls=Command)
@champions_options
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=KEPT,
    show_default=True,
    metavar="N",
    help="Newest releases that stay.",
)
@click.option("--yes", is_flag=True, help="Delete without asking, which a script has to say.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def prune(name: str, storage: str, keep: int, yes: bool, output: str) -> None:
    """Delete the runs that only older releases of the champions NAME need.

    The releases stay as the history; none of the older ones can come back. A run that another name needs stays.
    """
    releases = Releases(name, storage)
    releases.current()
    found = prunable(releases, keep)
    say_refused(releases)
    if found and not yes:
        shown = "\n".join(f"  {releases.run_directory(run).shown}" for run in found)
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"these would be deleted for good:\n{shown}\nSay --yes, since nobody can be asked here."
            )
        click.confirm(f"{shown}\nDelete these for good?", abort=True, err=True)
    done = list(prune_runs(releases, keep))
    freed = sum(each.size for each in done)
    if output == "json":
        rows = [{"name": each.what, "bytes": each.size, "kept": each.kept} for each in done]
        click.echo(json.dumps({"freed": freed, "found": rows}, ensure_ascii=False))
        return
    for each in done:
        click.echo(f"kept {each.what}: {each.kept}" if each.kept else f"deleted {each.what}, {size_text(each.size)}")
    click.echo(f"{size_text(freed)} freed" if done else "there is nothing to delete")
