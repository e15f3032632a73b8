"""Plots of a run's leaderboard for the summary run: what tuning gained, customer by customer.

matplotlib is imported when something will be drawn: its third of a core-second is spent beside the search, by a thread
that leaves the cores to it, because a run waits for the plots at its end.
"""

from __future__ import annotations

import contextlib
import io
import os
import threading
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UP, DOWN = "#2a7f9e", "#b5523b"
SIZE = (8.0, 4.5)  # inches
MOST_BARS = 700  # one for each pixel, about; more customers are drawn as quantiles
MOST_DOTS = 5000  # each of them is a line of the file


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
    rows = pyarrow.csv.read_csv(
        io.BytesIO(board),
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=_TYPES, include_columns=list(_TYPES), include_missing_columns=True
        ),
    )
    tuned, baseline, gain = (_numbers(rows[name]) for name in ("test_score", "baseline_test_score", "gain"))
    scored = np.isfinite(tuned) & np.isfinite(baseline)
    if not scored.any():
        return {}
    metric = next(iter(rows["metric"].unique().drop_null().to_pylist()), "score")
    plots = {"plots/baseline-and-tuned.svg": _draw_scores(baseline[scored], tuned[scored], metric)}
    gains = np.sort(gain[np.isfinite(gain)])[::-1]
    if gains.size:
        plots["plots/gain.svg"] = _draw_gains(gains, metric)
    return plots


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """A column with NaN where nothing is; nearly every other way from Arrow to numpy loads pandas."""
    return np.array(column.to_pylist(), dtype=float)


_TYPES = {"metric": pa.string(), **dict.fromkeys(("test_score", "baseline_test_score", "gain"), pa.float64())}


def _draw_gains(gains: np.ndarray, metric: str) -> bytes:
    figure, axes = _axes()
    count = min(len(gains), MOST_BARS)
    shown = [gains[position * len(gains) // count] for position in range(count)]
    width = len(gains) / count
    places = [0.5 + (position + 0.5) * width for position in range(count)]
    axes.bar(places, shown, width=width, color=[UP if gain > 0 else DOWN for gain in shown])
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.set_title(f"Tuning helped {(gains > 0).sum()} of {len(gains)} customers")
    axes.set_xlabel("customers, the largest gain first")
    axes.set_ylabel(f"gain over the baseline ({metric}, hold-out)")
    return _svg(figure)


def _draw_scores(baseline: np.ndarray, tuned: np.ndarray, metric: str) -> bytes:
    figure, axes = _axes()
    ends = [float(pick(pick(baseline), pick(tuned))) for pick in (min, max)]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    shown = slice(None, None, -(-len(tuned) // MOST_DOTS))
    axes.scatter(baseline[shown], tuned[shown], color=UP, alpha=0.7)
    dots = "One dot per customer" if shown.step == 1 else f"{len(tuned[shown])} of {len(tuned)} customers"
    axes.set_title(f"{dots}; on the line nothing has changed")
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
