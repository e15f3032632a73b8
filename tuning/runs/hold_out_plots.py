"""Pictures of what a model says of rows that it has never seen, one function each.

found: a customer's result, or its `hold_out()`. Each draws into `ax`, by default into a new figure of pyplot, which a
notebook shows, and returns the Axes, as those of `tuning.runs.plots` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from tuning.basics.public import own_functions
from tuning.basics.wording import shorten
from tuning.reporting.figure import COLOURS, shown_axes

if TYPE_CHECKING:
    from tuning.runs.customer_result import CustomerResult

    Unseen: TypeAlias = CustomerResult | pd.DataFrame

BLUE, GREY = COLOURS[0], "#9aa3ad"
MOST_DOTS = 2000  # each of them is a line of the file
MOST_CLASSES = 8  # with a curve each, those with most rows
MOST_CELLS = 12  # classes of a confusion matrix
BINS = 10


def __dir__() -> list[str]:
    """What Tab shows: the pictures."""
    return own_functions(globals())


def predicted_and_actual(found: Unseen, ax: Axes | None = None) -> Axes:
    """Each row's prediction against what it is; on the line the two are the same."""
    hold_out = _rows(found)
    axes, shown = ax or shown_axes(), _some(hold_out)
    ends = [float(shown[["actual", "prediction"]].min().min()), float(shown[["actual", "prediction"]].max().max())]
    axes.plot(ends, ends, color="black", linewidth=0.8)
    axes.scatter(shown["actual"], shown["prediction"], color=BLUE, alpha=0.6, s=14)
    axes.set_title("Predicted against actual")
    axes.set_xlabel("actual")
    axes.set_ylabel("predicted")
    return axes


def residuals(found: Unseen, ax: Axes | None = None) -> Axes:
    """What is left of each row when its prediction is taken from it, against the prediction."""
    hold_out = _rows(found)
    axes, shown = ax or shown_axes(), _some(hold_out)
    axes.axhline(0.0, color="black", linewidth=0.8)
    axes.scatter(shown["prediction"], shown["actual"] - shown["prediction"], color=BLUE, alpha=0.6, s=14)
    axes.xaxis.set_major_locator(MaxNLocator(5))  # labels of large numbers would run into each other
    axes.set_title("Residuals")
    axes.set_xlabel("predicted")
    axes.set_ylabel("actual minus predicted")
    return axes


def confusion(found: Unseen, ax: Axes | None = None) -> Axes:
    """How many rows of each class are taken for which; of many classes those with most rows, the others together."""
    hold_out = _rows(found)
    axes = ax or shown_axes()
    kept = _frequent(hold_out, MOST_CELLS)
    names = [str(label) for label in kept]
    actual, predicted = (_codes(hold_out[name], kept) for name in ("actual", "prediction"))
    if (np.concatenate([actual, predicted]) == len(kept)).any():
        names.append("others")
    counts = np.zeros((len(names), len(names)), dtype=int)
    np.add.at(counts, (actual, predicted), 1)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    axes.imshow(shares, cmap="Blues", vmin=0.0, vmax=1.0)
    for row, column in np.ndindex(*counts.shape):
        colour = "white" if shares[row, column] > 0.5 else "black"
        axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", color=colour, fontsize=8)
    shown = [shorten(name, 14) for name in names]
    axes.set_xticks(range(len(names)), shown, rotation=45 if len(names) > 4 else 0)
    axes.set_yticks(range(len(names)), shown)
    axes.set_title("Which class is taken for which")
    axes.set_xlabel("predicted")
    axes.set_ylabel("actual")
    return axes


def roc(found: Unseen, ax: Axes | None = None) -> Axes:
    """The share of a class that is found against the share of the others that is taken for it, at every threshold.

    Of two classes of the positive one, which is the second; of more of each against all others.
    """
    from sklearn.metrics import auc, roc_curve

    hold_out = _rows(found)
    axes, classes = ax or shown_axes(), hold_out.attrs["classes"]
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.8)
    for number, label in enumerate([classes[1]] if len(classes) == 2 else _frequent(hold_out, MOST_CLASSES)):
        is_it = (hold_out["actual"] == label).to_numpy()
        if is_it.all() or not is_it.any():
            continue
        wrong, right, _ = roc_curve(is_it, hold_out[f"probability_{label}"])
        area = f"{shorten(str(label), 20)}: area {auc(wrong, right):.3f}"
        axes.plot(wrong, right, color=COLOURS[number % len(COLOURS)], label=area)
    axes.set_title("ROC curve")
    axes.set_xlabel("share of the others taken for it")
    axes.set_ylabel("share of the class that is found")
    if len(axes.lines) > 1:
        axes.legend(frameon=False, fontsize=8, loc="lower right")
    return axes


def calibration(found: Unseen, ax: Axes | None = None) -> Axes:
    """How often it is so where the model says a probability; on the line as often as it says.

    Of two classes of the positive one; of more of the class that is predicted.
    """
    from sklearn.calibration import calibration_curve

    hold_out = _rows(found)
    axes, classes = ax or shown_axes(), hold_out.attrs["classes"]
    if len(classes) == 2:
        said, is_so = hold_out[f"probability_{classes[1]}"], hold_out["actual"] == classes[1]
    else:
        said = hold_out[[f"probability_{label}" for label in classes]].max(axis=1)
        is_so = hold_out["actual"] == hold_out["prediction"]
    share, mean = calibration_curve(is_so, said.clip(0.0, 1.0), n_bins=BINS, strategy="quantile")
    axes.plot([0, 1], [0, 1], color="black", linewidth=0.8)
    axes.plot(mean, share, color=BLUE, marker="o", markersize=4)
    what = shorten(repr(classes[1]), 30) if len(classes) == 2 else "the predicted class"
    axes.set_title("Calibration")
    axes.set_xlabel(f"probability that the model gives {what}")
    axes.set_ylabel("share of the rows where it is so")
    return axes


def _frequent(hold_out: pd.DataFrame, most: int) -> list[object]:
    """The classes with most rows, in their own order."""
    counts = hold_out["actual"].value_counts()
    kept = set(sorted(hold_out.attrs["classes"], key=lambda label: -counts.get(label, 0))[:most])
    return [label for label in hold_out.attrs["classes"] if label in kept]


def _codes(values: pd.Series, kept: Sequence[object]) -> np.ndarray:
    """(n,) the place of each value among those that are kept; of another one the place behind them."""
    places = {label: place for place, label in enumerate(kept)}
    return np.array([places.get(value, len(kept)) for value in values.tolist()], dtype=int)


def _some(hold_out: pd.DataFrame) -> pd.DataFrame:
    return hold_out.iloc[:: max(1, -(-len(hold_out) // MOST_DOTS))]


def _rows(found: Unseen) -> pd.DataFrame:
    rows: pd.DataFrame = found.hold_out() if callable(getattr(found, "hold_out", None)) else found
    if "classes" not in getattr(rows, "attrs", {}):
        kind = type(found).__name__
        raise TypeError(
            f"this picture is of one customer: give result.customer('acme') or its hold_out(), not a {kind}."
        )
    return rows
