"""New rows through the models of a run, as they would have been read and prepared for training."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import pyarrow as pa

from tuning.basics.wording import option
from tuning.data.arrow_frames import to_arrow
from tuning.data.column_types import exact_frame
from tuning.data.registry import without_suffix
from tuning.errors import CustomerError, DataError, DefinitionError
from tuning.models.residuals import check_interval
from tuning.notes import FileCode
from tuning.preprocessing.shapes import FrameLike, text_names, to_frame
from tuning.runs.batch.answers import AnswerCounts, answered, predicted, rows_for
from tuning.runs.batch.models import CustomerModels, RunModels, SavedModels
from tuning.runs.batch.output import answer_columns, answer_schema, joined_tables
from tuning.runs.batch.rows import NewFile, Window, window_of_frame, windows
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


def predict_rows(
    result: SavedModels,
    rows: NewRows,
    customer: object = None,
    *,
    allow_code: bool = False,
    interval: float | None = None,
) -> PredictedRows:
    """New rows with predictions.

    rows: a frame, or a file. customer: whose model; None takes each row's own, by the key columns of the definition, or
    the model of the run's only customer. interval: as of `CustomerModel.predict`.
    """
    models = RunModels(result, allow_code)
    return predict_by(models, rows, customer, several=len(result) > 1, interval=interval)


def predict_by(
    models: CustomerModels,
    rows: NewRows,
    customer: object = None,
    *,
    several: bool = True,
    interval: float | None = None,
    marked: bool = False,
) -> PredictedRows:
    """The same by models of any kind.

    several: whether there are more customers than one. marked: columns say what has answered, and of which models.
    """
    check_interval(interval)
    rows = rows if isinstance(rows, pd.DataFrame | str | Path) else to_frame(rows)
    by, csv = models.definition.by, models.definition.csv_options
    if customer is None and not by and several:
        raise DefinitionError(
            f"{option('customer')} is needed: the run's customers are files, so rows name no customer."
        )
    if customer is None and by:
        window = _window(rows, models)
        names = [each.customer for each in window.customers]
        answers = [
            answered(partial(models.of, each.customer), partial(rows_for, each.rows, csv=csv), interval)
            for each in window.customers
        ]
    else:
        answer = models.of(customer)
        check_interval(interval, answer.model.task)
        window = _window(rows, models, alone=True)
        if not window.customers:
            raise CustomerError(FileCode.NO_ROWS())
        names = [answer.model.customer]
        whole = rows_for(window.customers[0].rows, answer.model, csv)
        answers = [predicted(answer, whole, interval, alone=True)]
    columns = answer_columns(window, answers, answer_schema(answers), models.mark if marked else None)
    found = PredictedRows(came=window.rows, answers=columns)
    for name, each in zip(names, answers, strict=True):
        found.add(name, each)
    return found


def _window(rows: pd.DataFrame | str | Path, models: CustomerModels, *, alone: bool = False) -> Window:
    """All rows. `DataError`: what is wrong with their file. alone: as of `windows`."""
    if isinstance(rows, pd.DataFrame):
        return window_of_frame(rows, () if alone else models.definition.by)
    name = without_query(str(rows)).rpartition("/")[2]
    try:
        return next(windows(NewFile(str(rows), without_suffix(name), name), models, math.inf, alone=alone))
    except CustomerError as error:
        raise DataError(error.note) from error
