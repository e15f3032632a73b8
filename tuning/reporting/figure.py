"""matplotlib figures: those that belong to nobody, with no pyplot and no global state, and those that a notebook shows.

Colours are Okabe and Ito's, which colour-blind readers can tell apart.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A8000")


class Plot(Figure):
    """A figure whose value a notebook shows as a picture, also without `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:
        sink = io.BytesIO()
        self.savefig(sink, format="png", dpi=100)
        return sink.getvalue()


def svg(figure: Figure, *, transparent: bool = False) -> bytes:
    """A figure as SVG, the same bytes each time.

    It is laid out here, once: to save it would do so twice, which takes as long as all the rest.
    """
    sink, layout = io.BytesIO(), figure.get_layout_engine()
    if layout is not None:
        FigureCanvasSVG(figure)
        layout.execute(figure)
        figure.set_layout_engine(None)
    with mpl.rc_context({"svg.hashsalt": "tuning"}):
        figure.savefig(sink, format="svg", metadata={"Date": None}, transparent=transparent)
    return sink.getvalue()


def new_figure(width: float = 7.0, height: float = 4.2) -> tuple[Plot, Axes]:
    """A figure with axes that are open at the top and to the right. width, height: inches."""
    figure = Plot(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def shown_axes() -> Axes:
    """The axes of a new figure of pyplot, which a notebook shows below the cell; open at the top and to the right."""
    from matplotlib import pyplot

    axes: Axes = pyplot.subplots(layout="constrained")[1]
    axes.spines[["top", "right"]].set_visible(False)
    return axes


def drawn_svg(draw: Callable[[Axes], object]) -> bytes:
    """What is drawn into new axes as SVG, the same bytes each time."""
    figure, axes = new_figure()
    draw(axes)
    return svg(figure)
