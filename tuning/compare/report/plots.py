"""The plots of a comparison, as matplotlib figures that a notebook shows; markers and order repeat the colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from tuning.basics.wording import amount, shorten
from tuning.compare.analysis.anytime import Anytime
from tuning.compare.analysis.result import ComparisonResult
from tuning.compare.report.critical_difference import draw as draw_critical_difference
from tuning.compare.report.tables import summary
from tuning.reporting.figure import COLOURS, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MARKERS = "os^Dv<>P*X"
SHOWN_TASKS = 40
# Of a name in a plot, in points.
LABEL_WIDTH, LABEL_HEIGHT = 90, 11


class Plots:
    """`comparison.plot.regret()` and its sisters; each call makes a new figure."""

    def __init__(self, comparison: ComparisonResult) -> None:
        self._comparison = comparison

    def regret(self, axis: str | None = None) -> Figure:
        """Mean normalised regret over the budget, with 95 % bootstrap bands over tasks; less is better."""
        result = self._result(axis)
        figure, axes = new_figure()
        self._curves(axes, result, result.clipped, result.mean_regret)
        exact = self._random_search(result)
        if exact is not None:
            axes.plot(_x(result), exact, color="#555555", linestyle=":", label="random search, exact")
        lowest = result.mean_regret[result.mean_regret > 0]
        if lowest.size and result.mean_regret.max() > 20 * lowest.min():
            axes.set_yscale("log")
        axes.set_ylabel("mean normalised regret")
        axes.legend(frameon=False, fontsize=9)
        return figure

    def rank(self, axis: str | None = None) -> Figure:
        """Mean rank over the budget, with 95 % bootstrap bands over tasks; 1 is best."""
        result = self._result(axis)
        figure, axes = new_figure()
        self._curves(axes, result, result.ranks, result.mean_rank)
        axes.set_ylabel("mean rank")
        axes.invert_yaxis()
        axes.legend(frameon=False, fontsize=9)
        return figure

    def critical_difference(self) -> Figure:
        """Mean ranks on a line; a bar joins methods that the tests do not tell apart (Holm-Wilcoxon cliques)."""
        comparison = self._comparison
        return draw_critical_difference(comparison.methods, comparison.ranks, comparison.pairs.different)

    def effects(self) -> Figure:
        """The difference in mean regret of every method to the reference, with its 95 % interval and the margin."""
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
        """Regret at the end of the budget per task and method; the tasks on which methods differ most, at most 40."""
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

    def cost(self) -> Figure:
        """Mean regret at the end of the budget against cost relative to the reference; lower left is best."""
        comparison = self._comparison
        final = comparison.final
        figure, axes = new_figure()
        costs = summary(comparison)["cost"].to_dict()
        low, high = final.band(final.clipped[:, :, -1:])
        points = []
        for name in comparison.order:
            row = final.methods.index(name)
            x, y = costs[name], final.mean_regret[row, -1]
            if np.isnan(x):
                continue
            axes.plot([x, x], [low[row, 0], high[row, 0]], color=self._colour(name), linewidth=1.5)
            axes.plot(x, y, self._marker(name), color=self._colour(name), markersize=8)
            points.append((name, x, y))
        axes.set_xlabel(f"{comparison.blocks.cost_axis or 'cost'}, as a share of {comparison.reference}'s")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0))
        axes.margins(x=0.18)
        left, right = axes.get_xlim()
        axes.set_xlim(min(left, 0.8), max(right, 1.2))  # two per cent must not look like a gulf
        axes.set_ylabel("mean normalised regret")
        _label_apart(figure, axes, points)
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

    def _random_search(self, result: Anytime) -> np.ndarray | None:
        """Exact expected regret of random search at the points of the trials axis, when all tasks have it."""
        exact = self._comparison.random_search
        if result.axis != "trials" or not all(task in exact for task in result.tasks):
            return None
        curves = []
        for task, budget in zip(result.tasks, result.budget, strict=True):
            regret = np.asarray(exact[task])
            done = np.maximum(np.floor(result.share * budget + 1e-9).astype(int), 1)
            curves.append(regret[np.minimum(done, len(regret)) - 1])
        return np.asarray(np.mean(np.clip(curves, 0, 1), axis=0))

    def _colour(self, name: str) -> str:
        return COLOURS[self._comparison.methods.index(name) % len(COLOURS)]

    def _marker(self, name: str) -> str:
        return MARKERS[self._comparison.methods.index(name) % len(MARKERS)]


def _label_apart(figure: Figure, axes: Axes, points: list[tuple[str, float, float]]) -> None:
    """Names beside points, moved up where they would cover one another or another's point."""
    figure.draw_without_rendering()
    where = {name: axes.transData.transform((x, y)) * 72 / figure.dpi for name, x, y in points}
    taken: list[tuple[float, float]] = []
    for name, x, y in sorted(points, key=lambda point: point[2]):
        across, up = map(float, where[name])
        others = [tuple(map(float, place)) for other, place in where.items() if other != name and place[0] > across]
        place = up + 4
        while any(
            abs(place - other) < LABEL_HEIGHT and abs(across - beside) < LABEL_WIDTH
            for beside, other in [*taken, *others]
        ):
            place += 1
        taken.append((across, place))
        axes.annotate(name, (x, y), xytext=(8, place - up), textcoords="offset points", fontsize=9)


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
