"""Files of new rows through the models of many customers, in one pass: each file's answer is placed whole, in order.

Beside each answer stands a note which file it was made of and by whose models, below `_predictions`. A repeat leaves
alone what is noted and unchanged, so that it goes on where an earlier one ended, however that was.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby

import pyarrow as pa

from tuning.basics.documents import Json
from tuning.data.registry import format_of
from tuning.definition.cpus import usable_cpus
from tuning.errors import CustomerError, DataError, TuningError, UntrustedCodeError, reason_of
from tuning.models.residuals import check_interval
from tuning.notes import Note
from tuning.runs.batch.answers import AnswerCounts, AnsweredRows
from tuning.runs.batch.models import CustomerModels
from tuning.runs.batch.output import answer_columns, answer_schema, joined_tables, write_tables
from tuning.runs.batch.rows import NewFile, Window, customers_in, new_files, windows
from tuning.runs.batch.workers import PredictionWorkers
from tuning.storage.names import mask
from tuning.storage.run_directory import RunDirectory

NOTES = "_predictions"
AHEAD_BYTES, MOST_AHEAD = 1 << 27, 256  # of rows that are read ahead of those that are written; windows of files


@dataclass(kw_only=True)
class BatchCounts(AnswerCounts):
    """What came of a batch.

    Attributes:
        files, unchanged: files that were written, and that an earlier pass had written.
        broken: files that could not be read or written, each with the reason.
        rows: that were written.
        customers: that had rows.
        models: that were loaded.
        load_seconds, predict_seconds: of all processes together.
        seconds: from the first file to the last.
    """

    files: int = 0
    unchanged: int = 0
    broken: dict[str, Note] = field(default_factory=dict)
    rows: int = 0
    customers: set[str] = field(default_factory=set)
    models: int = 0
    load_seconds: float = 0.0
    predict_seconds: float = 0.0
    seconds: float = 0.0

    @property
    def loading(self) -> float:
        """The share of loading models in the time of the processes that predict."""
        return self.load_seconds / max(1e-9, self.load_seconds + self.predict_seconds)

    def add(self, customer: str, answered: AnsweredRows) -> None:
        super().add(customer, answered)
        self.customers.add(customer)
        self.models += answered.loaded
        self.load_seconds += answered.load_seconds
        self.predict_seconds += answered.predict_seconds


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
        formulas: as of `write_tables`.

    `DataError` where no file is there, or one would be overwritten.
    """
    check_interval(interval)
    start = time.perf_counter()
    files, directory = new_files(data), RunDirectory(output)
    for file in files:
        if directory.locate(file.name) == file.path:
            raise DataError(f"--output: {mask(output)!r} holds {file.name!r} of --data; name another folder.")
    left = [file for file in files if not _noted(directory, file, _state(file, models, interval))]
    counts = BatchCounts(unchanged=len(files) - len(left))
    with PredictionWorkers(models, processes or usable_cpus(), interval) as workers:
        _Pass(models, workers, directory, counts, formulas, interval).go_through(left)
    counts.seconds = time.perf_counter() - start
    return counts


@dataclass(frozen=True)
class _AskedWindow:
    """A window of a file that is with the workers, or why the file cannot be read."""

    file: NewFile
    window: Window | None = None
    answers: tuple[Future[AnsweredRows], ...] = ()
    columns: pa.Schema | None = None
    broken: Note | None = None

    @property
    def size(self) -> int:
        """Bytes of its rows."""
        return 0 if self.window is None else int(self.window.rows.nbytes)


