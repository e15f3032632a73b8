"""Ctrl-C and SIGTERM. First: finish and stop. Second: kill the workers. Third: raise."""

from __future__ import annotations

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


class Signals:
    """Notes the first signal, answers the second with `order`, and raises `RunInterrupted` at the third.

    received: number of the first signal, 0 before it. last: of the latest one. order: what stops the work now, called
    in a thread of its own; without it the second signal raises. at_once: raise at the first one already.
    An exception from a signal may hit code that swallows it (a finalizer, a lock of `logging`): whoever works under
    `at_once` looks at `received`, too.
    A context manager. Outside of the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self, at_once: bool = False) -> None:
        self.received, self.last = 0, int(signal.SIGINT)
        self.order: Callable[[], None] | None = None
        self.at_once = at_once
        self._before: dict[int, Handler] = {}

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

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.last, again = number, bool(self.received)
        self.received = self.received or number
        if self.at_once or (again and self.order is None):
            raise RunInterrupted(number)
        if again:
            self._stop_at_once()
            return
        print("\nStopping once finished trials are written. Press Ctrl-C again to stop immediately.", file=sys.stderr)  # noqa: T201  # the user waits for it


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
