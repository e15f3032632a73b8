"""The plots of a comparison, as matplotlib figures that a notebook shows; markers and order repeat the colours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tuning.basics.wording import amount, shorten
from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.result import ComparisonResult
from tuning.compare.analysis.statistics import cliques
from tuning.reporting.figure import COLOURS, Plot, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MARKERS = "os^Dv<>P*X"
ROW, BAR = 0.3, 0.16  # heights in the diagram of ranks
SHOWN_TASKS = 40


class Plots:
    """`comparison.plot.regret()` and its sisters; each call makes a new figure."""

    def __init__(self, comparison: ComparisonResult) -> None:
        self._comparison = comparison

    def regret(self, axis: str | None = None) -> Figure:
        """Draw mean regret over the budget, with 95 % bootstrap bands over tasks; less is better."""
        result = self._result(axis)
        figure, axes = new_figure()
        self._curves(axes, result, result.clipped, result.mean_regret)
        lowest = result.mean_regret[result.mean_regret > 0]
        if lowest.size and result.mean_regret.max() > 20 * lowest.min():
            axes.set_yscale("log")
        axes.set_ylabel("mean normalised regret")
        axes.legend(frameon=False, fontsize=9)
        return figure

    def rank(self, axis: str | None = None) -> Figure:
        """Draw the mean rank over the budget, with 95 % bootstrap bands over tasks; 1 is best."""
        result = self._result(axis)
        figure, axes = new_figure()
        self._curves(axes, result, result.ranks, result.mean_rank)
        axes.set_ylabel("mean rank")
        axes.invert_yaxis()
        axes.legend(frameon=False, fontsize=9)
        return figure

    def critical_difference(self) -> Figure:
        """Draw mean ranks on a line; a bar joins methods that do not differ (Holm-Wilcoxon cliques)."""
        comparison = self._comparison
        return draw_critical_difference(comparison.methods, comparison.ranks, comparison.pairs.different)

    def effects(self) -> Figure:
        """Draw each method's difference in mean regret to the reference, with its 95 % interval and the margin."""
        comparison = self._comparison
        pairs = comparison.comparisons[::-1]
        figure, axes = new_figure(height=1.1 + 0.4 * len(pairs))
        margin = comparison.pairs.margin
        axes.axvspan(-margin, margin, color="#000000", alpha=0.06, linewidth=0)
        axes.axvline(0, color="#888888", linewidth=1)
        for row, pair in enumerate(pairs):
            low, high = pair.difference.low, pair.difference.high
            if not np.isnan(low):
                axes.plot([low, high], [row, row], color=self._colour(pair.method), linewidth=2)
            axes.plot(pair.difference.value, row, MARKERS[0], color=self._colour(pair.method))
        axes.set_yticks(range(len(pairs)), [pair.method for pair in pairs])
        axes.set_ylim(-0.6, len(pairs) - 0.4)
        axes.set_xlabel(
            f"mean regret minus that of {comparison.reference}\n(left is better; grey: no practical difference)"
        )
        return figure

    def heat_map(self) -> Figure:
        """Draw regret at the end of the budget by task and method, for at most 40 tasks that differ most."""
        comparison = self._comparison
        table = comparison.per_task()[list(comparison.order)]
        spread = table.max(axis=1) - table.min(axis=1)
        shown = table.loc[spread.sort_values(ascending=False, kind="stable").index[:SHOWN_TASKS]]
        shown = shown.loc[shown.mean(axis=1).sort_values(kind="stable").index]
        figure, axes = new_figure(height=1.4 + 0.24 * len(shown))
        image = axes.imshow(shown.to_numpy(), aspect="auto", cmap="viridis_r", vmin=0)
        axes.set_xticks(range(shown.shape[1]), list(shown.columns), rotation=20, ha="right")
        axes.set_yticks(range(len(shown)), [shorten(name, 28) for name in shown.index], fontsize=8)
        figure.colorbar(image, ax=axes, label="normalised regret")
        axes.set_title(_shown(len(shown), len(table), comparison.noun), fontsize=10, loc="left")
        for side in axes.spines.values():
            side.set_visible(False)
        return figure

    def _result(self, axis: str | None) -> Anytime:
        return self._comparison.results[axis or self._comparison.axis]

    def _curves(self, axes: Axes, result: Anytime, values: np.ndarray, means: np.ndarray) -> None:
        low, high = result.band(values)
        x = _x(result)
        for name in self._comparison.order:
            row = result.methods.index(name)
            every = max(1, len(x) // 8)
            axes.fill_between(x, low[row], high[row], color=self._colour(name), alpha=0.13, linewidth=0, step=None)
            axes.plot(
                x, means[row], color=self._colour(name), marker=self._marker(name), markevery=every, label=name, ms=5
            )
        _label_x(axes, result, self._comparison.noun)

    def _colour(self, name: str) -> str:
        return COLOURS[self._comparison.methods.index(name) % len(COLOURS)]

    def _marker(self, name: str) -> str:
        return MARKERS[self._comparison.methods.index(name) % len(MARKERS)]


def _x(result: Anytime) -> np.ndarray:
    return result.share * result.budget[0] if _same_budget(result) else result.share


def _same_budget(result: Anytime) -> bool:
    return bool(np.ptp(result.budget) == 0)


def _label_x(axes: Axes, result: Anytime, noun: str) -> None:
    if _same_budget(result):
        axes.set_xlabel(result.axis)
    else:
        axes.set_xlabel(f"{result.axis}, as a share of what every method spent on the {noun}")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))


