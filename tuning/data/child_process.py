"""A user's code in a child process: it may hang there, or end its process. Before a run `prepare` is tried there.

In a run the workers are such processes. As there, `faulthandler`'s watchdog ends what takes too long, also where C code
has the interpreter. The child is started for the first call, and again after it has died.
"""

from __future__ import annotations

import contextlib
import faulthandler
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection, Pipe
from typing import TYPE_CHECKING, Self, TypeVar, cast

from tuning.basics.environment import import_environment
from tuning.basics.timing import HANG_S
from tuning.basics.wording import raised
from tuning.errors import NotLookedAtError, TuningError
from tuning.notes import FileCode, Note
from tuning.user_code import Function, apply_prepare, dump_pickle, loaded_function, source_of, user_function

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")
GLANCE_S = 0.1  # between two looks whether the child is still there


class ChildProcess:
    """Calls functions in a child process; a context manager that ends it."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    @property
    def started(self) -> bool:
        """Whether there is a child, as far as one knows."""
        return self._connection is not None

    def call(self, what: str, seconds: float, function: Callable[..., T], *given: object) -> T:
        """Return what the function returns in the child. An error of ours that it raises is raised here.

        `NotLookedAtError` when it takes longer than these seconds, ends its process, or cannot be passed on to it.
        what: is called so, in that error's message.
        """
        content = _packed((seconds, function, given))
        began = math.inf
        try:
            connection = self._started()
            connection.send_bytes(content)
            self._answer(connection)  # it has loaded what it was sent
            began = time.monotonic()
            return cast("T", self._answer(connection))
        except (EOFError, OSError) as error:
            if time.monotonic() - began >= seconds:
                self.end()
                raise NotLookedAtError(FileCode.LOOK_TOOK_LONGER(what, seconds=seconds)) from error
            raise NotLookedAtError(FileCode.LOOK_ENDED_PROCESS(what, end=self.end())) from error

    def end(self) -> str:
        """End the child and what it has started, and return how it ended."""
        child, self._child = self._child, None
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if child is None:
            return "it could not be started"
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        code = child.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def _started(self) -> Connection:
        """Return the connection to the child, which has loaded what it needs."""
        if self._connection is not None:
            return self._connection
        here, there = Pipe()
        self._connection = here
        with there:
            self._child = subprocess.Popen(  # noqa: S603  # our own interpreter and our own words
                [sys.executable, "-m", "tuning.data.child_process", str(there.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                env={**os.environ, **import_environment(), "PYTHONBREAKPOINT": "0"},  # nobody could type there
                process_group=0,  # so that what it has started ends with it
            )
        self._answer(here)
        return here

    def _answer(self, connection: Connection) -> object:
        """Return what the child sends, raised where it is an error; `EOFError` when it is gone."""
        while not connection.poll(GLANCE_S):
            if self._child is None or (self._child.poll() is not None and not connection.poll()):
                raise EOFError  # not seen otherwise where a process of its own has kept the connection open
        answer: object = connection.recv()
        if isinstance(answer, TuningError):
            raise answer
        return answer


class PrepareProcess(ChildProcess):
    """Gives rows to the user's `prepare` in a child process.

    Attributes:
        name: of the function, None where there is none.
        seconds: how long it may take for one customer.
        lost: why customers could not be looked at, by their ids; nobody is tried twice.
    """

    def __init__(self, name: str | None, seconds: float) -> None:
        super().__init__()
        self.name, self.seconds = name, seconds
        self.lost: dict[str, Note] = {}

    def frame(self, rows: pd.DataFrame, customer: str) -> pd.DataFrame:
        """Return a customer's rows as `prepare` returns them; `CustomerError` when it fails.

        `NotLookedAtError` when it takes too long or ends its process.
        """
        if customer not in self.lost:
            try:
                if not self.started:
                    assert self.name is not None
                    source = source_of(self.name)
                    given = user_function(self.name) if source is None else self.name
                    self.call("prepare", HANG_S, _load, given, source)
                return self.call("prepare", self.seconds, _prepared, rows)
            except NotLookedAtError as error:
                self.lost[customer] = error.note
                self.end()
        raise NotLookedAtError(self.lost[customer])


_functions: list[Function] = []  # of the child: the one that it has loaded


def _load(given: Function | str, source: str | None) -> None:
    try:
        _functions.append(loaded_function(given, source) if isinstance(given, str) else given)
    except Exception as error:
        raise NotLookedAtError(FileCode.NOT_FOR_A_PROCESS("prepare", error=raised(error))) from error


def _prepared(rows: pd.DataFrame) -> pd.DataFrame:
    return apply_prepare(_functions[-1], rows)


def _packed(value: object) -> bytes:
    try:
        return dump_pickle(value)
    except Exception as error:  # whatever is in the rows
        raise NotLookedAtError(FileCode.NOT_FOR_A_PROCESS("it", error=raised(error))) from error


def _serve(connection: Connection) -> None:
    """Call each function that arrives, and send its answer back. This is what the child runs."""
    import cloudpickle

    quiet = open(os.devnull, "wb")  # noqa: SIM115  # the watchdog writes to it to the end
    connection.send(None)
    while True:
        faulthandler.cancel_dump_traceback_later()
        try:
            content = connection.recv_bytes()
        except EOFError:
            return
        faulthandler.dump_traceback_later(HANG_S, exit=True, file=quiet)
        try:
            seconds, function, given = cloudpickle.loads(content)
            connection.send(None)
            faulthandler.dump_traceback_later(seconds, exit=True, file=quiet)
            answer = _packed(function(*given))
        except TuningError as error:
            answer = _packed(error)
        except (Exception, SystemExit) as error:
            answer = _packed(NotLookedAtError(FileCode.NOT_FOR_A_PROCESS("it", error=raised(error))))
        connection.send_bytes(answer)


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
