"""The user's `prepare` in a child process, for a look at customers before a run: it may hang there, or end its process.

In a run the workers are such processes. As there, `faulthandler`'s watchdog ends what takes too long, also where C code
has the interpreter. The child is started for the first rows, and again after it has died.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection, Pipe
from types import TracebackType
from typing import TYPE_CHECKING

from tuning.basics.environment import import_environment
from tuning.basics.timing import HANG_S
from tuning.basics.wording import duration, raised
from tuning.errors import CustomerError, NotLookedAtError
from tuning.user_code import apply_prepare, loaded_function, source_of, user_function

if TYPE_CHECKING:
    import pandas as pd


GLANCE_S = 0.1  # between two looks whether the child is still there


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
        self.lost: dict[str, str] = {}
        self._child: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def __enter__(self) -> PrepareProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def frame(self, rows: pd.DataFrame, customer: str) -> pd.DataFrame:
        """A customer's rows as `prepare` gives them back; `CustomerError` when it fails.

        `NotLookedAtError` when it takes too long or ends its process.
        """
        if customer not in self.lost:
            try:
                return self._asked(rows)
            except NotLookedAtError as error:
                self.lost[customer] = str(error)
            finally:
                if customer in self.lost:
                    self._end()
        raise NotLookedAtError(self.lost[customer])

    def _asked(self, rows: pd.DataFrame) -> pd.DataFrame:
        began = time.monotonic()
        try:
            connection = self._started()
            content = _packed(rows)
            began = time.monotonic()
            connection.send_bytes(content)
            return self._answer(connection)
        except (EOFError, OSError) as error:
            if time.monotonic() - began >= self.seconds:
                raise NotLookedAtError(f"prepare took longer than {duration(self.seconds)}") from error
            raise NotLookedAtError(f"prepare has ended its process ({self._end()})") from error

    def _started(self) -> Connection:
        """The connection to the child, which has loaded the function."""
        if self._connection is not None:
            return self._connection
        assert self.name is not None
        source = source_of(self.name)
        content = _packed((self.name if source is not None else user_function(self.name), source, self.seconds))
        here, there = Pipe()
        self._connection = here
        with there:
            self._child = subprocess.Popen(  # noqa: S603  # our own interpreter and our own words
                [sys.executable, "-m", "tuning.data.prepare_process", str(there.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                env={**os.environ, **import_environment(), "PYTHONBREAKPOINT": "0"},  # nobody could type there
                process_group=0,  # so that what it has started ends with it
            )
        here.send_bytes(content)
        self._answer(here)
        return here

    def _answer(self, connection: Connection) -> pd.DataFrame:
        """What the child sends, raised where it is an error; `EOFError` when it is gone."""
        while not connection.poll(GLANCE_S):
            if self._child is None or (self._child.poll() is not None and not connection.poll()):
                raise EOFError  # not seen otherwise where a process of its own has kept the connection open
        answer: pd.DataFrame | CustomerError = connection.recv()
        if isinstance(answer, CustomerError):
            raise answer
        return answer

    def _end(self) -> str:
        """End the child and what it has started; how it has ended."""
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


def _packed(value: object) -> bytes:
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(value))
    except Exception as error:  # whatever is in the rows
        raise NotLookedAtError(f"it cannot be passed on to a process: {raised(error)}") from error


def _serve(connection: Connection) -> None:
    """The child: the function is loaded, then each table that arrives is given to it, and its answer sent back."""
    quiet = open(os.devnull, "wb")  # noqa: SIM115  # the watchdog writes to it to the end
    faulthandler.dump_traceback_later(HANG_S, exit=True, file=quiet)
    try:
        given, source, seconds = connection.recv()
        function = given if source is None else loaded_function(given, source)
    except Exception as error:
        connection.send_bytes(_packed(NotLookedAtError(f"prepare cannot be loaded in a process: {raised(error)}")))
        return
    connection.send(None)
    while True:
        faulthandler.cancel_dump_traceback_later()
        try:
            rows = connection.recv()
        except EOFError:
            return
        faulthandler.dump_traceback_later(seconds, exit=True, file=quiet)
        try:
            content = _packed(apply_prepare(function, rows))
        except CustomerError as error:
            content = _packed(error)
        connection.send_bytes(content)


if __name__ == "__main__":
    _serve(Connection(int(sys.argv[1])))
