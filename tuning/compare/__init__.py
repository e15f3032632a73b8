"""Comparing search algorithms, so that the answer can be believed.

Everything is computed from one table of curves (`tuning.compare.analysis.curves`), wherever it comes from: a run of
this program, a replay of recorded evaluations, or somebody else's experiment. Importing this package loads nothing
heavy; its names are loaded when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tuning.compare.analysis.curves import Curves as Curves
    from tuning.compare.comparison import Comparison as Comparison
    from tuning.compare.comparison import analyse as analyse
    from tuning.compare.on_data import compare as compare
    from tuning.compare.on_data import comparison_of as comparison_of
    from tuning.compare.tabular.replay import compare_on_table as compare_on_table
    from tuning.compare.tabular.replay import replay as replay
    from tuning.compare.tabular.table import Table as Table
    from tuning.compare.tabular.tabulate import tabulate as tabulate

_NAMES = {
    "analysis.curves": ("Curves",),
    "comparison": ("Comparison", "analyse"),
    "on_data": ("compare", "comparison_of"),
    "tabular.replay": ("compare_on_table", "replay"),
    "tabular.table": ("Table",),
    "tabular.tabulate": ("tabulate",),
}


def __getattr__(name: str) -> object:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
