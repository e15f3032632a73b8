"""When a signal is answered with an exception, and when that waits a moment."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tuning.driver.signals import Signals
from tuning.errors import RunInterrupted


def test_a_signal_within_an_import_is_answered_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else Python's lock on imports stays taken, and threads that import wait for ever."""
    (tmp_path / "imported_slowly.py").write_text("import os\nos.kill(os.getpid(), 2)\nready = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    def work() -> None:
        importlib.import_module("imported_slowly")

    _interrupted(work)
    assert sys.modules.pop("imported_slowly").ready


def test_a_signal_within_a_finalizer_is_not_lost() -> None:
    class Finalized:
        def __del__(self) -> None:
            os.kill(os.getpid(), signal.SIGINT)

    _interrupted(Finalized)


def _interrupted(work: Callable[[], object]) -> None:
    """Signals are answered while it works or soon after."""
    with Signals(at_once=True), pytest.raises(RunInterrupted):
        _work_and_wait(work)


def _work_and_wait(work: Callable[[], object]) -> None:
    work()
    ends = time.monotonic() + 5
    while time.monotonic() < ends:
        time.sleep(0.01)