def _shown(shown: int, count: int, noun: str) -> str:
    all_of_them = amount(count, noun)
    return all_of_them if shown == count else f"the {shown} of {all_of_them} on which methods differ most"


def draw_critical_difference(methods: Sequence[str], mean_ranks: np.ndarray, different: np.ndarray) -> Figure:
    """Draw Demšar's diagram (2006); best on the left.

    Its bars are cliques of the Holm-corrected Wilcoxon tests instead of one Nemenyi distance, as Benavoli, Corani and
    Mangili advise (Should We Really Use Post-Hoc Tests Based on Mean-Ranks?, JMLR 17, 2016).

    Args:
        methods, mean_ranks: in the same order.
        different: square, True where a pair differs significantly.
    """
    order = np.argsort(mean_ranks, kind="stable")
    bars = cliques(mean_ranks, different)
    left = order[: (len(order) + 1) // 2]
    right = order[len(left) :][::-1]
    depth = BAR * (len(bars) + 1)
    rows = max(len(left), len(right))
    low, high = 1, len(methods)
    figure = Plot(figsize=(7.0, 1.0 + depth + ROW * rows), layout="constrained")
    axes = figure.add_subplot()
    reach = 0.32 * (high - low)
    axes.set_xlim(low - reach, high + reach)
    axes.set_ylim(-depth - ROW * (rows + 0.3), 0.55)
    axes.axis("off")
    axes.plot([low, high], [0, 0], color="black", linewidth=1)
    for tick in range(low, high + 1):
        axes.plot([tick, tick], [0, 0.08], color="black", linewidth=1)
        axes.text(tick, 0.13, str(tick), ha="center", va="bottom", fontsize=9)
    axes.text((low + high) / 2, 0.42, "mean rank", ha="center", va="bottom", fontsize=9)
    for side, names, align in ((low - 0.05 * reach, left, "right"), (high + 0.05 * reach, right, "left")):
        for row, index in enumerate(names):
            height = -depth - ROW * (row + 0.5)
            rank = mean_ranks[index]
            axes.plot([rank, rank, side], [0, height, height], color="#555555", linewidth=0.9)
            axes.text(
                side, height, f" {methods[index]} ({rank:.2f}) ", ha=align, va="center", fontsize=10, color="black"
            )
    for number, members in enumerate(bars):
        height = -BAR * (number + 0.8)
        ends = mean_ranks[list(members)]
        axes.plot(
            [ends.min() - 0.03, ends.max() + 0.03],
            [height, height],
            color="#D55E00",
            linewidth=4,
            solid_capstyle="butt",
        )
    return figure
