"""The page of champions: who was promoted, who nearly was, who drifts, and which model serves whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from tuning.basics.wording import amount, natural_order, shorten, value_text
from tuning.champions.champion import ANSWERS, Champion, rows_of
from tuning.champions.drift import DRIFTS
from tuning.champions.newest_decisions import newest_decisions
from tuning.champions.promoting import changed_customers
from tuning.champions.promotion import Decision
from tuning.champions.release import Release
from tuning.champions.releases import Releases
from tuning.champions.rules.rule import STANDS
from tuning.reporting.data_table import DataColumn, DataTable

if TYPE_CHECKING:
    from tuning.reporting.html import Block

REPORT = "report.html"  # in the champions' folder
MOST_DECISIONS, MOST_RELEASES, MOST_CUSTOMERS, MOST_TEXT = 50, 12, 50_000, 240
_NOUNS = {"own": "own model", "pool": "pooled answer", "constant": "constant", "none": "without an answer"}


def write_report(releases: Releases) -> str:
    """Write the page of the release in force beside the releases; the name to show."""
    releases.directory.write(REPORT, champions_page(releases).encode())
    return releases.directory.display(REPORT)


def champions_page(releases: Releases) -> str:
    """The page, which is bounded however many customers there are."""
    from tuning.reporting.html import Page, Points, Section

    newest, decisions = releases.current(), newest_decisions(releases)
    lead = f"Release {newest.number}, {newest.created_text}: {answers_text(answers_of(releases, newest))}."
    counted = [f"{amount(changed_customers(releases, newest), 'customer')} with another model than before."]
    name, new = releases.name, ("--data", "new/*.parquet", "--output", "predictions")
    go_on = [
        f"Predict for everybody: `{releases.command('predict', '--champion', name, *new)}`.",
        f"Each change of a customer's champion: `{releases.command('champions', name)} --history CUSTOMER`.",
        f"If the newest rows were wrong: `{releases.command('rollback', name)}`, mend them, and refresh again; "
        "`--customer` is for one customer alone.",
    ]
    sections = [
        Section("What is new", [Points(counted), *_decided(decisions)]),
        Section("Champions", [_champions(releases, newest)]),
        Section("Releases", [_listed(releases)]),
        Section("How to go on", [Points(go_on)]),
    ]
    footer = f"Release {newest.number} in {releases.directory.shown}, by tuning-service."
    return Page(f"{releases.name}: the models that serve", lead, sections, footer).html()


def answers_of(releases: Releases, release: Release) -> dict[str, int]:
    """How many customers get which answer."""
    counts = pc.value_counts(releases.champions(release)["answer"]).to_pylist()
    return {each["values"]: each["counts"] for each in counts}


def answers_text(answers: Mapping[str, int]) -> str:
    """The same in part of a sentence."""
    there = [(answers[name], _NOUNS[name]) for name in ANSWERS if answers.get(name)]
    counts = [f"{count:,} {noun}" if noun.startswith("without") else amount(count, noun) for count, noun in there]
    return f"{amount(sum(answers.values()), 'customer')}, {', '.join(counts) or 'none'}"


def _decided(decisions: Sequence[Decision]) -> list[Block]:
    drifts = [each for each in decisions if each.outcome == DRIFTS]
    stands = [each for each in decisions if each.outcome == STANDS]
    changed = [each for each in decisions if each.outcome not in (DRIFTS, STANDS)]
    return [
        *_table(changed, ("outcome", "reason"), "Promoted, proposed or beaten by the newest refresh"),
        *_table(drifts, ("reason",), "Champions that are worse on new rows than they promised, and are tuned anew"),
        *_table(
            stands,
            ("e_value", "threshold", "rows", "champion_loss", "challenger_loss", "compared_on"),
            "Challengers that stand, the nearest to a promotion first: an e-value as large as its threshold is enough",
        ),
    ]


def _table(decisions: Sequence[Decision], columns: Sequence[str], caption: str) -> list[Block]:
    from pandas import DataFrame

    from tuning.reporting.html import HtmlTable

    if not decisions:
        return []
    shown = decisions[:MOST_DECISIONS]
    cells = {name: [_cell(getattr(each, name)) for each in shown] for name in ("customer", *columns)}
    rest = f" (the first {len(shown)} of {len(decisions):,})" * (len(decisions) > len(shown))
    return [HtmlTable(DataFrame(cells), caption + rest, prose="reason" in columns)]


def _cell(value: object) -> str:
    return shorten(value, MOST_TEXT) if isinstance(value, str) else value_text(value)


def _champions(releases: Releases, release: Release) -> DataTable:
    found = sorted(rows_of(releases.champions(release), Champion), key=lambda each: natural_order(each.customer))
    shown = found[:MOST_CUSTOMERS]
    columns = [
        DataColumn("customer", [shorten(each.customer, MOST_TEXT) for each in shown], narrow=True),
        DataColumn("answer", [each.answer for each in shown], filtered=True, narrow=True),
        DataColumn("model", [each.model for each in shown], filtered=True),
        DataColumn("rows", [each.rows for each in shown]),
        DataColumn("since", [each.since for each in shown]),
        DataColumn("reason", [shorten(each.reason, MOST_TEXT) for each in shown]),
    ]
    less = f"The first {len(shown):,} of {amount(len(found), 'customer')}." if len(found) > len(shown) else ""
    return DataTable(columns, "customers", less, f"`{releases.command('champions', releases.name)} --history {{}}`")


def _listed(releases: Releases) -> Block:
    from pandas import DataFrame

    from tuning.reporting.html import HtmlTable

    rows = [
        {
            "release": each.number,
            "created": each.created_text,
            "why": each.why_text,
            "customers": sum(answers_of(releases, each).values()),
        }
        for each in releases.last(MOST_RELEASES)
    ]
    return HtmlTable(DataFrame(rows), "the newest first")