@dataclass
class _Pass:
    """Goes through files: rows are read and given to the workers ahead of those that are written."""

    models: CustomerModels
    workers: PredictionWorkers
    directory: RunDirectory
    counts: BatchCounts
    formulas: str
    interval: float | None

    def go_through(self, left: Sequence[NewFile]) -> None:
        """Write the answer to each file."""
        for file, asked in groupby(_ahead(self._asked(left)), lambda each: each.file):
            answers: list[tuple[str, int, AnsweredRows]] = []
            try:
                write_tables(self.directory, file.name, self._tables(asked, answers), formulas=self.formulas)
                self._note(file, answers)
            except (CustomerError, pa.ArrowException) as error:
                self.counts.broken[file.name] = reason_of(error)

    def _asked(self, left: Sequence[NewFile]) -> Iterator[_AskedWindow]:
        for file in left:
            try:
                yield from self._windows(file)
            except UntrustedCodeError:
                raise
            except TuningError as error:
                yield _AskedWindow(file, broken=reason_of(error))

    def _windows(self, file: NewFile) -> Iterator[_AskedWindow]:
        before: Window | None = None
        columns: pa.Schema | None = None
        for window in windows(file, self.models):
            if before is not None:
                columns = columns or self._columns(file)
                yield self._ask(file, before, columns)
            before = window
        assert before is not None
        yield self._ask(file, before, columns)

    def _ask(self, file: NewFile, window: Window, columns: pa.Schema | None) -> _AskedWindow:
        answers = tuple(self.workers.submit([(each.customer, each.rows) for each in window.customers]))
        return _AskedWindow(file, window, answers, columns)

    def _columns(self, file: NewFile) -> pa.Schema:
        """What the customers of a file need that is not held as a whole, by what their models say of themselves."""
        asked = self.workers.submit([(customer, None) for customer in customers_in(file, self.models)])
        answers = [each.result() for each in asked]
        self.counts.models += sum(each.loaded for each in answers)
        self.counts.load_seconds += sum(each.load_seconds for each in answers)
        return answer_schema(answers)

    def _tables(self, windows: Iterator[_AskedWindow], told: list[tuple[str, int, AnsweredRows]]) -> Iterator[pa.Table]:
        for asked in windows:
            if asked.window is None:
                assert asked.broken is not None
                raise CustomerError(asked.broken)
            answers = [each.result() for each in asked.answers]
            of = asked.window.customers
            told += [(each.customer, len(each.places), found) for each, found in zip(of, answers, strict=True)]
            columns = asked.columns or answer_schema(answers)
            added = answer_columns(asked.window, answers, columns, self.models.mark)
            yield joined_tables(asked.window.rows, added)

    def _note(self, file: NewFile, told: list[tuple[str, int, AnsweredRows]]) -> None:
        before, rows = self.counts.predicted, sum(count for _, count, _ in told)
        for customer, _, answered in told:
            self.counts.add(customer, answered)
        self.counts.files += 1
        self.counts.rows += rows
        found = {
            **_state(file, self.models, self.interval),
            "rows": rows,
            "predicted": self.counts.predicted - before,
        }
        self.directory.write(_note_of(file), json.dumps(found, ensure_ascii=False).encode())


def _ahead(asked: Iterator[_AskedWindow]) -> Iterator[_AskedWindow]:
    """The same, with some of them asked already when one is given."""
    waiting: deque[_AskedWindow] = deque()
    size = 0
    for each in asked:
        waiting.append(each)
        size += each.size
        while size > AHEAD_BYTES or len(waiting) > MOST_AHEAD:
            size -= waiting[0].size
            yield waiting.popleft()
    yield from waiting


def _note_of(file: NewFile) -> str:
    return f"{NOTES}/{file.name}.json"


def _state(file: NewFile, models: CustomerModels, interval: float | None) -> dict[str, object]:
    """What the answer to a file depends on."""
    return {"stamp": format_of(file.path).stamp(file.path), "models": models.version, "interval": interval}


def _noted(directory: RunDirectory, file: NewFile, state: Mapping[str, object]) -> bool:
    """Whether an earlier pass has written the answer to this very file by these very models."""
    try:
        note: Json = json.loads(directory.read(_note_of(file)))
    except (OSError, ValueError):
        return False
    return all(note.get(name) == value for name, value in state.items()) and directory.exists(file.name)
