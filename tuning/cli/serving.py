"""`tuning serving`, `rollback` and `prune`: which model serves each customer, the way back, and what may go."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

import click

from tuning.basics.wording import natural_order, size_text
from tuning.cli.output import aligned, show_pages, window_width
from tuning.cli.program import Command
from tuning.cli.shared_options import champions_options, formulas_option, json_option, output_option
from tuning.notes import texts
from tuning.notes.note import plain
from tuning.serving.champion import Champion, champions_of
from tuning.serving.kept_runs import KEPT, prunable, prune_runs
from tuning.serving.release import Release
from tuning.serving.releases import Releases
from tuning.serving.report import answers_of, answers_text, write_report
from tuning.serving.rollback import roll_back

SHOWN = ("customer", "answer", "model", "rows", "since", "score", "reason")
CHANGED = ("release", "created", "why", *SHOWN[1:6], "other_score", "reason")
LISTED = ("release", "created", "why", "customers", "run")


@click.command(cls=Command)
@champions_options
@click.option("--history", "customer", metavar="CUSTOMER", help="Each change of this customer's champion.")
@click.option("--releases", "listed", is_flag=True, help="The releases, the newest first.")
@formulas_option("guard")
@output_option
def serving(name: str, storage: str, customer: str | None, listed: bool, formulas: str, output: str) -> None:
    """Show the champions NAME: which model serves each customer, since which release, and why."""
    if customer is not None and listed:
        raise click.UsageError("--history and --releases are two questions: ask one.")
    releases = Releases(name, storage)
    newest = releases.current()
    columns: Sequence[str] = SHOWN
    if customer is not None:
        rows = [{**_of_release(each), **_row(releases, champion)} for each, champion in releases.history(customer)]
        columns = CHANGED
    elif listed:
        every, columns = [*releases.last(len(releases.numbers()))], LISTED
        rows = [{**_of_release(each), "customers": len(releases.champions(each)), "run": each.run} for each in every]
    else:
        found = sorted(champions_of(releases.champions(newest)), key=lambda each: natural_order(each.customer))
        rows = [_row(releases, each) for each in found]
    say_refused(releases)
    if output == "json":
        click.echo(json.dumps(plain(rows), ensure_ascii=False))
        return
    told = [{key: texts(value) if isinstance(value, tuple) else value for key, value in row.items()} for row in rows]
    if output == "csv":
        from pandas import DataFrame

        from tuning.data.formats.csv_file import csv_text

        click.echo(csv_text(DataFrame(told), exact=formulas == "keep"), nl=False)
        return
    said = answers_text(answers_of(releases, newest))
    click.echo(f"release {newest.number} of {name}, {newest.created}: {said}", err=True)
    shown = [[row[each] for each in columns] for row in told]
    show_pages(aligned(columns, shown, window_width()))


def _of_release(release: Release) -> dict[str, object]:
    return {"release": release.number, "created": release.created_text, "why": release.why_text}


def _row(releases: Releases, champion: Champion) -> dict[str, object]:
    """Return a champion's values, with where its model lies as a user would type it, and its name."""
    values = {name: getattr(champion, name) for name in champion.__slots__}
    run = None if champion.model_path is None else releases.run_directory(champion.run).shown
    return {**values, "run": run, "model": champion.model}


@click.command(cls=Command)
@champions_options
@click.option("--to", "number", type=click.IntRange(min=1), metavar="N", help="Release (default: the one before).")
@click.option("--customer", metavar="ID", help="Only this customer's champion.")
@json_option
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
    tell_release(releases, new)


@click.command(cls=Command)
@champions_options
@click.option(
    "--keep", type=click.IntRange(min=1), default=KEPT, show_default=True, metavar="N", help="Newest ones that stay."
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Delete without asking, which a script has to say.")
@json_option
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


def say_refused(releases: Releases) -> None:
    """Say on stderr which releases are not what was written."""
    for said in releases.refused.values():
        click.echo(said, err=True)


def tell_release(releases: Releases, new: bool) -> None:
    """Write the page of a new release, bring MLflow up to date, and say on stderr where both are."""
    from tuning.tracking.release_copy import bring_up_to_date

    if new:
        click.echo(f"report       {write_report(releases)}", err=True)
    if said := bring_up_to_date(releases):
        click.echo(said, err=True)
