"""Scales: one that a few values cannot ruin, as what lies far beyond all others is cut off, and a logarithmic one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from tuning.basics.wording import shorten, value_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LEAST_VALUES = 5
FAR = 5.0  # times the middle half's width, from its ends
NAMED = 3


def cut_scale(
    axes: Axes,
    values: np.ndarray,
    names: Sequence[str | None],
    *,
    at_zero: bool = False,
    along: Literal["x", "y"] = "y",
) -> None:
    """Give an axis the range of most values, where the others would take more than half of it.

    values: (n,) finite. names: of each, for those that are cut off; empty where nobody knows them. at_zero: whether 0
    is to be seen. along: the axis.
    """
    if len(values) < LEAST_VALUES:
        return
    low, high = np.quantile(values, [0.25, 0.75])
    reach = FAR * (high - low)
    inside = (values >= low - reach) & (values <= high + reach)
    kept = np.append(values[inside], 0.0) if at_zero else values[inside]
    if not reach or np.ptp(values) <= 2 * np.ptp(kept):
        return
    beyond = np.flatnonzero(~inside)
    beyond = beyond[np.argsort(-np.abs(values[beyond] - np.median(values)), kind="stable")]
    margin = 0.1 * float(np.ptp(kept))
    limit = axes.set_ylim if along == "y" else axes.set_xlim
    limit(float(kept.min()) - margin, float(kept.max()) + margin)
    named = [f"{shorten(str(names[each]), 24)} " if len(names) else "" for each in beyond[:NAMED]]
    told = [f"{name}{value_text(values[each])}" for name, each in zip(named, beyond[:NAMED], strict=True)]
    more = f" and {len(beyond) - NAMED:,} more" if len(beyond) > NAMED else ""
    below = values[beyond[0]] < low or along == "x"
    axes.text(
        *(0.02 if along == "y" else 0.98, 0.02 if below else 0.98),
        f"beyond the scale: {', '.join(told)}{more}",
        transform=axes.transAxes,
        fontsize=8,
        ha="left" if along == "y" else "right",
        va="bottom" if below else "top",
        bbox={"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5},
    )


def log_scale(axes: Axes, along: Literal["x", "y"]) -> None:
    """Make an axis logarithmic, up to three decades with 1, 2, 5, 10, … as plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis, scale = (axes.xaxis, axes.set_xscale) if along == "x" else (axes.yaxis, axes.set_yscale)
    scale("log")
    low, high = axes.get_xlim() if along == "x" else axes.get_ylim()
    axis.set_minor_formatter(NullFormatter())
    if high < 1000 * low:  # matplotlib's labels run into one another
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
