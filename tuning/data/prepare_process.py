"""The user's `prepare` in a child process, for a look at customers before a run, where it may hang or exit."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from tuning.basics.timing import HANG_S
from tuning.basics.wording import raised
from tuning.data.child_process import ChildProcess
from tuning.errors import NotLookedAtError
from tuning.notes import FileCode, Note
from tuning.user_code import Function, apply_prepare, loaded_function, source_of, user_function

if TYPE_CHECKING:
    import pandas as pd


class PrepareProcess:
    """Gives rows to `prepare` in a child process; a context manager that ends it.

    Attributes:
        name: of the function, None where there is none.
        seconds: how long it may take for one customer.
        lost: why customers could not be looked at, by their ids; nobody is tried twice.
    """

    def __init__(self, name: str | None, seconds: float) -> None:
        self.name = name
        self.seconds = seconds
        self.lost: dict[str, Note] = {}
        self._child = ChildProcess()

    def __enter__(self) -> PrepareProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.end()

    def frame(self, rows: pd.DataFrame, customer: str) -> pd.DataFrame:
        """A customer's rows as `prepare` gives them back; `CustomerError` when it fails.

        `NotLookedAtError` when it takes too long or ends its process.
        """
        if customer not in self.lost:
            try:
                return self._asked(rows)
            except NotLookedAtError as error:
                self.lost[customer] = error.note
            finally:
                if customer in self.lost:
                    self._child.end()
        raise NotLookedAtError(self.lost[customer])

    def _asked(self, rows: pd.DataFrame) -> pd.DataFrame:
        assert self.name is not None
        if not self._child.started:
            source = source_of(self.name)
            given = user_function(self.name) if source is None else self.name
            self._child.call("prepare", HANG_S, _load, given, source)
        return self._child.call("prepare", self.seconds, _prepared, rows)


_functions: list[Function] = []  # of the child: the one that it has loaded


def _load(given: Function | str, source: str | None) -> None:
    try:
        _functions.append(loaded_function(given, source) if isinstance(given, str) else given)
    except Exception as error:
        raise NotLookedAtError(FileCode.NOT_FOR_A_PROCESS("prepare", error=raised(error))) from error


def _prepared(rows: pd.DataFrame) -> pd.DataFrame:
    return apply_prepare(_functions[-1], rows)
