"""What libraries log, warn and print during a run goes into its `log.txt`, not into a terminal or a notebook."""

from __future__ import annotations

import contextlib
import logging
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from logging.handlers import MemoryHandler
from pathlib import Path
from typing import TextIO

from tuning.errors import StorageError
from tuning.storage.names import mask_in
from tuning.storage.run_directory import RunDirectory

FILE = "log.txt"
WARNINGS, STDOUT = "python.warnings", "ray.stdout"  # loggers of what Python warns of, and of what Tune prints
#: Loggers of libraries; those below them have no handlers of their own.
LIBRARIES = ("ray", "optuna", "mlflow", "alembic", "hyperopt", WARNINGS)
RAYS_THREAD = "ray_listen_error_messages"  # prints a paragraph for each worker that has died, whatever Ray's settings
OURS = "tuning"  # is in the file too, and is shown as before


@contextlib.contextmanager
def log_file(directory: RunDirectory) -> Iterator[None]:
    """Append what libraries log and warn in this process, and our own warnings, to the run's `log.txt`.

    Our own warnings are shown as before. Where the file cannot be written, the messages are lost.
    """
    with _file_handler(directory) as handler, _captured(handler), _shown_by_default(), _added(handler, OURS):
        yield


@contextlib.contextmanager
def held_messages() -> Iterator[MemoryHandler]:
    """Keep what libraries log and warn in this process: code that a plan loads may load Ray."""
    held = MemoryHandler(sys.maxsize, flushLevel=sys.maxsize, flushOnClose=False)
    with _captured(held):
        yield held


def write_held(held: MemoryHandler, directory: RunDirectory) -> None:
    """Append the messages from before there was a run to its `log.txt`."""
    with _file_handler(directory) as handler:
        held.setTarget(handler)
        held.flush()


class _Handlers(list[logging.Handler]):
    """The handlers of a library's logger while its messages are captured: those that others set are kept for later.

    A library that is loaded meanwhile adds a handler, and `ray.init` removes all.
    """

    def __init__(self, later: list[logging.Handler]) -> None:
        super().__init__([_newest])
        self.later = later

    def append(self, handler: logging.Handler) -> None:
        self.later.append(handler)

    def remove(self, handler: logging.Handler) -> None:
        if handler in self.later:
            self.later.remove(handler)

    def clear(self) -> None:
        self.later.clear()


class _Newest(logging.Handler):
    """Hands messages to the handler that was given last: several threads may capture at once."""

    def emit(self, record: logging.LogRecord) -> None:
        if _capturing:
            _capturing[-1].handle(record)


_newest = _Newest()
_capturing: list[logging.Handler] = []
_propagated: dict[str, bool] = {}  # by logger, as it was


@contextlib.contextmanager
def _captured(handler: logging.Handler) -> Iterator[None]:
    """Give what libraries log and warn to this handler alone."""
    _capturing.append(handler)
    loggers = [logging.getLogger(name) for name in LIBRARIES]
    for logger in loggers if len(_capturing) == 1 else ():
        _propagated[logger.name], logger.propagate = logger.propagate, False
        logger.handlers = _Handlers(logger.handlers)
    try:
        with _warnings_logged():
            yield
    finally:
        _capturing.remove(handler)
        for logger in loggers if not _capturing else ():
            logger.propagate = _propagated[logger.name]
            if isinstance(logger.handlers, _Handlers):  # `logging.config` replaces all lists of handlers
                logger.handlers = logger.handlers.later


class _RunLogHandler(logging.FileHandler):
    """Writes to the file. A disk that is full, or a folder that is gone, costs messages of libraries and no more."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", delay=True, errors="backslashreplace")
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def format(self, record: logging.LogRecord) -> str:
        return mask_in(super().format(record))  # without the secrets of URIs

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # from opening it
            super().emit(record)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        pass


@contextlib.contextmanager
def _file_handler(directory: RunDirectory) -> Iterator[logging.Handler]:
    """Append to the file, which is made with the first message; on object storage it is written at the end."""
    if directory.local:
        with contextlib.closing(_RunLogHandler(directory.locate(FILE))) as handler:
            yield handler
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, FILE)
        with contextlib.closing(_RunLogHandler(str(path))) as handler:
            yield handler
        with contextlib.suppress(StorageError, OSError):
            if path.is_file():
                before = directory.read(FILE) if directory.exists(FILE) else b""
                directory.write(FILE, before + path.read_bytes())


@contextlib.contextmanager
def _added(handler: logging.Handler, name: str | None = None) -> Iterator[None]:
    """Add a handler to a logger, by default the root."""
    logger = logging.getLogger(name)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


def _shown_by_default() -> contextlib.AbstractContextManager[None]:
    """Print warnings that Python prints where no handler is set up: one is, from here on."""
    if logging.getLogger().handlers or logging.lastResort is None:
        return contextlib.nullcontext()
    return _added(logging.lastResort)


@contextlib.contextmanager
def _warnings_logged() -> Iterator[None]:
    """Log Python's warnings of this thread."""
    before, thread = warnings.showwarning, threading.get_ident()

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if threading.get_ident() != thread or file is not None:
            before(message, category, filename, lineno, file, line)
            return
        logging.getLogger(WARNINGS).warning(warnings.formatwarning(message, category, filename, lineno, line).rstrip())

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


class _ThreadStdout:
    """Stands for stdout: what one thread prints is logged, and what Ray's own does; what others print goes on."""

    def __init__(self, stdout: TextIO) -> None:
        self._stdout, self._thread = stdout, threading.get_ident()

    def write(self, text: str) -> int:
        if threading.get_ident() != self._thread and threading.current_thread().name != RAYS_THREAD:
            return self._stdout.write(text)
        if text.strip():
            logging.getLogger(STDOUT).warning(text.rstrip())
        return len(text)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stdout, name)


@contextlib.contextmanager
def stdout_logged() -> Iterator[None]:
    """Log what this thread and Ray's own print: stdout is for our data."""
    with contextlib.redirect_stdout(_ThreadStdout(sys.stdout)):  # type: ignore[type-var]  # to who prints it is one
        yield
