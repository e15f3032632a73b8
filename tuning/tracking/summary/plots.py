"""Plots of a run's leaderboard for the summary run: what tuning gained, customer by customer.

matplotlib is imported when something will be drawn: its third of a core-second is spent beside the search, by a thread
that leaves the cores to it, because a run waits for the plots at its end.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import os
import threading
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UP, DOWN = "#2a7f9e", "#b5523b"
SIZE = (8.0, 4.5)  # inches
MOST_BARS = 700  # one for each pixel, about; more customers are drawn as quantiles


class Scores(NamedTuple):
    """What one customer's models score on the hold-out; NaN where nothing was scored."""

    metric: str
    baseline: float
    tuned: float
    gain: float


@cache
def warm_up() -> None:
    """Begin to import what drawing needs, in a thread of the lowest priority; later calls do nothing."""
    threading.Thread(target=_import_matplotlib, name="import-matplotlib", daemon=True).start()


def _import_matplotlib() -> None:
    with contextlib.suppress(OSError):  # not every system has priorities of threads
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    import matplotlib.backends.backend_svg
    import matplotlib.figure  # noqa: F401  # loaded here, before it is needed


def leaderboard_plots(board: bytes) -> dict[str, bytes]:
    """name → SVG: the gain of every customer, and tuned against baseline scores; {} when nothing was scored.

    board: the leaderboard as CSV.
    """
    rows = [_scores_of(row) for row in csv.DictReader(io.StringIO(board.decode()))]
    scored = [row for row in rows if math.isfinite(row.tuned) and math.isfinite(row.baseline)]
    if not scored:
        return {}
    plots = {"plots/baseline-and-tuned.svg": _draw_scores(scored)}
    gains = sorted((row.gain for row in rows if math.isfinite(row.gain)), reverse=True)
    if gains:
        plots["plots/gain.svg"] = _draw_gains(gains, scored[0].metric)
    return plots


def _scores_of(row: dict[str, str]) -> Scores:
    baseline, tuned, gain = (_number(row.get(name)) for name in ("baseline_test_score", "test_score", "gain"))
    return Scores(row.get("metric") or "score", baseline, tuned, gain)


def _number(text: str | None) -> float:
    try:
        return float(text or "nan")
    except ValueError:
        return math.nan


def _draw_gains(gains: list[float], metric: str) -> bytes:
    figure, axes = _axes()
    count = min(len(gains), MOST_BARS)
    shown = [gains[position * len(gains) // count] for position in range(count)]
    width = len(gains) / count
    places = [0.5 + (position + 0.5) * width for position in range(count)]
    axes.bar(places, shown, width=width, color=[UP if gain > 0 else DOWN for gain in shown])
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_title(f"Tuning helped {sum(gain > 0 for gain in gains)} of {len(gains)} customers")
    axes.set_xlabel("customers, the largest gain first")
    axes.set_ylabel(f"gain over the baseline ({metric}, hold-out)")
    return _svg(figure)


def _draw_scores(scored: list[Scores]) -> bytes:
    figure, axes = _axes()
    metric = scored[0].metric
    ends = [pick(value for row in scored for value in (row.baseline, row.tuned)) for pick in (min, max)]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.scatter([row.baseline for row in scored], [row.tuned for row in scored], color=UP, alpha=0.7)
    axes.set_title("One dot per customer; on the line nothing has changed")
    axes.set_xlabel(f"baseline ({metric}, hold-out)")
    axes.set_ylabel(f"tuned ({metric}, hold-out)")
    return _svg(figure)


def _axes() -> tuple[Figure, Axes]:
    from matplotlib.figure import Figure  # without pyplot: no window, no global state

    figure = Figure(figsize=SIZE, layout="tight")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _svg(figure: Figure) -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format="svg")
    return content.getvalue()
