"""What is written of a file of new rows: the rows as they came, with columns of answers, in the file's own format."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from tuning.basics.wording import guarded
from tuning.data.registry import file_source
from tuning.models.residuals import PREDICTION
from tuning.runs.batch.answers import AnsweredRows
from tuning.runs.batch.rows import Window
from tuning.storage.run_directory import RunDirectory

ANSWER = "answer"  # the column that says what has answered
PIECE_BYTES = 1 << 22  # of a file that is written


def answer_schema(answers: Iterable[AnsweredRows]) -> pa.Schema:
    """The columns that all answers need together; predictions are numbers where there is none."""
    known = [each for each in answers if each.labels is not None]
    kinds = {each.labels.type for each in known if each.labels is not None}
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
    kind = kinds.pop() if len(kinds) == 1 else pa.float64() if numbers else pa.string()
    extra_columns = dict.fromkeys(name for each in known for name in each.extra_columns)
    return pa.schema([(PREDICTION, kind), *((name, pa.float64()) for name in extra_columns), (ANSWER, pa.string())])


def answer_columns(
    window: Window, answers: Sequence[AnsweredRows], schema: pa.Schema, mark: tuple[str, str | int] | None = None
) -> pa.Table:
    """What the models add to a window's rows, in the order of these: the predictions first.

    mark: as of `CustomerModels`, where columns are to say what has answered.
    """
    tables = [schema.empty_table()]
    for customer, answered in zip(window.customers, answers, strict=True):
        columns = {ANSWER: pa.repeat(pa.scalar(answered.answer), len(customer.places))}
        if answered.labels is not None:
            columns[PREDICTION] = answered.labels.cast(schema.field(PREDICTION).type)
            for name, values in answered.extra_columns.items():
                columns[name] = pa.array(values, pa.float64(), from_pandas=True)  # NaN is no number
        tables.append(pa.table(columns))
    order = np.concatenate([np.arange(0), *(each.places for each in window.customers)])
    found = pa.concat_tables(tables, promote_options="default").select(schema.names)
    found = found.take(pa.array(np.argsort(order, kind="stable")))
    if mark is None:
        found = found.drop_columns(ANSWER)
    else:
        found = found.append_column(mark[0], pa.repeat(pa.scalar(mark[1]), len(found)))
    return found.rename_columns([free_name(name, window.names) for name in found.column_names])


def joined_tables(rows: pa.Table, answers: pa.Table) -> pa.Table:
    """Rows as they came, with the columns of answers behind."""
    for name in answers.column_names:
        rows = rows.append_column(name, answers[name])
    return rows


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, with a number where it is taken."""
    known = set(taken)
    number = 1
    while (found := name if number == 1 else f"{name}_{number}") in known:
        number += 1
    return found


def write_tables(directory: RunDirectory, name: str, tables: Iterable[pa.Table], *, formulas: str = "keep") -> None:
    """Place a file of some tables, whole or not at all; no more than one of them is in memory. formulas: as of
    `write_rows`."""
    with tempfile.TemporaryFile() as content:  # gone through again where a storage takes it at a second attempt only
        write_rows(content, name, tables, formulas=formulas)
        directory.write_pieces(name, _Pieces(content))


def write_rows(stream: BinaryIO, name: str, tables: Iterable[pa.Table], *, formulas: str = "keep") -> None:
    """Write some tables into a stream, in the format that a file of this name has.

    formulas: "guard" puts an apostrophe before texts of a CSV that a spreadsheet would run.
    """
    writer = file_source(name, {}).writer(stream)
    for table in tables:
        writer.write_table(_guarded(table) if formulas == "guard" else table)
    writer.close()


class _Pieces:
    """The content of a file, from its beginning each time."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        self._content.seek(0)
        return iter(partial(self._content.read, PIECE_BYTES), b"")


def _guarded(table: pa.Table) -> pa.Table:
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            cells = pa.array(map(guarded, table.column(place).to_pylist()), pa.string())
            table = table.set_column(place, field.name, cells)
    return table.rename_columns([str(guarded(name)) for name in table.column_names])
