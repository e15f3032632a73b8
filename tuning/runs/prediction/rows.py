"""New rows of a frame or of one file through models, as they would have been read and prepared for training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import pyarrow as pa

from tuning.basics.wording import option
from tuning.data.column_types import exact_frame
from tuning.data.files import File
from tuning.data.formats.memory_frame import to_arrow
from tuning.data.new_rows import RowReader, Window
from tuning.data.registry import without_suffix
from tuning.errors import CustomerError, DataError, DefinitionError
from tuning.models.residuals import check_interval
from tuning.notes import FileCode
from tuning.preprocessing.shapes import FrameLike, text_names, to_frame
from tuning.runs.prediction.answers import (
    AnswerCounts,
    answer_columns,
    answer_schema,
    answered,
    joined_tables,
    predicted,
)
from tuning.runs.prediction.models import CustomerModels
from tuning.storage.names import without_query

NewRows: TypeAlias = "FrameLike | str | Path"


@dataclass(kw_only=True)
class PredictedRows(AnswerCounts):
    """New rows with predictions.

    Attributes:
        came: the rows as they came: of a CSV all cells are text.
        answers: columns of predictions and, for classes, probabilities; their names are ones that the rows do not use.
    """

    came: pd.DataFrame | pa.Table
    answers: pa.Table

    @property
    def column(self) -> str:
        """The name of the predictions."""
        return str(self.answers.column_names[0])

    @cached_property
    def rows(self) -> pd.DataFrame:
        """The rows as they came, with the answers behind. A frame's index is kept."""
        frame = self.came.copy(deep=False) if isinstance(self.came, pd.DataFrame) else exact_frame(self.came)
        further = [""] * (frame.columns.nlevels - 1)
        for name, values in exact_frame(self.answers).items():
            frame[(name, *further) if further else name] = values.array
        return frame

    @property
    def table(self) -> pa.Table:
        """The same in Arrow's types."""
        came = to_arrow(text_names(self.came)) if isinstance(self.came, pd.DataFrame) else self.came
        return joined_tables(came, self.answers)


def predict_by(
    models: CustomerModels,
    rows: NewRows,
    customer: object = None,
    *,
    several: bool = True,
    interval: float | None = None,
    marked: bool = False,
) -> PredictedRows:
    """Return new rows with predictions.

    Args:
        rows: a frame, or a file.
        customer: whose model; None takes each row's own, by the key columns of the definition, or that of the only
            customer.
        several: whether there are more customers than one.
        interval: as of `CustomerModel.predict`.
        marked: columns say what has answered, and of which models.
    """
    check_interval(interval)
    definition = models.definition
    reader, csv = RowReader(definition, models.knows), definition.csv_options
    if customer is not None or not definition.by:
        if customer is None and several:
            raise DefinitionError(
                f"{option('customer')} is needed: the run's customers are files, so rows name no customer."
            )
        answer = models.of(customer)
        check_interval(interval, answer.model.task)
        window = _whole(reader.of_one(), rows)
        if not window.customers:
            raise CustomerError(FileCode.NO_ROWS())
        answers = [predicted(answer, window.customers[0].rows, csv, interval, alone=True)]
    else:
        window = _whole(reader, rows)
        answers = [answered(models.of, each.customer, each.rows, csv, interval) for each in window.customers]
    columns = answer_columns(window, answers, answer_schema(answers), models.mark if marked else None)
    found = PredictedRows(came=window.rows, answers=columns)
    for each in answers:
        found.add(each)
    return found


def _whole(reader: RowReader, rows: NewRows) -> Window:
    """Return all rows in one window. `DataError`: what is wrong with their file."""
    if not isinstance(rows, str | Path):
        return reader.of_frame(rows if isinstance(rows, pd.DataFrame) else to_frame(rows))
    name = without_query(str(rows)).rpartition("/")[2]
    try:
        return next(reader.windows(File(str(rows), id=without_suffix(name)), math.inf))
    except CustomerError as error:
        raise DataError(error.note) from error
