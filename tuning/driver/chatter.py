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
#: Loggers of libraries whose words nobody asked for.
THEIRS = ("ray", "optuna", "mlflow", "alembic", "hyperopt", WARNINGS)
RAYS_THREAD = "ray_listen_error_messages"  # prints a paragraph for each worker that has died, whatever Ray's settings
OURS = "tuning"  # is in the file too, and is seen as before


@contextlib.contextmanager
def log_file(directory: RunDirectory) -> Iterator[None]:
    """Within it, what libraries log, print and warn in this process goes to the end of the run's `log.txt`.

    Our own warnings go there too, and are seen as before. Where the file cannot be written, the words are lost.
    """
    with _handler(directory) as handler, _theirs_to(handler), _seen(), _added(handler, logging.getLogger(OURS)):
        yield


class Held(logging.Handler):
    """What libraries have said before there was a run."""

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
def held() -> Iterator[Held]:
    """Within it, what libraries log and warn in this process is kept: code that a plan loads may load Ray."""
    words = Held()
    with _theirs_to(words):
        yield words


@contextlib.contextmanager
def _theirs_to(handler: logging.Handler) -> Iterator[None]:
    """Within it, what libraries log and warn goes to one handler."""
    with contextlib.ExitStack() as stack:
        for name in THEIRS:
            stack.enter_context(_only_to(handler, name))
        stack.enter_context(_warnings_logged())
        yield


class _Masked(logging.Formatter):
    """Without the secrets of URIs."""

    def format(self, record: logging.LogRecord) -> str:
        return mask_in(super().format(record))


class _Quiet(logging.FileHandler):
    """A disk that is full, or a folder that is gone, costs words of libraries and no more."""

    def __init__(self, path: str) -> None:
        super().__init__(path, encoding="utf-8", delay=True, errors="backslashreplace")
        self.setFormatter(_Masked("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError):  # from opening it
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  # logging's name
        pass


@contextlib.contextmanager
def _handler(directory: RunDirectory) -> Iterator[logging.Handler]:
    """One that appends to the file, which is made with the first word; on object storage it is written at the end."""
    if directory.local:
        with contextlib.closing(_Quiet(directory.locate(FILE))) as handler:
            yield handler
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, FILE)
        with contextlib.closing(_Quiet(str(path))) as handler:
            yield handler
        with contextlib.suppress(StorageError, OSError):
            if path.is_file():
                before = directory.read(FILE) if directory.exists(FILE) else b""
                directory.write(FILE, before + path.read_bytes())


class _Aside(list[logging.Handler]):
    """A logger's handlers, to which none is added: a library that is loaded meanwhile brings one of its own."""

    def __init__(self, handler: logging.Handler, logger: logging.Logger) -> None:
        super().__init__([handler])
        self.before, self.propagate = logger.handlers, logger.propagate
        self.added: list[logging.Handler] = []

    def append(self, handler: logging.Handler) -> None:
        self.added.append(handler)

    def clear(self) -> None:  # `ray.init` does so
        self.added.clear()

    def end(self, logger: logging.Logger) -> None:
        """Give the logger back what it had, and what was added."""
        for handler in self.added:
            self.before.append(handler)
        propagate = self.propagate and not self.added  # as libraries do that bring their own
        if logger.handlers is self:
            logger.handlers, logger.propagate = self.before, propagate
            return
        later = logger.handlers  # of another thread, which has begun since
        while isinstance(later, _Aside):
            if later.before is self:
                later.before, later.propagate = self.before, propagate
            later = later.before


@contextlib.contextmanager
def _only_to(handler: logging.Handler, name: str) -> Iterator[None]:
    """Within it, a logger and those below it write to one handler."""
    logger = logging.getLogger(name)
    aside = _Aside(handler, logger)
    logger.handlers, logger.propagate = aside, False
    try:
        yield
    finally:
        aside.end(logger)


@contextlib.contextmanager
def _added(handler: logging.Handler, logger: logging.Logger) -> Iterator[None]:
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@contextlib.contextmanager
def _seen() -> Iterator[None]:
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


class _OfThread:
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
    with contextlib.redirect_stdout(_OfThread(sys.stdout)):  # type: ignore[type-var]  # to who prints it is one
        yield
