"""What models say of customers' rows, or why they say nothing, and the columns that this becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, BinaryIO

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.basics.wording import guarded
from tuning.data.cells import ReadCsvOptions, marked
from tuning.data.column_types import to_frame, with_text
from tuning.data.new_rows import Window
from tuning.data.registry import file_source
from tuning.errors import CustomerError, IntervalError, RunError, UntrustedCodeError, reason_of
from tuning.models.pooled import POOL
from tuning.models.residuals import HIGH, LOW, PREDICTION, check_interval
from tuning.notes import FileCode, Note
from tuning.runs.prediction.models import NONE, ModelAnswer

if TYPE_CHECKING:
    from tuning.models.customer_model import CustomerModel

ANSWER = "answer"  # the column that says what has answered


@dataclass(frozen=True)
class AnsweredRows:
    """What came of a customer's rows.

    Attributes:
        customer: its id.
        rows: how many they are.
        columns: predictions, then probabilities of classes or the ends of intervals; None where there are none.
        answer: what has answered, as the column `answer` says it.
        reason: why there are none; None where there are.
        held_back: rows for which the model went beyond its bounds, and was held there.
        unseen: by column the rows with a text that no row had on which the model was fitted.
    """

    customer: str
    rows: int
    columns: pa.Table | None = None
    answer: str = NONE
    reason: Note | None = None
    held_back: int = 0
    unseen: Mapping[str, int] = field(default_factory=dict)


@dataclass(kw_only=True)
class AnswerCounts:
    """What came of the rows of many customers.

    Attributes:
        predicted: rows with a prediction.
        without: the customers that got none, and why.
        held_back: rows for which a model went beyond its bounds, and was held there.
        without_interval: predictions without the interval that was asked for: the pool's, and those of models of which
            no error on unseen rows is known.
        pooled: the customers without a model of their own, whose rows the run's pool predicts.
        unseen: by column the rows with a text that no row had on which their model was fitted.
    """

    predicted: int = 0
    without: dict[str, Note] = field(default_factory=dict)
    held_back: int = 0
    without_interval: int = 0
    pooled: dict[str, None] = field(default_factory=dict)
    unseen: Counter[str] = field(default_factory=Counter)

    def add(self, answered: AnsweredRows) -> None:
        """Count what came of some rows of a customer."""
        if answered.columns is None:
            assert answered.reason is not None
            self.without[answered.customer] = answered.reason
            return
        self.predicted += answered.rows
        self.held_back += answered.held_back
        if LOW in answered.columns.column_names:
            self.without_interval += answered.columns[LOW].null_count
        self.pooled |= {answered.customer: None} if answered.answer == POOL else {}
        self.unseen.update(answered.unseen)

    @property
    def remarks(self) -> dict[str, object]:
        """What is said of the rows, as plain values."""
        return {
            "without": {customer: why.to_dict() for customer, why in self.without.items()},
            "held_back": self.held_back,
            "without_interval": self.without_interval,
            "pooled": [*self.pooled],
            "unseen": dict(self.unseen),
        }


def answered(
    model_of: Callable[[str], ModelAnswer],
    customer: str,
    rows: pa.Table | pd.DataFrame | None,
    csv: ReadCsvOptions,
    interval: float | None,
) -> AnsweredRows:
    """Return what a customer's model says of rows, whatever is wrong with either; arguments as of `predicted`.

    What would be wrong of all customers alike is raised: `UntrustedCodeError`, `IntervalError`.
    """
    try:
        return replace(predicted(model_of(customer), rows, csv, interval), customer=customer)
    except (UntrustedCodeError, IntervalError):
        raise
    except (Exception, SystemExit) as error:  # of the user's own model, too
        return AnsweredRows(customer, 0 if rows is None else len(rows), reason=reason_of(error))


def predicted(
    answer: ModelAnswer,
    rows: pa.Table | pd.DataFrame | None,
    csv: ReadCsvOptions,
    interval: float | None,
    *,
    alone: bool = False,
) -> AnsweredRows:
    """Return what a model says of rows; every error is raised.

    rows: as they came; None for the model's own examples. csv: of the definition. interval: as of
    `CustomerModel.predict`. alone: a model without intervals is an error, too.
    """
    model = answer.model
    check_interval(interval, model.task)
    frame = model.example if rows is None else _frame_for(rows, model, csv)
    if frame is None:
        raise RunError("the model has no example rows.")
    found = model.prediction(frame)
    if len(found.values) != len(frame):
        raise CustomerError(FileCode.OTHER_PREDICTIONS(predictions=len(found.values), rows=len(frame)))
    numbers = partial(pa.array, type=pa.float64(), from_pandas=True)  # NaN is no number
    if model.task.classification:
        columns = {PREDICTION: _label_array(model.task.classes).take(pa.array(found.values))}
        shares = () if found.proba is None else zip(model.task.classes, found.proba.T, strict=True)
        columns |= {f"probability_{label}": numbers(values) for label, values in shares}
    else:
        columns = {PREDICTION: numbers(found.values)}
        if interval is not None:
            ends = model.ends if alone else model.known_ends
            columns |= zip((LOW, HIGH), map(numbers, ends(found, interval)), strict=True)
    unseen = {name: int(new.sum()) for name, new in (found.unseen or {}).items()}
    return AnsweredRows(
        model.customer, len(frame), pa.table(columns), answer.answer, held_back=found.held_back, unseen=unseen
    )


def _frame_for(rows: pa.Table | pd.DataFrame, model: CustomerModel, csv: ReadCsvOptions) -> pd.DataFrame:
    """Return rows as the model was fitted on such: what was text then is text again."""
    if isinstance(rows, pd.DataFrame):
        return rows
    table = marked(rows, model.text, {})
    whole = [field.name for field in table.schema if pa.types.is_integer(field.type) and field.name in model.text]
    return to_frame(with_text(table, whole), csv)


def _label_array(labels: Sequence[object]) -> pa.Array:
    """Return class labels as they are, where these are of one type; else as text."""
    try:
        return pa.array([getattr(label, "item", lambda label=label: label)() for label in labels])
    except pa.ArrowException:
        return pa.array([str(label) for label in labels], pa.string())


def answer_schema(answers: Iterable[AnsweredRows]) -> pa.Schema:
    """Return the columns that all answers need together; predictions are numbers where there is none."""
    fields = [field for each in answers if each.columns is not None for field in each.columns.schema]
    kinds = {field.type for field in fields if field.name == PREDICTION}
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    kind = kinds.pop() if len(kinds) == 1 else pa.float64() if numbers else pa.string()
    known = {PREDICTION: kind, **{field.name: field.type for field in fields if field.name != PREDICTION}}
    return pa.schema([*known.items(), (ANSWER, pa.string())])


def answer_columns(
    window: Window, answers: Sequence[AnsweredRows], schema: pa.Schema, mark: tuple[str, str | int] | None = None
) -> pa.Table:
    """Return what the models add to a window's rows, in the order of these: the predictions first.

    mark: as of `CustomerModels`, where columns are to say what has answered.
    """
    tables = [schema.empty_table()]
    for customer, answered in zip(window.customers, answers, strict=True):
        columns: dict[str, pa.Array] = {ANSWER: pa.repeat(pa.scalar(answered.answer), len(customer.places))}
        if answered.columns is not None:
            there = zip(answered.columns.column_names, answered.columns.columns, strict=True)
            columns |= {name: values.cast(schema.field(name).type) for name, values in there}
        tables.append(pa.table(columns))
    order = np.concatenate([np.arange(0), *(each.places for each in window.customers)])
    found = pa.concat_tables(tables, promote_options="default").select(schema.names)
    found = found.take(pa.array(np.argsort(order, kind="stable")))
    if mark is None:
        found = found.drop_columns(ANSWER)
    else:
        found = found.append_column(mark[0], pa.repeat(pa.scalar(mark[1]), len(found)))
    return found.rename_columns([_free_name(name, window.names) for name in found.column_names])


def joined_tables(rows: pa.Table, answers: pa.Table) -> pa.Table:
    """Return rows as they came, with the columns of answers behind."""
    for name in answers.column_names:
        rows = rows.append_column(name, answers[name])
    return rows


def _free_name(name: str, taken: Sequence[str]) -> str:
    """Return the name, with a number where it is taken."""
    number = 1
    while (found := name if number == 1 else f"{name}_{number}") in taken:
        number += 1
    return found


def write_rows(stream: BinaryIO, name: str, tables: Iterable[pa.Table], *, formulas: str = "keep") -> None:
    """Write some tables into a stream, in the format that a file of this name has.

    formulas: "guard" puts an apostrophe before texts of a CSV that a spreadsheet would run.
    """
    file_source(name, {}).write(stream, map(_guarded, tables) if formulas == "guard" else tables)


def _guarded(table: pa.Table) -> pa.Table:
    for place, each in enumerate(table.schema):
        if pa.types.is_string(each.type):
            cells = pa.array(map(guarded, table.column(place).to_pylist()), pa.string())
            table = table.set_column(place, each.name, cells)
    return table.rename_columns([str(guarded(name)) for name in table.column_names])
