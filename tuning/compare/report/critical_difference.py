"""The critical-difference diagram: mean ranks on a line, bars over methods that the tests do not tell apart.

Demšar's diagram (2006), with the cliques of the Holm-corrected Wilcoxon tests instead of one Nemenyi distance,
as Benavoli, Corani and Mangili advise (Should We Really Use Post-Hoc Tests Based on Mean-Ranks?, JMLR 17, 2016).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from tuning.compare.analysis.statistics import cliques
from tuning.reporting.figure import Plot

ROW = 0.3
BAR = 0.16


def draw(methods: Sequence[str], mean_ranks: np.ndarray, different: np.ndarray) -> Figure:
    """The diagram; best on the left. different: square, True where a pair differs significantly."""
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
