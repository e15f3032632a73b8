"""The comparison: everything that is computed from a curves table, as one value to print, plot, save or read."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypedDict

import numpy as np
import pandas as pd

from tuning.basics.public import Public
from tuning.basics.wording import amount
from tuning.compare.analysis.anytime import MATCH, anytime
from tuning.compare.analysis.blocks import blocks
from tuning.compare.analysis.curves import CURVE, Curves
from tuning.compare.analysis.hold_out import hold_out
from tuning.compare.analysis.notes import notes
from tuning.compare.analysis.pairs import Pairs
from tuning.compare.analysis.recommendation import Recommendation, recommend
from tuning.compare.analysis.result import ComparisonResult, Failures, Unfinished
from tuning.compare.analysis.statistics import friedman, smallest_p
from tuning.compare.report.tables import summary, text
from tuning.errors import DataError, PlanError
from tuning.notes import Note
from tuning.records.schema import FAILED
from tuning.reporting.cells import listed

if TYPE_CHECKING:
    from tuning.compare.report.plots import Plots

SCHEMA_VERSION = 2
# Two per cent of the way from a typical random configuration to the best.
MARGIN = 0.02


class AnalysisOptions(TypedDict, total=False):
    """What of `analyse` whoever compares may choose; see there."""

    baseline: str | None
    axis: str
    alpha: float
    margin: float
    unequal: str
    noun: str


class Comparison(Public, ComparisonResult):
    """What came of comparing methods on tasks, to print, plot, save or read; see `ComparisonResult` for the figures."""

    public = ("sentence", "notes", "table", "plot", "text", "save", "to_dict", "best", "methods", "seeds", "per_task")
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("winner", "answer"), "sentence, since the first in table() may be so by luck"),
        **dict.fromkeys(("leaderboard", "summary", "to_df"), "table()"),
        **dict.fromkeys(("run", "result", "trials"), "in the run's folder: RunResult('runs/…')"),
        **dict.fromkeys(("show", "plots"), "plot, such as plot.regret()"),
    }

    @cached_property
    def recommendation(self) -> Recommendation:
        return recommend(self)

    @property
    def sentence(self) -> str:
        """What to do and how sure that is, for somebody who reads one sentence."""
        return self.recommendation.sentence

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What a reader must know before believing the figures."""
        return notes(self)

    def table(self) -> pd.DataFrame:
        """Return one row per method, best first; see docs/compare.md for the columns."""
        return summary(self)

    @property
    def plot(self) -> Plots:
        """Plots as methods, each returning a matplotlib figure: `comparison.plot.regret()`, …"""
        from tuning.compare.report.plots import Plots

        return Plots(self)

    def to_dict(self) -> dict[str, object]:
        """Return plain values for JSON: ranks, p-values, intervals, power, notes, recommendation; NaN is null."""
        test, check = self.friedman, self.null_check
        document = {
            "schema_version": SCHEMA_VERSION,
            "recommendation": asdict(self.recommendation),
            "axis": self.axis,
            "alpha": self.pairs.alpha,
            "margin": self.pairs.margin,
            "unit": self.blocks.unit,
            "tasks": len(self.final.tasks),
            "seeds": self.seeds,
            "smallest_p": smallest_p(self.blocks.count),
            "methods": self.table().reset_index().to_dict("records"),
            "friedman": None if test is None else asdict(test),
            "baseline": self.baseline,
            "reference": self.reference,
            "comparisons": [pair.to_dict() for pair in self.comparisons],
            "adjusted_p": pd.DataFrame(
                self.pairs.adjusted, index=list(self.methods), columns=list(self.methods)
            ).to_dict(),
            "null_check": None if check is None else {**asdict(check), "passed": check.passed},
            "hold_out": self._hold_out(),
            "failures": asdict(self.failures),
            "unfinished": None if self.unfinished is None else asdict(self.unfinished),
            "notes": [note.to_dict() for note in self.notes],
        }
        return {name: _plain(value) for name, value in document.items()}

    def _hold_out(self) -> dict[str, object] | None:
        found = self.hold_out
        if found is None:
            return None
        others = [name for name in self.order if name != self.reference]
        pairs = {name: found.against(name, self.reference) for name in others}
        return {
            "ranks": dict(zip(found.methods, found.ranks, strict=True)),
            "against": {name: {**asdict(count), "p": test.p} for name, (count, test) in pairs.items()},
        }

    def text(self, width: int | None = None) -> str:
        """Return the report for a terminal. width: characters of a line; columns that do not fit are left out."""
        return text(self, width)

    def save(self, path: str | Path) -> Path:
        """Write the report as one self-contained HTML page that needs no network."""
        from tuning.compare.report.page import page

        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(self), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        tasks = amount(len(self.final.tasks), self.noun)
        return f"<Comparison of {amount(len(self.methods), 'method')} on {tasks}: {self.sentence}>"

    def _repr_html_(self) -> str:
        rows: str = self.table().to_html(float_format=lambda value: f"{value:.3g}", na_rep="")
        steps = ["found.plot.regret()", "found.notes", "print(found.text())", "what the columns mean: docs/compare.md"]
        return f"<p><b>{html.escape(self.sentence)}</b></p>{rows}{listed('Next', steps)}"


