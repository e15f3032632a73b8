"""Child processes that predict: each has the models of its own part of the customers, each loaded once.

What a model does to its process is the end of that process, and not of this one: the customer gets no predictions, and
another process goes on with the others.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from functools import lru_cache, partial
from typing import TypeAlias

import pyarrow as pa

from tuning.basics.timing import hang_seconds
from tuning.data.child_process import ChildProcess
from tuning.errors import NotLookedAtError
from tuning.models.compute import trains_with
from tuning.models.skops_format import dump_skops
from tuning.notes import FileCode, Note
from tuning.runs.prediction.answers import AnsweredRows, answered
from tuning.runs.prediction.models import CustomerModels, ModelAnswer

AT_ONCE = 32  # customers that a process is asked for together: each call takes a millisecond here
MOST_MODELS = 2_000  # in the memory of a process, those used last


#: A customer and its rows; None for its model's own examples.
RowsToAnswer: TypeAlias = tuple[str, "pa.Table | None"]


class PredictionWorkers(AbstractContextManager["PredictionWorkers"]):
    """So many child processes, each started when it is first needed; a context manager that ends them.

    interval: as of `CustomerModel.predict`.
    """

    def __init__(self, models: CustomerModels, count: int, interval: float | None = None) -> None:
        self._models, self._interval = models, interval
        self._children = [ChildProcess() for _ in range(count)]
        self._threads = [ThreadPoolExecutor(1, f"predictions-{number}") for number in range(count)]
        self._lost: dict[str, Note] = {}  # customers whose model has ended its process alone, and how
        self._closed = False

    def __exit__(self, *_: object) -> None:
        self._closed = True
        for thread, child in zip(self._threads, self._children, strict=True):
            thread.shutdown(wait=False, cancel_futures=True)
            child.end()
        for thread, child in zip(self._threads, self._children, strict=True):
            thread.shutdown()
            child.end()  # which the thread may have started meanwhile

    def submit(self, asked: Sequence[RowsToAnswer]) -> Callable[[], list[AnsweredRows]]:
        """Have rows predicted, those of a customer always by the same process; call what it returns for the answers."""
        places: dict[int, list[int]] = {}
        for number, (customer, _) in enumerate(asked):
            places.setdefault(zlib.crc32(customer.encode()) % len(self._children), []).append(number)
        parts = []
        for place, numbers in places.items():
            for start in range(0, len(numbers), AT_ONCE):
                some = numbers[start : start + AT_ONCE]
                given = [asked[number] for number in some]
                parts.append((some, self._threads[place].submit(self._together, self._children[place], given)))

        def answers() -> list[AnsweredRows]:
            found = {number: each for some, part in parts for number, each in zip(some, part.result(), strict=True)}
            return [found[number] for number in range(len(asked))]

        return answers

    def _together(self, child: ChildProcess, asked: Sequence[RowsToAnswer]) -> list[AnsweredRows]:
        """Answer in one call, and one by one where one of them has ended the process."""
        given = [(customer, None if rows is None else _content(rows)) for customer, rows in asked]
        counts = [0 if rows is None else len(rows) for _, rows in asked]
        seconds = hang_seconds(sum(counts), of_objective=False)
        if self._lost.keys().isdisjoint(customer for customer, _ in asked):
            with suppress(NotLookedAtError):
                return child.call("their models", seconds, answer_all, self._models, given, self._interval)
        return [self._alone(child, seconds, *each) for each in zip(given, counts, strict=True)]

    def _alone(self, child: ChildProcess, seconds: float, asked: tuple[str, bytes | None], count: int) -> AnsweredRows:
        customer, _ = asked
        if customer not in self._lost and not self._closed:
            try:
                return child.call("its model", seconds, answer_all, self._models, [asked], self._interval)[0]
            except NotLookedAtError as error:
                self._lost[customer] = error.note
        return AnsweredRows(customer, count, reason=self._lost.get(customer) or FileCode.PREDICTIONS_STOPPED())


def _content(rows: pa.Table) -> bytes:
    """Return the rows as a stream, which holds them alone and not all of which they are a slice."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


@lru_cache(maxsize=1)
def _same(models: CustomerModels) -> CustomerModels:
    """Return the first of equal models that a child was sent: it has read its definition."""
    dump_skops([])  # loads the libraries that all models are loaded by
    return models


@lru_cache(maxsize=MOST_MODELS)
def _model(models: CustomerModels, customer: str) -> ModelAnswer:
    return models.of(customer)


def answer_all(
    models: CustomerModels, asked: Sequence[tuple[str, bytes | None]], interval: float | None
) -> list[AnsweredRows]:
    """Return, in a child, what the models of several customers say of their rows, or of their own examples."""
    models = _same(models)
    definition = models.definition
    rows = [None if content is None else pa.ipc.open_stream(content).read_all() for _, content in asked]
    with trains_with(definition.resources.compute):
        return [
            answered(partial(_model, models), customer, each, definition.csv_options, interval)
            for (customer, _), each in zip(asked, rows, strict=True)
        ]
