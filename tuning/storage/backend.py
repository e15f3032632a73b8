"""What a run directory asks of the storage that it is on; local disks and object storage each answer in their own way.

Paths here are those of the storage's filesystem. Every failure is an `OSError`.
"""

from __future__ import annotations

import contextlib
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import pyarrow
import pyarrow.fs

from tuning.errors import StorageError
from tuning.storage import s3
from tuning.storage.names import is_uri, mask, mask_in

REMOTE = ("s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")  # whose filesystems may ask their servers when opened
TEMPORARY = ".tmp-"  # how the names of files begin that are being written


def open_filesystem(path: str, what: str = "storage") -> tuple[pyarrow.fs.FileSystem, str]:
    """The pyarrow filesystem for a local path or a URI, and the path on it (absolute when local).

    what: the path is, for messages.
    """
    if not is_uri(path):
        return pyarrow.fs.LocalFileSystem(), str(Path(path).expanduser().resolve())
    try:
        filesystem, inner = pyarrow.fs.FileSystem.from_uri(s3.quick_puts(path))
    except (pyarrow.ArrowInvalid, OSError, ValueError) as error:
        raise StorageError(
            f"{what} {mask(path)!r} cannot be opened: {mask_in(str(error))}. "
            "Use a local path or a URI that pyarrow knows, such as s3://bucket/folder."
        ) from error
    return filesystem, inner


def check_writable(path: str) -> None:
    """`StorageError` for a URI of a kind that there is no storage for, and for a folder that nobody here may write.

    Nothing is written, nor looked for in a network.
    """
    if is_uri(path):
        if path.partition("://")[0] not in REMOTE:
            open_filesystem(path)
        return
    there = Path(path).expanduser().absolute()
    while not os.path.lexists(there):
        there = there.parent
    if not os.path.isdir(there):
        raise StorageError(f"storage {path!r} cannot be a folder: {there} is a file. Name another folder.")
    if not os.access(there, os.W_OK | os.X_OK):
        raise StorageError(f"storage {path!r} cannot be written: {there} is read-only here. Name another folder.")


class Backend(ABC):
    """One folder on a storage.

    uri: as it was opened; a local folder's absolute path. root: the folder's path on `filesystem`.
    """

    local: ClassVar[bool]

    def __init__(self, filesystem: pyarrow.fs.FileSystem, root: str, uri: str) -> None:
        self.filesystem, self.root, self.uri = filesystem, root, uri

    @abstractmethod
    def locate(self, name: str) -> str:
        """The full path or URI of a file below the folder, for programs: secrets in the URI are kept."""

    @abstractmethod
    def name_of(self, location: str) -> str | None:
        """The name that `locate` made a full path of; None for a place that is not below the folder."""

    @abstractmethod
    def create(self) -> None:
        """Make the folder, for its owner only."""

    @abstractmethod
    def put(self, path: str, data: bytes) -> None:
        """Place a file atomically: afterwards it is there whole, or not at all."""

    @abstractmethod
    def put_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        """The same with a file that is never in memory as a whole."""

    @abstractmethod
    def put_new(self, path: str, data: bytes) -> None:
        """The same; `FileExistsError` when it is there already."""

    @abstractmethod
    def files_below(self, path: str) -> Sequence[str]:
        """All files below a folder in no order, without unfinished temporary ones; none when it is not there."""

    @abstractmethod
    def check_present(self) -> None:
        """`FileNotFoundError` when the storage as a whole is gone, so that nothing found means nothing known."""

    @abstractmethod
    def is_damage(self, error: OSError) -> bool:
        """True when a failed read says that this file's place is broken, not that the storage gives nothing."""

    def read(self, path: str) -> bytes:
        with self.filesystem.open_input_stream(path) as stream:
            return bytes(stream.read())

    def exists(self, path: str) -> bool:
        return bool(self.filesystem.get_file_info(path).type != pyarrow.fs.FileType.NotFound)

    def entries(self, path: str) -> Sequence[str]:
        """The names of what is in a folder, in no order; none when it is not there."""
        found = self.filesystem.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True))
        return [info.base_name for info in found]

    def delete(self, path: str) -> None:
        """Delete a file, or a folder with all that is in it; one that is not there does no harm."""
        kind = self.filesystem.get_file_info(path).type
        if kind == pyarrow.fs.FileType.Directory:
            self.filesystem.delete_dir(path)
        elif kind != pyarrow.fs.FileType.NotFound:
            self.filesystem.delete_file(path)

    def remove(self, path: str) -> None:
        """Delete a file; one that is not there does no harm."""
        with contextlib.suppress(OSError):
            self.filesystem.delete_file(path)

    def remove_folder(self, path: str) -> None:
        """Delete a folder; one that is not there does no harm."""
        with contextlib.suppress(OSError):
            self.filesystem.delete_dir(path)