def analyse(
    curves: Curves | pd.DataFrame,
    baseline: str | None = None,
    axis: str = "trials",
    alpha: float = 0.05,
    margin: float = MARGIN,
    bounds: pd.DataFrame | None = None,
    unequal: str = MATCH,
    mode: str | None = None,
    noun: str = "task",
    source: str = "",
    hold_out_scores: pd.DataFrame | None = None,
    unfinished: Unfinished | None = None,
    remarks: Iterable[Note] = (),
) -> Comparison:
    """Compare methods from their curves.

    Args:
        curves: a `Curves`, or a frame as documented in `tuning.compare.analysis.curves`.
        baseline: the method that the others are tested against, named before looking at results (default: the best,
            at the price of a stricter correction).
        axis: the budget that the verdict is on: "trials", "steps" or "seconds".
        alpha: level of all tests.
        margin: normalised regret below which a difference does not matter in practice.
        bounds: scores that mean regret 0 and 1 per task.
        unequal: "match" or "refuse" unequal numbers of trials.
        mode: "max" or "min", where the curves have no column `mode`.
        noun: what a task is called.
        source: where the curves come from, for the page.
        hold_out_scores: optional, columns method, task, seed, score and mode: the score of every search's winner on
            rows that no search has seen.
        unfinished: what is missing of a run that has not ended.
        remarks: notes on the search.

    Raises:
        PlanError: fewer than two methods, an unknown baseline.
        DataError: the table cannot be used.
    """
    if not isinstance(curves, Curves):
        curves = Curves.from_frame(curves, mode)
    if len(curves.methods) < 2:
        raise PlanError(
            f"There is one algorithm, {curves.methods[0]!r}, and nothing to compare it with; give two or more."
        )
    if baseline is not None and baseline not in curves.methods:
        raise PlanError(f"The baseline {baseline!r} is not among the algorithms: {', '.join(curves.methods)}.")
    curves, failures = _without_hopeless(curves)
    results = {name: anytime(curves, name, bounds, unequal) for name in curves.axes}
    if axis not in results:
        anytime(curves, axis)  # says which axes there are
    final = results[axis]
    found = blocks(curves, final)
    test = friedman(found.values.T) if len(curves.methods) > 2 and found.count > 1 else None
    pairs = Pairs.of(curves.methods, found, baseline, test, alpha, margin)
    return Comparison(
        curves,
        results,
        axis,
        found,
        test,
        pairs,
        failures,
        baseline,
        noun,
        source,
        None if hold_out_scores is None else hold_out(hold_out_scores, final),
        unfinished,
        tuple(remarks),
    )


def _without_hopeless(curves: Curves) -> tuple[Curves, Failures]:
    """Return the curves without tasks on which every method failed, and all failures."""
    frame = curves.frame
    searches = frame.groupby(CURVE, sort=False)["loss"].count().reset_index(name="finished")
    finished = searches.groupby(["method", "task"], sort=False)["finished"].sum().unstack(fill_value=0)
    finished = finished.reindex(index=list(curves.methods), columns=list(curves.tasks), fill_value=0)
    hopeless = tuple(task for task in curves.tasks if not finished[task].any())
    kept = tuple(task for task in curves.tasks if task not in set(hopeless))
    if not kept:
        raise DataError("No algorithm finished a single trial on any task; there is nothing to compare.")
    lost = {name: tuple(task for task in kept if finished.loc[name, task] == 0) for name in curves.methods}
    failed = frame[(frame["state"] == FAILED) & ~frame["task"].isin(hopeless)]
    trials = failed.groupby("method", sort=False).size()
    partly = searches[(searches["finished"] == 0) & ~searches["task"].isin(hopeless)]
    seeds = {
        name: int((~partly.loc[partly["method"] == name, "task"].isin(lost[name])).sum()) for name in curves.methods
    }
    failures = Failures(
        {name: tasks for name, tasks in lost.items() if tasks},
        {name: count for name, count in seeds.items() if count},
        {str(name): int(count) for name, count in trials.items()},
        hopeless,
    )
    return (curves.only(kept) if hopeless else curves), failures


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
