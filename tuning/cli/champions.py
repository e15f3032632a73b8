"""`tuning champions`: which model serves each customer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import click

from tuning.basics.wording import natural_order
from tuning.champions.champion import ANSWERS, Champion, rows_of
from tuning.champions.newest_decisions import newest_decisions
from tuning.champions.promoting import changed_customers
from tuning.champions.promotion import HOLD_OUT, Decision
from tuning.champions.release import DECISIONS, Release
from tuning.champions.releases import Releases
from tuning.champions.report import answers_of, answers_text, write_report
from tuning.cli.output import aligned, show_pages, window_width
from tuning.cli.program import Command
from tuning.cli.shared_options import champions_options, formulas_option, output_option

SHOWN = ("customer", "answer", "model", "rows", "since", "reason")
#: What a change's comparison says: mean losses of rows, how sure, how much.
COMPARED = ("champion_loss", "challenger_loss", "e_value", "gain")
#: What is shown of the newest refresh's decisions; what has changed comes first, then who is nearest to a change.
DECIDED = ("customer", "outcome", *COMPARED[:2], "rows", "compared_on", "e_value", "threshold", "reason")


@click.command(cls=Command)
@champions_options
@click.option("--history", "customer", metavar="CUSTOMER", help="Each change of this customer's champion.")
@click.option("--decisions", "decided", is_flag=True, help="Who was promoted, who nearly was, and who drifts.")
@click.option("--releases", "listed", is_flag=True, help="The releases, the newest first.")
@click.option("--report", "reported", is_flag=True, help="Write the page of these champions, as each refresh does.")
@formulas_option("guard")
@output_option
def champions(
    name: str,
    storage: str,
    customer: str | None,
    decided: bool,
    listed: bool,
    reported: bool,
    formulas: str,
    output: str,
) -> None:
    """Show the champions NAME: which model serves each customer, since which release, and why."""
    if (customer is not None) + decided + listed + reported > 1:
        raise click.UsageError("--history, --decisions, --releases and --report are several questions: ask one.")
    releases = Releases(name, storage)
    if reported:
        click.echo(write_report(releases))
        say_refused(releases)
        return
    newest = releases.current()
    if customer is not None:
        rows = [_change(releases, release, each) for release, each in releases.history(customer)]
        columns: Sequence[str] = ("release", "created", "why", *SHOWN[1:4], "hold_out_loss", *COMPARED, "reason")
    elif decided:
        rows, columns = [asdict(each) for each in newest_decisions(releases)], DECIDED
    elif listed:
        rows, columns = _listed(releases), ("release", "created", "why", "customers", *ANSWERS, "changed")
    else:
        found = sorted(rows_of(releases.champions(newest), Champion), key=lambda each: natural_order(each.customer))
        rows, columns = [_row(releases, each) for each in found], SHOWN
    say_refused(releases)
    if output == "json":
        click.echo(json.dumps(rows, ensure_ascii=False))
    elif output == "csv":
        _print_csv(rows, formulas)
    else:
        said = answers_text(answers_of(releases, newest))
        click.echo(f"release {newest.number} of {name}, {newest.created}: {said}", err=True)
        shown = [[_text(row, column) for column in columns] for row in rows]
        show_pages(aligned(columns, shown, window_width()))


def _text(row: Mapping[str, object], column: str) -> object:
    """A cell of the table; moments are to the minute."""
    return str(row[column])[:16].replace("T", " ") if column == "created" else row[column]


def _of_release(release: Release) -> dict[str, object]:
    """What is shown of a release."""
    return {"release": release.number, "created": release.created, "why": release.why_text}


def _row(releases: Releases, champion: Champion) -> dict[str, object]:
    """A champion, with where its model lies as a user would type it, and what it is."""
    run = None if champion.model_path is None else releases.run_directory(champion.run).shown
    return {**asdict(champion), "run": run, "model": champion.model}


def _change(releases: Releases, release: Release, champion: Champion) -> dict[str, object]:
    """A champion from a release on, with the figures of the comparison that has made it champion, if there was one."""
    found = releases.rows_of_customer(release, DECISIONS, champion.customer)
    rows = [] if found is None else rows_of(found, Decision)
    figures = [row for row in rows if row.challenger_loss is not None and row.compared_on != HOLD_OUT]
    compared = {name: getattr(figures[0], name) if figures else None for name in COMPARED}
    return {**_of_release(release), **_row(releases, champion), **compared}


def _listed(releases: Releases) -> list[dict[str, object]]:
    """A line for each release, the newest first; `changed`: customers with another champion than in the one before."""
    rows: list[dict[str, object]] = []
    for release in releases.last(len(releases.numbers())):
        answers = answers_of(releases, release)
        changed = changed_customers(releases, release)
        row = {**_of_release(release), "customers": sum(answers.values()), "changed": changed}
        rows.append({**row, **{answer: answers.get(answer, 0) for answer in ANSWERS}})
    return rows


def say_refused(releases: Releases) -> None:
    """Which releases are not what was written, on stderr."""
    for said in releases.refused.values():
        click.echo(said, err=True)


def say_copied(releases: Releases) -> None:
    """Bring MLflow up to date, and say on stderr where it is, or that it is behind."""
    from tuning.tracking.release_copy import copy_in_child

    if said := copy_in_child(releases):
        click.echo(said, err=True)


def _print_csv(rows: Sequence[Mapping[str, object]], formulas: str) -> None:
    import pandas as pd

    from tuning.data.formats.csv_file import csv_text, guarded_frame

    frame = pd.DataFrame(rows)
    click.echo(csv_text(guarded_frame(frame) if formulas == "guard" else frame), nl=False)
