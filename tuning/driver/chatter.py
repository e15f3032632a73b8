"""What libraries say while a run goes on: it goes into the run's `log.txt`, not into a terminal or a notebook."""

from __future__ import annotations

import contextlib
import logging
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from tuning.errors import StorageError
from tuning.storage.names import mask_in
from tuning.storage.run_directory import RunDirectory

FILE = "log.txt"
WARNINGS, STDOUT = "python.warnings", "ray.stdout"  # loggers of what Python warns of, and of what Tune prints
#: Loggers of libraries whose messages nobody asked for, and those below them.
LIBRARIES = tuple(f"{name}." for name in ("ray", "optuna", "mlflow", "alembic", "hyperopt", WARNINGS))
RAYS_THREAD = "ray_listen_error_messages"  # prints a paragraph for each worker that has died, whatever Ray's settings
OURS = "tuning"  # is in the file too, and is shown as before


@contextlib.contextmanager
def log_file(directory: RunDirectory) -> Iterator[None]:
    """Within it, what libraries log, print and warn in this process goes to the end of the run's `log.txt`.

    Our own warnings go there too, and are seen as before. Where the file cannot be written, the words are lost.
    """
    with (
        _handler(directory) as handler,
        _libraries_to(handler),
        _shown_by_default(),
        _added(handler, logging.getLogger(OURS)),
    ):
        yield


class HeldMessages(logging.Handler):
    """The messages of libraries from before there was a run."""

    def __init__(self) -> None:
        super().__init__()
        self._records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self._records.append(record)

    def write(self, directory: RunDirectory) -> None:
        """Write it to the end of a run's `log.txt`."""
        with _handler(directory) as handler:
            for record in self._records:
                handler.handle(record)


@contextlib.contextmanager
def held_messages() -> Iterator[HeldMessages]:
    """Within it, what libraries log and warn in this process is kept: code that a plan loads may load Ray."""
    words = HeldMessages()
    with _libraries_to(words):
        yield words


@contextlib.contextmanager
def _libraries_to(handler: logging.Handler) -> Iterator[None]:
    """Within it, what libraries log and warn goes to one handler, and to none of their own.

    Their handlers stay where they are: a library that is loaded meanwhile adds one, and `ray.init` removes all. Several
    threads may be within it at once; the latest handler gets the messages.
    """
    with _warnings_logged():
        _listening.append(handler)
        logging.Logger.callHandlers = _call_handlers  # type: ignore[method-assign, assignment]  # for the time being
        try:
            yield
        finally:
            _listening.remove(handler)
            if not _listening:
                logging.Logger.callHandlers = _usual_call_handlers  # type: ignore[method-assign]  # as it was


_listening: list[logging.Handler] = []
_usual_call_handlers = logging.Logger.callHandlers


def _call_handlers(logger: logging.Logger, record: logging.LogRecord) -> None:
    if _listening and f"{record.name}.".startswith(LIBRARIES):
        _listening[-1].handle(record)
    else:
        _usual_call_handlers(logger, record)


class _MaskingFormatter(logging.Formatter):
    """Without the secrets of URIs."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_in(super().format(record))


class _RunLogHandler(logging.FileHandler):
    """Writes to the file. A disk that is full, or a folder that is gone, costs messages of libraries and no more."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", delay=True, errors="backslashreplace")
        self.setFormatter(_MaskingFormatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # from opening it
            super().emit(record)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            super().close()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        pass


@contextlib.contextmanager
def _handler(directory: RunDirectory) -> Iterator[logging.Handler]:
    """One that appends to the file, which is made with the first word; on object storage it is written at the end."""
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
def _added(handler: logging.Handler, logger: logging.Logger) -> Iterator[None]:
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def _shown_by_default() -> Iterator[None]:
    """Within it, warnings are printed that Python prints where no handler is set up: one is, from here on."""
    root, last = logging.getLogger(), logging.lastResort
    if root.handlers or last is None:
        yield
        return
    with _added(last, root):
        yield


@contextlib.contextmanager
def _warnings_logged() -> Iterator[None]:
    """Within it, Python's warnings of this thread are logged."""
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
    """Within it, what this thread and Ray's own print is logged: stdout is for our data."""
    with contextlib.redirect_stdout(_ThreadStdout(sys.stdout)):  # type: ignore[type-var]  # to who prints it is one
        yield
