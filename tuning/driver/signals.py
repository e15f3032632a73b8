"""Ctrl-C and SIGTERM. First: finish and stop. Second: kill the workers. Third: raise."""

from __future__ import annotations

import inspect
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from tuning.errors import RunInterrupted

Handler = Callable[[int, FrameType | None], object] | int | None  # as `signal.signal` takes and gives it
SIGNALS = (signal.SIGINT, signal.SIGTERM)
DELICATE_FILES = ("<frozen importlib._bootstrap>", logging.__file__)
AGAIN_S = 0.02  # until a signal that came at a bad moment is answered


class Signals:
    """Notes the first signal, answers the second with `order`, and raises `RunInterrupted` at the third.

    received: number of the first signal, 0 before it. last: of the latest one. order: what stops the work now, called
    in a thread of its own; without it the second signal raises. at_once: raise at the first one already.
    Where an exception would be swallowed or do harm (`_delicate`) it is raised a moment later. Libraries swallow some,
    too: whoever works under `at_once` looks at `received`.
    A context manager. Outside of the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self, at_once: bool = False) -> None:
        self.received, self.last = 0, int(signal.SIGINT)
        self.order: Callable[[], None] | None = None
        self.at_once = at_once
        self._before: dict[int, Handler] = {}
        self._delicate = 0  # a program may itself be an import

    def __enter__(self) -> Signals:
        self.install()
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._before.clear()

    def install(self) -> None:
        """Take over the signals, also from code that has installed its own handlers since."""
        if threading.current_thread() is not threading.main_thread():
            return
        self._delicate = _delicate(inspect.currentframe())
        for number in SIGNALS:
            handler = signal.signal(number, self._handle)
            self._before.setdefault(number, handler)

    def leave(self, code: int) -> None:
        """The process is about to end with this code: a further signal only makes that quicker."""
        for number in self._before:
            signal.signal(number, lambda *_: os._exit(code))

    def ask(self) -> None:
        """Note a wish to stop that is no signal; the second one stops the work now."""
        if self.received:
            self._stop_at_once()
        self.received = self.received or self.last

    def _stop_at_once(self) -> None:
        if self.order is not None:
            order, self.order = self.order, None
            threading.Thread(target=order, daemon=True).start()

    def _send(self, number: int) -> None:
        """A signal once more, to the thread that answers signals."""
        if self._before:
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.last, again = number, bool(self.received)
        self.received = self.received or number
        if self.at_once or (again and self.order is None):
            if _delicate(frame) > self._delicate:
                threading.Timer(AGAIN_S, self._send, [number]).start()
                return
            raise RunInterrupted(number)
        if again:
            self._stop_at_once()
            return
        print("\nStopping once finished trials are written. Press Ctrl-C again to stop immediately.", file=sys.stderr)  # noqa: T201  # the user waits for it


def _delicate(frame: FrameType | None) -> int:
    """How many frames of a stack stand no exception.

    Within an import it can leave Python's lock on all imports taken, for which other threads then wait for ever. Out of
    a finalizer, and out of what `logging` does when a process forks, Python prints it and goes on.
    """
    found = 0
    while frame is not None:
        code = frame.f_code
        found += code.co_filename in DELICATE_FILES or code.co_name == "__del__"
        frame = frame.f_back
    return found


@contextmanager
def kept() -> Iterator[None]:
    """Within it, signal handlers stay as they are, and processes that start have SIGTERM blocked.

    `ray.init` puts a handler of its own in place that ends the process wherever it is. And a SIGTERM to the whole
    process group (`timeout`, a service manager) would end Ray's processes before this one could finish.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    original = signal.signal

    def refuse(number: int, handler: Handler) -> Handler:
        return signal.getsignal(number) if number in SIGNALS else original(number, handler)

    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    signal.signal = refuse  # type: ignore[assignment]  # Ray gets nothing else from here on
    try:
        yield
    finally:
        signal.signal = original
        for number in SIGNALS:  # beneath Python, Ray put a handler there that prints the stack first
            signal.signal(number, signal.getsignal(number))
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
