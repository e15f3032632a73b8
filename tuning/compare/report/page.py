"""The comparison as one HTML page."""

from __future__ import annotations

import pandas as pd

from tuning.basics.wording import amount
from tuning.compare.analysis.recommendation import recommend
from tuning.compare.analysis.result import ComparisonResult
from tuning.compare.report.plots import Plots
from tuning.compare.report.tables import footnotes, readable
from tuning.reporting.html import Block, HtmlTable, Page, Picture, PictureRow, Points, Section, Text

# A page is read by people; beyond this many rows they want the file of curves.
SHOWN_ROWS = 500


def page(comparison: ComparisonResult) -> str:
    """Return the report as HTML."""
    noun = comparison.noun
    names = ", ".join(comparison.order)
    sections = [
        Section("Result", _result(comparison)),
        Section(f"Every {noun}", _every_task(comparison)),
        Section("Over the budget", _over_budget(comparison)),
    ]
    source = f", in {comparison.source}" if comparison.source else ""
    footer = (
        f"Compared: {names}{source}. Regret, tests and intervals are explained in docs/compare.md of tuning-service."
    )
    return Page(
        f"Search algorithms on {amount(len(comparison.final.tasks), noun)}",
        recommend(comparison).sentence,
        sections,
        footer,
    ).html()


def _result(comparison: ComparisonResult) -> list[Block]:
    plot = Plots(comparison)
    pick = recommend(comparison).algorithm
    strong = comparison.order.index(pick) if pick in comparison.order else None
    pictures = [
        Picture(
            plot.effects(),
            f"Differences in mean regret to {comparison.reference}, with intervals; the figures are in the table above",
            "Size of the differences, with 95 % bootstrap intervals.",
        )
    ]
    if len(comparison.methods) > 2:
        pictures.append(
            Picture(
                plot.critical_difference(),
                "Mean ranks on a line: " + ", ".join(_ranked(comparison)),
                "Mean ranks; a bar joins algorithms that the tests do not tell apart.",
            )
        )
    # With spaces a heading may be broken, and the table fits a narrower window.
    table = readable(comparison).rename(columns=lambda name: name.replace("/", " / "))
    return [HtmlTable(table, strong=strong), Points(footnotes(comparison)), PictureRow(pictures)]


def _every_task(comparison: ComparisonResult) -> list[Block]:
    table = comparison.per_task()[list(comparison.order)]
    shown = table.iloc[:SHOWN_ROWS].map(lambda value: f"{value:.4f}")
    shown.insert(0, comparison.noun, [str(name) for name in shown.index])
    rest = f", the first {SHOWN_ROWS} of {len(table)}" if len(table) > SHOWN_ROWS else ""
    return [
        Picture(
            Plots(comparison).heat_map(),
            f"Regret per {comparison.noun} and algorithm; the figures are in the table below",
            "Normalised regret at the end of the budget; darker is worse.",
        ),
        HtmlTable(shown, f"The figures{rest}", folded=True),
    ]


def _over_budget(comparison: ComparisonResult) -> list[Block]:
    found: list[Block] = []
    for axis, result in comparison.results.items():
        found.append(Text(f"Over {axis}{', the sampler included' if axis == 'seconds' else ''}:"))
        regret = ", ".join(f"{m} {r:.3f}" for m, r in zip(result.methods, result.mean_regret[:, -1], strict=True))
        rank = ", ".join(f"{m} {r:.2f}" for m, r in zip(result.methods, result.mean_rank[:, -1], strict=True))
        pictures = [
            Picture(Plots(comparison).regret(axis), f"Mean regret over {axis}; at the end {regret}"),
            Picture(Plots(comparison).rank(axis), f"Mean rank over {axis}; at the end {rank}"),
        ]
        found.append(PictureRow(pictures))
        found += [Points(list(map(str, result.notes)))] if result.notes and axis != comparison.axis else []
        found.append(HtmlTable(_points(result.frame()), f"The figures over {axis}", folded=True))
    return found


def _points(frame: pd.DataFrame) -> pd.DataFrame:
    """Return about ten points of every curve."""
    every = max(1, frame.groupby("method").size().max() // 10)
    position = frame.groupby("method", sort=False).cumcount()
    last = position == frame.groupby("method", sort=False)["share"].transform("size") - 1
    shown = frame[(position % every == every - 1) | last].copy()
    shown["share"] = [f"{value:.0%}" for value in shown["share"]]
    for name in shown.columns[2:]:
        shown[name] = [f"{value:.4g}" for value in shown[name]]
    return shown


def _ranked(comparison: ComparisonResult) -> list[str]:
    return [f"{name} {comparison.ranks[comparison.methods.index(name)]:.2f}" for name in comparison.order]
