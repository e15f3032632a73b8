"""What a child process takes out of a run for one request.

It works in a folder of its own, where the rows to predict are, and leaves its answer there.
"""

from __future__ import annotations

import csv
import json
import math
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tuning.basics.wording import amount, shorten
from tuning.errors import DataError, DefinitionError, NoModelError
from tuning.notes import EndCode

if TYPE_CHECKING:
    import pyarrow as pa

    from tuning.runs.prediction.rows import PredictedRows

ANSWER = "answer"
ROWS_CSV, ROWS_JSON, ROWS_TABLE = "rows.csv", "rows.json", "rows.parquet"
DIGESTS = "SHA256SUMS"
MOST_COLUMNS, MOST_CELLS = 10_000, 10_000_000

RowCell = float | int | str | bool | None  # of a row that is predicted


class RowsMessage(BaseModel):
    """Rows to predict."""

    model_config = ConfigDict(allow_inf_nan=False)

    rows: list[Mapping[str, RowCell]] = Field(
        description="By column name, with the columns of the training data; without `id` the key columns, too.",
        min_length=1,
        examples=[[{"region": "north", "age": 41}]],
    )


def write_model(run: str, customer: str | None) -> None:
    """A ZIP archive of a customer's saved model, each file checked against its digest, with a list of the digests."""
    from tuning.models.model_files import saved_files
    from tuning.runs.results import RunResult

    result = RunResult(run)
    found = result.customer(customer)
    if found.study is None or found.study.model_path is None:
        why = found.reason or EndCode.NOT_SAVED()
        raise NoModelError(EndCode.CUSTOMER_LACKS(found.customer, what="model", why=why))
    digests = []
    with zipfile.ZipFile(ANSWER, "w") as archive:
        for file in saved_files(result.directory, found.study.model_path, found.study.model_sha256):
            archive.writestr(zipfile.ZipInfo(file.name), file.content)
            digests.append(f"{file.sha256}  {file.name}\n")
        archive.writestr(zipfile.ZipInfo(DIGESTS), "".join(digests))


def write_report(run: str, customer: str) -> None:
    """The page that `tuning report RUN --customer ID` writes."""
    from tuning.runs.report.customer import customer_page
    from tuning.runs.results import RunResult

    Path(ANSWER).write_text(customer_page(RunResult(run), customer), encoding="utf-8")


def write_run_predictions(run: str, customer: str | None, most: int, formulas: str, interval: float | None) -> None:
    """Predict rows by the models of a run; see `write_predictions` and `RunResult.predict`."""
    from tuning.runs.results import RunResult

    write_predictions(lambda file: RunResult(run).predicted(file, customer, interval=interval), most, formulas)


def write_predictions(predict: Callable[[str], PredictedRows], most: int, formulas: str) -> None:
    """The rows with predictions, as JSON or CSV, as they came. predict: those of a file. most: rows that are taken.
    formulas: "keep" or "guard", what becomes of texts in CSV that a spreadsheet would run."""
    rows = _json_rows(most) if Path(ROWS_JSON).exists() else None
    if rows is None:
        _check_csv(most)

    import pyarrow.parquet as pq

    from tuning.runs.prediction.answers import write_rows

    if rows is None:
        table = predict(ROWS_CSV).table
        with open(ANSWER, "wb") as stream:
            write_rows(stream, ROWS_CSV, [table], formulas=formulas)
        return
    pq.write_table(_table(rows), ROWS_TABLE)
    Path(ANSWER).write_text(json.dumps(_answered(rows, predict(ROWS_TABLE)), allow_nan=False), encoding="utf-8")


def _check_size(rows: int, columns: int, most: int) -> None:
    """`DefinitionError` for what would take longer to read than it may, before it is read as a table."""
    if not rows or not columns:
        raise DefinitionError.about("rows", "there are none. Send one or more with the columns of the training data.")
    if rows > most:
        raise DefinitionError.about(
            "rows", f"{rows:,} were sent; at most {most:,} are predicted at once. Send them in parts."
        )
    if columns > MOST_COLUMNS or rows * columns > MOST_CELLS:
        raise DefinitionError.about(
            "rows",
            f"{amount(rows, 'row')} of {amount(columns, 'column')} were sent; at most {MOST_COLUMNS:,} columns "
            f"and {MOST_CELLS:,} cells are taken at once. Send the training data's columns only, and rows in parts.",
        )


def _check_csv(most: int) -> None:
    """Too many rows are refused before anything reads them."""
    csv.field_size_limit(sys.maxsize)
    try:
        with open(ROWS_CSV, encoding="utf-8", newline="") as stream:
            widths = [len(row) for row in csv.reader(stream) if row]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"the body is no CSV in UTF-8: {error}") from error
    _check_size(max(0, len(widths) - 1), max(widths, default=0), most)


def _json_rows(most: int) -> list[Mapping[str, RowCell]]:
    try:
        rows = RowsMessage.model_validate_json(Path(ROWS_JSON).read_bytes()).rows
    except ValidationError as error:
        first = error.errors()[0]
        if first["type"] == "json_invalid":
            raise DefinitionError(f"the body is not JSON: {shorten(first['msg'])}.") from None
        if len(first["loc"]) < 3:
            expected = 'a list of one or more rows by column name is expected, such as {"rows": [{"age": 41}]}.'
            raise DefinitionError.about("rows", expected) from None
        _, number, name, *_ = first["loc"]
        cell = f"{shorten(ascii(name), 60)} of row {int(number) + 1}"
        raise DefinitionError.about(
            "rows", f"{cell}: a cell is a finite number, a text, true, false or null."
        ) from None
    _check_size(len(rows), len({name for row in rows for name in row}), most)
    return rows


def _table(rows: Sequence[Mapping[str, RowCell]]) -> pa.Table:
    """A column of several kinds of cells is one of texts."""
    import pyarrow as pa

    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        cells = [row.get(name) for row in rows]
        try:
            columns[name] = pa.array(cells)
        except (pa.ArrowException, OverflowError):
            columns[name] = pa.array([cell if cell is None or isinstance(cell, str) else str(cell) for cell in cells])
    return pa.table(columns)


def _answered(rows: Sequence[Mapping[str, RowCell]], found: PredictedRows) -> dict[str, object]:
    added = ({name: _plain(cell) for name, cell in answer.items()} for answer in found.answers.to_pylist())
    return {
        "rows": [{**row, **answer} for row, answer in zip(rows, added, strict=True)],
        "column": found.column,
        **found.remarks,
    }


def _plain(cell: object) -> object:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell
