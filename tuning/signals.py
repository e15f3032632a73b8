"""Ctrl-C and SIGTERM: the first one is a wish, the second one an order, the third one an exception."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

from tuning.errors import RunInterrupted

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Signals:
    """Notes the first signal, answers the second with `order`, and raises `RunInterrupted` at the third.

    received: number of the first signal, 0 before it. last: of the latest one. order: what stops the work now, called
    in a thread of its own; without it the second signal raises. at_once: raise at the first one already.
    A context manager. Outside of the main thread, where Python delivers no signals, it does nothing.
    """

    def __init__(self, at_once: bool = False) -> None:
        self.received, self.last = 0, int(signal.SIGINT)
        self.order: Callable[[], None] | None = None
        self._at_once = at_once
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Signals:
        self.install()
        return self

    def __exit__(self, *exc: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        self._before.clear()

    def install(self) -> None:
        """Take the signals over, also from somebody who did so meanwhile (`ray.init` does)."""
        if threading.current_thread() is not threading.main_thread():
            return
        for number in SIGNALS:
            handler = signal.signal(number, self._handle)
            self._before.setdefault(number, handler)

    def _handle(self, number: int, _: FrameType | None) -> None:
        self.last = number
        if self._at_once or (self.received and self.order is None):
            raise RunInterrupted(number)
        if self.received and self.order is not None:
            order, self.order = self.order, None
            threading.Thread(target=order, daemon=True).start()
            return
        self.received = number
        print("\nstopping: what is finished is being written (once more: stop now)", file=sys.stderr)  # noqa: T201
