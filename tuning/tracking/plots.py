"""Plots of a run's leaderboard for the summary run: what tuning gained, customer by customer."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def leaderboard_plots(csv: bytes) -> dict[str, bytes]:
    """name → SVG: the gain of every customer, and tuned against default scores; {} when nothing was scored."""
    import pandas as pd

    board = pd.read_csv(io.BytesIO(csv))
    scored = board.dropna(subset=["test_score", "default_test_score"])
    if scored.empty:
        return {}
    metric = str(scored["metric"].iloc[0])
    return {"plots/gain.svg": _svg(_gain(scored, metric)), "plots/default-and-tuned.svg": _svg(_scores(scored, metric))}


def _gain(scored: pd.DataFrame, metric: str) -> Figure:
    figure, axes = _axes()
    gains = scored["gain"].sort_values(ascending=False).to_numpy()
    better = gains > 0
    positions = range(1, len(gains) + 1)
    axes.bar(positions, gains, width=1.0, color=["#2a7f9e" if up else "#b5523b" for up in better])
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_xlabel("customers, the largest gain first")
    axes.set_ylabel(f"gain over the default configuration ({metric}, hold-out)")
    axes.set_title(f"Tuning helped {int(better.sum())} of {len(gains)} customers")
    return figure


def _scores(scored: pd.DataFrame, metric: str) -> Figure:
    figure, axes = _axes()
    axes.scatter(scored["default_test_score"], scored["test_score"], s=18, alpha=0.7, color="#2a7f9e")
    both = scored[["default_test_score", "test_score"]].to_numpy()
    axes.plot([both.min(), both.max()], [both.min(), both.max()], color="black", linewidth=0.8)
    axes.set_xlabel(f"default configuration ({metric}, hold-out)")
    axes.set_ylabel(f"tuned ({metric}, hold-out)")
    axes.set_title("One dot per customer; on the line nothing has changed")
    return figure


def _axes() -> tuple[Figure, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    return figure, figure.subplots()


def _svg(figure: Figure) -> bytes:
    stream = io.BytesIO()
    figure.savefig(stream, format="svg", metadata={"Date": None})
    return stream.getvalue()
