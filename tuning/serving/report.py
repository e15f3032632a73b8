"""The page of champions: who has another model since the newest release, and whose search found nothing better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow.compute as pc

from tuning.basics.wording import amount, natural_order, shorten, value_text
from tuning.notes import texts
from tuning.serving.champion import ANSWERS, Champion
from tuning.serving.release import Release
from tuning.serving.releases import Releases

if TYPE_CHECKING:
    from tuning.reporting.html import Block

REPORT = "report.html"  # in the champions' folder
MOST_NEW, MOST_TEXT = 50, 240
_NOUNS = {"own": "own model", "pool": "pooled answer", "constant": "constant", "none": "without an answer"}


def write_report(releases: Releases) -> str:
    """Write the page of the release in force beside the releases, and return the name to show."""
    releases.directory.write(REPORT, champions_page(releases).encode())
    return releases.directory.display(REPORT)


def champions_page(releases: Releases) -> str:
    """Return the page, which is bounded however many customers there are."""
    from tuning.reporting.html import Page, Points, Section

    newest, name = releases.current(), releases.name
    champions = sorted(releases.state(newest).values(), key=lambda each: natural_order(each.customer))
    replaced = [each for each in champions if each.since == newest.number]
    stayed = [each for each in champions if each.searched == newest.number != each.since]
    go_on = [
        f"Which model serves whom: `{releases.command('serving', name)}`, and since when: `--history CUSTOMER`.",
        f"Predict for everybody: `{releases.command('predict', '--release', name, '--data', 'new/*.parquet')}`.",
        f"If the newest rows were wrong: `{releases.command('rollback', name)}`, mend them, and refresh again; "
        "`--customer` is for one customer alone.",
    ]
    sections = [
        Section(
            "What is new",
            [
                _table(replaced, "reason", "Another configuration serves since this release"),
                _table(stayed, "notes", "Searched for, and the configuration that served stays"),
            ],
        ),
        Section("How to go on", [Points(go_on)]),
    ]
    lead = f"Release {newest.number}, {newest.created_text}: {answers_text(answers_of(releases, newest))}."
    footer = f"Release {newest.number} in {releases.directory.shown}, by tuning-service."
    return Page(f"{name}: the models that serve", lead, sections, footer).html()


def answers_of(releases: Releases, release: Release) -> dict[str, int]:
    """Return how many customers get which answer."""
    counts = pc.value_counts(releases.champions(release)["answer"]).to_pylist()
    return {each["values"]: each["counts"] for each in counts}


def answers_text(answers: Mapping[str, int]) -> str:
    """Return the same in part of a sentence."""
    there = [(answers[name], _NOUNS[name]) for name in ANSWERS if answers.get(name)]
    counts = [f"{count:,} {noun}" if noun.startswith("without") else amount(count, noun) for count, noun in there]
    return f"{amount(sum(answers.values()), 'customer')}, {', '.join(counts) or 'none'}"


def _table(champions: Sequence[Champion], told: str, caption: str) -> Block:
    from pandas import DataFrame

    from tuning.reporting.html import HtmlTable, Points

    if not champions:
        return Points([f"{caption}: nobody."])
    shown = champions[:MOST_NEW]
    rest = f" (the first {len(shown)} of {len(champions):,})" * (len(champions) > len(shown))
    rows = [
        {
            "customer": shorten(each.customer, MOST_TEXT),
            "score": value_text(each.score),
            "score of the other one": value_text(each.other_score),
            told: shorten(texts(getattr(each, told)), MOST_TEXT),
        }
        for each in shown
    ]
    return HtmlTable(DataFrame(rows), caption + rest, prose=True)
