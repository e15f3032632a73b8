"""A matplotlib figure that belongs to nobody, no pyplot and no global state, and that a notebook shows by itself."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Plot(Figure):
    """A figure whose value a notebook shows as a picture, also without `%matplotlib inline`."""

    def _repr_png_(self) -> bytes:
        sink = io.BytesIO()
        self.savefig(sink, format="png", dpi=100)
        return sink.getvalue()
