"""Ctrl-C and SIGTERM: the first signal stops a run in order, the second one kills its workers, the third one raises."""

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
    """A context manager that notes the first signal, calls `order` at the second, and raises at the third.

    The exception is `RunInterrupted`. Where it would be swallowed or do harm (`_delicate`), it is raised a moment
    later. Libraries swallow some exceptions, too, so code under `at_once` also looks at `received`. Outside of the main
    thread a `Signals` does nothing, because Python delivers no signals there.

    Attributes:
        received: the number of the first signal; 0 before it.
        last: the number of the latest signal.
        order: a function that stops the work now, called in a thread of its own. Without one the second signal raises.
        at_once: whether the first signal raises.
    """

    def __init__(self, at_once: bool = False) -> None:
        self.received, self.last = 0, int(signal.SIGINT)
        self.order: Callable[[], None] | None = None
        self.at_once = at_once
        self._before: dict[int, Handler] = {}
        self._delicate = 0  # frames below this one: a program may itself be an import

    def __enter__(self) -> Signals:
        if threading.current_thread() is threading.main_thread():
            self._delicate = _delicate(inspect.currentframe())
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._before.clear()

    def leave(self, code: int) -> None:
        """Let a further signal end the process at once, with this exit code."""
        for number in self._before:
            signal.signal(number, lambda *_: os._exit(code))

    def ask(self) -> None:
        """Ask for a stop without a signal; the second call stops the work now."""
        if self.received:
            self._stop_at_once()
        self.received = self.received or self.last

    def _stop_at_once(self) -> None:
        if self.order is not None:
            order, self.order = self.order, None
            threading.Thread(target=order, daemon=True).start()

    def _send(self, number: int) -> None:
        """Send a signal again, to the main thread, which handles signals."""
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
        print("\nStopping: what is finished is being written. Press Ctrl-C again to stop immediately.", file=sys.stderr)  # noqa: T201  # the user waits for it


def _delicate(frame: FrameType | None) -> int:
    """Return how many frames of a stack tolerate no exception.

    An exception within an import can leave Python's import lock taken, for which other threads then wait for ever.
    Python prints an exception of a finalizer, or of the fork handler of `logging`, and goes on as if nothing was.
    """
    found = 0
    while frame is not None:
        code = frame.f_code
        found += code.co_filename in DELICATE_FILES or code.co_name == "__del__"
        frame = frame.f_back
    return found


@contextmanager
def kept() -> Iterator[None]:
    """Keep the signal handlers as they are, and block SIGTERM in processes that start within the `with` block.

    `ray.init` installs a handler that ends this process whatever it is doing. A SIGTERM to the whole process group, as
    `timeout` and service managers send it, would end Ray's processes before this one could finish.
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
