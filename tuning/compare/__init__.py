"""Comparing search algorithms, so that the answer can be believed.

Everything is computed from one table of curves (`tuning.compare.analysis.curves`), wherever it comes from: a run of
this program, a replay of recorded evaluations, or somebody else's experiment. Importing this package loads nothing
heavy; its names are loaded when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuning.compare.analysis.curves import Curves
    from tuning.compare.comparison import Comparison, analyse
    from tuning.compare.on_data import compare, comparison_of
    from tuning.compare.tabular.replay import compare_on_table, replay
    from tuning.compare.tabular.table import Table
    from tuning.compare.tabular.tabulate import tabulate

_HOME = {
    "Comparison": "tuning.compare.comparison",
    "Curves": "tuning.compare.analysis.curves",
    "Table": "tuning.compare.tabular.table",
    "analyse": "tuning.compare.comparison",
    "compare": "tuning.compare.on_data",
    "compare_on_table": "tuning.compare.tabular.replay",
    "comparison_of": "tuning.compare.on_data",
    "replay": "tuning.compare.tabular.replay",
    "tabulate": "tuning.compare.tabular.tabulate",
}

__all__ = [
    "Comparison",
    "Curves",
    "Table",
    "analyse",
    "compare",
    "compare_on_table",
    "comparison_of",
    "replay",
    "tabulate",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
