"""A run in a thread of the program that has started it, such as a notebook."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from tuning.basics.public import Public
from tuning.driver.signals import Signals
from tuning.errors import RunError, RunInterrupted
from tuning.runs.progress import Counter, Progress
from tuning.runs.results import RunResult
from tuning.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import pandas as pd


class RunHandle(Public):
    """A run that goes on in the background; `TuneRunner.run(background=True)` makes it.

    A program that ends takes the run with it, which can then be resumed. directory: the run's. counter: what its
    workers report. signals: what asks it to stop. work: does all of it, and gives its result.
    """

    public = ("running", "progress", "result", "leaderboard", "cancel", "wait", "directory")
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("stop", "kill", "interrupt", "terminate"), "cancel()"),
        **dict.fromkeys(("join", "get"), "wait()"),
        **dict.fromkeys(
            ("best_config", "best_params", "model", "customer", "trials", "summary"),
            "on its `result`, which may be unfinished",
        ),
        **dict.fromkeys(("status", "state", "done", "is_alive"), "running, or progress"),
    }

    def __init__(
        self, directory: RunDirectory, counter: Counter, signals: Signals, work: Callable[[], RunResult]
    ) -> None:
        self.directory = directory
        self._counter, self._signals, self._work = counter, signals, work
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="tuning-run", daemon=True)
        # Python 3.11 takes a thread for ended once somebody who waited for it was interrupted.
        self._ended = threading.Event()

    def start(self) -> RunHandle:
        """Begin to work."""
        _current[:] = [self]
        self._thread.start()
        return self

    @property
    def running(self) -> bool:
        """Whether it still goes on."""
        return not self._ended.is_set()

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return self._counter.now

    @property
    def result(self) -> RunResult:
        """What is recorded so far."""
        found = RunResult(self.directory)
        if self.running:
            found.goes_on = True
        return found

    def leaderboard(self, sort: str = "customer") -> pd.DataFrame:
        """`RunResult.leaderboard` of what is recorded so far."""
        return self.result.leaderboard(sort)

    def cancel(self) -> None:
        """Have it finish writing and stop, as Ctrl-C does; a second call ends its workers at once.

        What is recorded is kept, and the run can be resumed.
        """
        self._signals.ask()

    def wait(self, timeout: float | None = None) -> RunResult:
        """What came of it, when it has ended or after `timeout` seconds: a result says itself what is unfinished.

        What ended the run before its time is raised here, but not that somebody has cancelled it. Ctrl-C ends the
        waiting, and not the run.
        """
        self._ended.wait(timeout)
        if self._error is not None:
            raise self._error
        return self.result

    def __repr__(self) -> str:
        state, progress = "", self.progress
        if not self.running:
            state = "ended, " if self._error is None else f"failed: {self._error}; "
            progress = replace(progress, doing="")
        return f"RunHandle({self.directory.shown!r}: {state}{progress})"

    def _repr_html_(self) -> str:
        return self.result.html_table(repr(self))

    def _run(self) -> None:
        try:
            self._work()
        except RunInterrupted:  # somebody has cancelled it
            pass
        except BaseException as error:
            self._error = error
        finally:
            self._ended.set()


_current: list[RunHandle] = []  # the latest of this process


def check_free() -> None:
    """Raise `RunError` while a run of this process goes on in the background: both would share its Ray, and its log."""
    for handle in _current:
        if handle.running and threading.current_thread() is not handle._thread:
            raise RunError(
                f"the run in {handle.directory.shown} goes on in the background of this process, which works on one "
                "run at a time. Wait for it with its handle's wait(), or end it with cancel()."
            )
