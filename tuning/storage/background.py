"""Writing files in the background, while the worker works on the next study.

Making a file durable is waiting (5 ms per fsync on an ordinary disk, 50 ms per put on object storage), and a model
is several files: written one after the other they take as long as a small customer's fits.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from uuid import uuid4

from tuning.storage.run_directory import RunDirectory

THREADS = 4
MOST_PENDING = 256  # files; then the worker waits after all, so that they cannot fill its memory


class BackgroundWriter:
    """Files of a run directory on their way to storage; nobody may rely on one before `flush`."""

    def __init__(self, directory: RunDirectory) -> None:
        self.directory = directory
        self._pool: ThreadPoolExecutor | None = None
        self._pending: list[Future[None]] = []

    def folder(self, parent: str, name: str) -> str:
        """The name of a new folder, never that of another attempt, which it may outlive."""
        return f"{parent}/{name}/{uuid4().hex[:8]}"

    def write(self, name: str, data: bytes) -> None:
        """Have a file placed as by `RunDirectory.write`; returns at once."""
        if len(self._pending) >= MOST_PENDING:
            self.flush()
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tuning-files")
        self._pending.append(self._pool.submit(self.directory.write, name, data))

    def flush(self) -> None:
        """Wait until all files are in place; raises the `StorageError` of the first that could not be written."""
        pending, self._pending = self._pending, []
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=True)
        for written in pending:
            written.result()
