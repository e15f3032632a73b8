"""Files of new rows through the models of many customers, in one pass: each file's answer is placed whole, in order.

Beside each answer stands a note which file it was made of and by whose models, below `_predictions`. A repeat leaves
alone what is noted and unchanged, so that it goes on where an earlier one ended, however that was.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, groupby, pairwise
from typing import BinaryIO

import pyarrow as pa

from tuning.basics.documents import Json
from tuning.data.file_access import file_stamp
from tuning.data.files import File, find_files
from tuning.data.new_rows import RowReader, Window
from tuning.definition.cpus import usable_cpus
from tuning.errors import CustomerError, DataError, TuningError, UntrustedCodeError, reason_of
from tuning.models.residuals import check_interval
from tuning.notes import Note
from tuning.runs.prediction.answers import (
    AnswerCounts,
    AnsweredRows,
    answer_columns,
    answer_schema,
    joined_tables,
    write_rows,
)
from tuning.runs.prediction.models import CustomerModels
from tuning.runs.prediction.workers import PredictionWorkers
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory

NOTES = "_predictions"
AHEAD_BYTES, MOST_AHEAD = 1 << 27, 256  # of rows that are read ahead of those that are written; windows of files
PIECE_BYTES = 1 << 22  # of a file that is written


@dataclass(kw_only=True)
class BatchCounts(AnswerCounts):
    """What came of a batch.

    Attributes:
        files, unchanged: files that were written, and that an earlier pass had written.
        broken: files that could not be read or written, each with the reason.
        rows: of these files.
        customers: that had rows.
        seconds: from the first file to the last.
    """

    files: int = 0
    unchanged: int = 0
    broken: dict[str, Note] = field(default_factory=dict)
    rows: int = 0
    customers: set[str] = field(default_factory=set)
    seconds: float = 0.0

    def add(self, answered: AnsweredRows) -> None:
        super().add(answered)
        self.rows += answered.rows
        self.customers.add(answered.customer)


def predict_files(
    models: CustomerModels,
    data: str | Sequence[str],
    output: str,
    *,
    processes: int | None = None,
    interval: float | None = None,
    formulas: str = "keep",
) -> BatchCounts:
    """Predict all rows of some files, each row by its customer's model, and write them into a folder.

    Args:
        data: files as of the key `data`: a glob, a folder, or paths. Where the definition has no key columns, the name
            of a file is its customer's.
        output: the folder, or a URI; the files there are called as those of `data`.
        processes: how many predict; default the CPUs.
        interval: as of `CustomerModel.predict`.
        formulas: as of `write_rows`.

    `DataError` where no file is there, or one would be overwritten.
    """
    check_interval(interval)
    start = time.perf_counter()
    files, directory = find_files(data), RunDirectory(output)
    for file in files:
        if directory.locate(file.name) == file.path:
            raise DataError(f"--output: {mask(output)!r} holds {file.name!r} of --data; name another folder.")
    left: dict[File, Json] = {}
    for file in files:
        state = {"stamp": file_stamp(file.path), "models": models.version, "interval": interval}
        if not _noted(directory, file, state):
            left[file] = state
    counts, reader = BatchCounts(unchanged=len(files) - len(left)), RowReader(models.definition, models.knows)
    with PredictionWorkers(models, processes or usable_cpus(), interval) as workers:
        for file, windows in groupby(_ahead(_asked(left, reader, workers)), lambda each: each.file):
            answers: list[AnsweredRows] = []
            try:
                _write(directory, file.name, _tables(windows, answers, models.mark), formulas)
            except (CustomerError, pa.ArrowException) as error:
                counts.broken[file.name] = reason_of(error)
                continue
            _note(directory, file, left[file])
            counts.files += 1
            for each in answers:
                counts.add(each)
    counts.seconds = time.perf_counter() - start
    return counts


@dataclass(frozen=True)
class _AskedWindow:
    """A window of a file that is with the workers; in its place, why the file cannot be read."""

    file: File
    window: Window | Note
    answers: Callable[[], list[AnsweredRows]] = list
    columns: pa.Schema | None = None

    @property
    def size(self) -> int:
        """Bytes of its rows."""
        return int(self.window.rows.nbytes) if isinstance(self.window, Window) else 0


def _asked(left: Iterable[File], reader: RowReader, workers: PredictionWorkers) -> Iterator[_AskedWindow]:
    """Give the rows of files to the workers.

    A file that is not held as a whole gets the columns that its customers need by what their models say of themselves.
    """
    for file in left:
        columns = None
        try:
            for window, following in pairwise(chain(reader.windows(file), [None])):
                assert window is not None
                if following is not None and columns is None:
                    columns = answer_schema(workers.submit([(name, None) for name in reader.customers_in(file)])())
                answers = workers.submit([(each.customer, each.rows) for each in window.customers])
                yield _AskedWindow(file, window, answers, columns)
        except UntrustedCodeError:
            raise
        except TuningError as error:
            yield _AskedWindow(file, reason_of(error))


def _ahead(asked: Iterator[_AskedWindow]) -> Iterator[_AskedWindow]:
    """Yield the same, with some of them asked already when one is given."""
    waiting: deque[_AskedWindow] = deque()
    size = 0
    for each in asked:
        waiting.append(each)
        size += each.size
        while size > AHEAD_BYTES or len(waiting) > MOST_AHEAD:
            size -= waiting[0].size
            yield waiting.popleft()
    yield from waiting


def _tables(
    windows: Iterator[_AskedWindow], told: list[AnsweredRows], mark: tuple[str, str | int]
) -> Iterator[pa.Table]:
    """Yield the rows with their answers. told: gets these."""
    for asked in windows:
        if isinstance(asked.window, Note):
            raise CustomerError(asked.window)
        answers = asked.answers()
        told += answers
        added = answer_columns(asked.window, answers, asked.columns or answer_schema(answers), mark)
        yield joined_tables(asked.window.rows, added)


def _write(directory: RunDirectory, name: str, tables: Iterable[pa.Table], formulas: str) -> None:
    """Place a file of some tables, whole or not at all; no more than one of them is in memory."""
    with tempfile.TemporaryFile() as content:
        write_rows(content, name, tables, formulas=formulas)
        directory.write_pieces(name, _Pieces(content))


def _note(directory: RunDirectory, file: File, state: Json) -> None:
    directory.write(f"{NOTES}/{file.name}.json", json.dumps(state, ensure_ascii=False).encode())


def _noted(directory: RunDirectory, file: File, state: Json) -> bool:
    """Return whether an earlier pass has written the answer to this very file by these very models."""
    try:
        note: Json = json.loads(directory.read(f"{NOTES}/{file.name}.json"))
    except (OSError, ValueError):
        return False
    return bool(note == state) and directory.exists(file.name)


class _Pieces:
    """The content of a file, from its beginning each time: a storage may take it at a second attempt only."""

    def __init__(self, content: BinaryIO) -> None:
        self._content = content

    def __iter__(self) -> Iterator[bytes]:
        self._content.seek(0)
        return iter(partial(self._content.read, PIECE_BYTES), b"")
