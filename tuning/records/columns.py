"""How a column of the records is declared: a field of a record, with what it means and where it is shown."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, TypeAlias, get_args, get_type_hints

import pyarrow as pa

from tuning.basics.wording import gain_text, params_text, value_text
from tuning.notes import Note, texts
from tuning.records.gains import ERRORS

#: leaderboard: CSV, JSON and DataFrame. terminal: `tuning leaderboard`. notebook: the table of customers there, and at
#: the end of a run. customer: what a notebook and
#: `tuning show` tell of one customer. report: the table in report.html; details: what opens below a row of it.
#: mlflow: the table and the medians in the summary; mlflow_model: the metrics of a model that is logged there.
View: TypeAlias = Literal[
    "leaderboard", "terminal", "notebook", "customer", "report", "details", "mlflow", "mlflow_model"
]
#: metric: as the run's `mode` has it. None: neither way.
Better: TypeAlias = Literal["metric", "larger", "smaller"] | None
#: Values of one customer's figures by name; `params` is a mapping.
FigureRow: TypeAlias = Mapping[str, object]

TEXT, FLOAT, INT, SHORT = pa.string(), pa.float64(), pa.int64(), pa.int32()
FLOATS, MAP, MOMENT = pa.list_(FLOAT), pa.map_(TEXT, FLOAT), pa.timestamp("us", tz="UTC")
STEPS = pa.list_(pa.struct([("step", SHORT), ("score", FLOAT), ("seconds", FLOAT), ("metrics", MAP)]))
NOTE = pa.struct([("code", TEXT), ("subject", TEXT), ("values", TEXT)])
NOTES = pa.list_(NOTE)
_TYPES = {str: TEXT, float: FLOAT, int: INT, Note: NOTE}
_BY_HINT = pa.null()

EVERYWHERE: tuple[View, ...] = ("leaderboard", "terminal", "notebook", "customer", "report", "mlflow", "mlflow_model")
TABLES: tuple[View, ...] = ("leaderboard", "terminal", "notebook", "report", "mlflow")
SHOWN: tuple[View, ...] = (*TABLES, "customer")
HELD_OUT: tuple[View, ...] = ("leaderboard", "terminal", "report", "mlflow", "customer")


@dataclass(frozen=True)
class Figure:
    """One column of the records or of the leaderboard.

    It has one name: in the records' files, leaderboard.csv, the terminal, notebooks, the report, MLflow and the docs.

    Attributes:
        name: its only name, which is also the heading of its column wherever it is shown.
        type: its type in a file.
        what: its meaning, for docs/records.md.
        shown: where it is shown. In MLflow every recorded number is a metric of its study's run, every text a
            tag, wherever else it is shown.
        better: which values are better.
        essential: whether a narrow page keeps it.
        long: whether its texts are long: tables show it last.
        clock: whether a clock decides it, so that two runs of the same search differ in it.
        words: how a row's value is written; by default rounded.
    """

    name: str
    type: pa.DataType
    what: str
    shown: tuple[View, ...] = ()
    better: Better = None
    essential: bool = False
    long: bool = False
    clock: bool = False
    words: Callable[[FigureRow], str] | None = None

    @property
    def is_number(self) -> bool:
        """Whether it is an amount or a score; an ordinal number, which is a `SHORT`, is neither, nor is a seed."""
        return self.type in (FLOAT, INT) and "seed" not in self.name

    def larger_first(self, mode: str) -> bool:
        """Whether a table that is sorted by it begins with its largest value: better values come first, larger ones
        where neither is better. mode: the metric's better direction."""
        return self.better != "smaller" and (self.better != "metric" or mode == "max")

    def text(self, row: FigureRow) -> str:
        """A row's value as tables show it."""
        if self.words is not None:
            return self.words(row)
        value = row[self.name]
        return texts(value) if isinstance(value, list | tuple) else value_text(value)


def gain_in(name: str) -> Callable[[FigureRow], str]:
    """Return how the gain in a column is written."""
    return lambda row: gain_text(row[name], row["metric"] in ERRORS)


def rows_in(name: str) -> Callable[[FigureRow], str]:
    """Return how a number of rows is written: nothing where there are none."""
    return lambda row: value_text(row.get(name) or None)


def params_in(row: FigureRow) -> str:
    """Return a row's configuration as a text."""
    return params_text(row["params"]) if isinstance(row["params"], Mapping) else ""


def column(what: str, shown: tuple[View, ...] = (), type: pa.DataType = _BY_HINT, **more: Any) -> Any:
    """Declare a field of a record as a column.

    type: in a file, by default the one of the annotation. more: other attributes of `Figure`.
    """
    return field(metadata={"figure": Figure("", type, what, shown, **more)})


def optional(
    what: str, shown: tuple[View, ...] = (), type: pa.DataType = _BY_HINT, default: object = None, **more: Any
) -> Any:
    """Declare a column with a default, usually None; arguments: see `column`."""
    return field(default=default, metadata={"figure": Figure("", type, what, shown, **more)})


def as_of_study() -> Any:
    """Declare a column that means what it does in the study's record, and is shown only there."""
    return field(metadata={"figure": None})


def figures_of(record: type, others: Mapping[str, Figure] | None = None) -> tuple[Figure, ...]:
    """Return the columns of a record in order. others: the figures of the study's record by name."""
    hints, found = get_type_hints(record), []
    for each in fields(record):
        figure: Figure | None = each.metadata["figure"]
        if figure is None:
            found.append(replace((others or {})[each.name], shown=()))
        else:
            by_hint = next(
                (_TYPES[kind] for kind in (hints[each.name], *get_args(hints[each.name])) if kind in _TYPES), _BY_HINT
            )
            found.append(replace(figure, name=each.name, type=by_hint if figure.type == _BY_HINT else figure.type))
    return tuple(found)
