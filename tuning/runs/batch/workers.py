"""Child processes that predict: each has the models of its own part of the customers, each loaded once.

What a model does to its process is the end of that process, and not of this one: the customer gets no predictions, and
another process goes on with the others.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

import pyarrow as pa

from tuning.basics.timing import hang_seconds
from tuning.data.child_process import ChildProcess
from tuning.errors import NotLookedAtError, TuningError, UntrustedCodeError
from tuning.models.compute import trains_with
from tuning.models.skops_format import dump_skops
from tuning.notes import FileCode, Note
from tuning.runs.batch.answers import AnsweredRows, answered, rows_for
from tuning.runs.batch.models import CustomerModels, ModelAnswer

if TYPE_CHECKING:
    import pandas as pd

    from tuning.models.customer_model import CustomerModel

ATTEMPTS = 2  # of a customer whose model has ended its process, which may have been no fault of the model
AT_ONCE = 32  # customers that a process is asked for together: each call takes a millisecond here
MOST_MODELS = 2_000  # in the memory of a process, those used last


#: A customer and its rows; None for its model's own examples.
RowsToAnswer: TypeAlias = tuple[str, "pa.Table | None"]


class PredictionWorkers:
    """So many child processes, each started when it is first needed; a context manager that ends them.

    interval: as of `CustomerModel.predict`.
    """

    def __init__(self, models: CustomerModels, count: int, interval: float | None = None) -> None:
        self._models, self._interval = models, interval
        self._children = [ChildProcess() for _ in range(count)]
        self._threads = [ThreadPoolExecutor(1, f"predictions-{number}") for number in range(count)]
        self._lost: dict[str, Note] = {}  # customers whose model has ended its process too often, and how
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        for thread, child in zip(self._threads, self._children, strict=True):
            thread.shutdown(wait=False, cancel_futures=True)
            child.end()
        for thread, child in zip(self._threads, self._children, strict=True):
            thread.shutdown()
            child.end()  # which the thread may have started meanwhile

    def submit(self, asked: Sequence[RowsToAnswer]) -> list[Future[AnsweredRows]]:
        """Have rows predicted, those of a customer always by the same process."""
        answers: list[Future[AnsweredRows]] = [Future() for _ in asked]
        places: dict[int, list[int]] = {}
        for number, (customer, _) in enumerate(asked):
            places.setdefault(zlib.crc32(customer.encode()) % len(self._children), []).append(number)
        for place, numbers in places.items():
            for start in range(0, len(numbers), AT_ONCE):
                some = numbers[start : start + AT_ONCE]
                given, wanted = [asked[number] for number in some], [answers[number] for number in some]
                self._threads[place].submit(self._work, self._children[place], given, wanted)
        return answers

    def _work(self, child: ChildProcess, asked: Sequence[RowsToAnswer], wanted: Sequence[Future[AnsweredRows]]) -> None:
        try:
            found = self._together(child, asked)
        except BaseException as error:
            for each in wanted:
                each.set_exception(error)
            return
        for each, answer in zip(wanted, found, strict=True):
            each.set_result(answer)

    def _together(self, child: ChildProcess, asked: Sequence[RowsToAnswer]) -> list[AnsweredRows]:
        """In one call, and one by one where one of them has ended the process."""
        given = [(customer, None if rows is None else _content(rows)) for customer, rows in asked]
        seconds = hang_seconds(sum(0 if rows is None else len(rows) for _, rows in asked), of_objective=False)
        if self._lost.keys().isdisjoint(customer for customer, _ in asked):
            with suppress(NotLookedAtError):
                return child.call("their models", seconds, answer_all, self._models, given, self._interval)
        return [self._alone(child, seconds, *each) for each in given]

    def _alone(self, child: ChildProcess, seconds: float, customer: str, content: bytes | None) -> AnsweredRows:
        left = 0 if customer in self._lost else ATTEMPTS
        while left and not self._closed:
            left -= 1
            try:
                return child.call("its model", seconds, answer_rows, self._models, customer, content, self._interval)
            except NotLookedAtError as error:
                if not left:
                    self._lost[customer] = error.note
        return AnsweredRows(reason=self._lost.get(customer) or FileCode.PREDICTIONS_STOPPED())


def _content(rows: pa.Table) -> bytes:
    """The rows as a stream, which holds them alone and not all of which they are a slice."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    return bytes(sink.getvalue())


class _LoadedModels:
    """The models that a child has at hand; the one used last is dropped last."""

    def __init__(self, models: CustomerModels) -> None:
        self.models, self.loads = models, 0
        self._kept: OrderedDict[str, ModelAnswer | TuningError] = OrderedDict()

    def of(self, customer: str) -> ModelAnswer:
        """A customer's answer. `TuningError` where it has none."""
        if customer not in self._kept:
            try:
                self._kept[customer] = self.models.of(customer)
                self.loads += 1
            except UntrustedCodeError:
                raise
            except TuningError as error:
                self._kept[customer] = error
            while len(self._kept) > MOST_MODELS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(customer)
        found = self._kept[customer]
        if isinstance(found, TuningError):
            raise found
        return found


@lru_cache(maxsize=1)
def _loaded(models: CustomerModels) -> _LoadedModels:
    dump_skops([])  # loads the libraries that all models are loaded by
    return _LoadedModels(models)


def answer_all(
    models: CustomerModels, asked: Sequence[tuple[str, bytes | None]], interval: float | None
) -> list[AnsweredRows]:
    """In a child: `answer_rows` of several customers."""
    return [answer_rows(models, customer, content, interval) for customer, content in asked]


def answer_rows(models: CustomerModels, customer: str, content: bytes | None, interval: float | None) -> AnsweredRows:
    """In a child: what the customer's model says of rows, or of its examples."""

    def rows(model: CustomerModel) -> pd.DataFrame | None:
        if content is None:
            return model.example
        return rows_for(pa.ipc.open_stream(content).read_all(), model, models.definition.csv_options)

    with trains_with(models.definition.resources.compute):
        at_hand = _loaded(models)
        before = at_hand.loads
        found = answered(lambda: at_hand.of(customer), rows, interval)
    fresh = at_hand.loads - before
    return found if found.reason else replace(found, loaded=fresh, load_seconds=fresh * found.load_seconds)
