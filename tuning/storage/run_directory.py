"""The run directory on any pyarrow filesystem: the only place that builds paths and touches files of a run.

Files are immutable: each is written once, whole, under its final name. On a local disk that is a temporary
file, fsync, rename and fsync of the folder; on object storage a single put. Nothing here ever leaves the
run directory, whatever a customer is called (see `slug`). What the storage refuses is tried again as often as
it makes sense, then it is a `StorageError` that says what is wrong with the storage.
"""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pyarrow
import pyarrow.fs

from tuning.errors import StorageError
from tuning.storage import retrying, s3
from tuning.storage.names import is_uri, mask, mask_in

TEMPORARY = ".tmp-"
T = TypeVar("T")


def open_filesystem(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The pyarrow filesystem for a local path or a URI, and the path on it (absolute when local)."""
    if not is_uri(path):
        return pyarrow.fs.LocalFileSystem(), str(Path(path).expanduser().resolve())
    try:
        filesystem, inner = pyarrow.fs.FileSystem.from_uri(s3.quick_puts(path))
    except (pyarrow.ArrowInvalid, OSError, ValueError) as error:
        raise StorageError(
            f"storage {mask(path)!r} cannot be opened: {mask_in(str(error))}. "
            "Use a local path or a URI that pyarrow knows, such as s3://bucket/folder."
        ) from error
    return filesystem, inner


class RunDirectory:
    """One run's folder. Names are relative, with `/`.

    uri: a local path or any URI of a pyarrow filesystem (`s3://bucket/runs/weekly`).
    """

    def __init__(self, uri: str) -> None:
        self.filesystem, root = open_filesystem(uri)
        self.root = root.rstrip("/")
        self.local = not is_uri(uri) or uri.startswith("file://")
        self.uri = self.root if self.local else uri

    def __repr__(self) -> str:
        return f"RunDirectory({mask(self.uri)!r})"

    def path(self, name: str) -> str:
        """The path of a file of this run on its filesystem; a name that would leave the run is an error."""
        parts = name.split("/")
        if name.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in name:
            raise StorageError(f"{name!r} is not a file name inside a run directory.")
        return f"{self.root}/{name}"

    def locate(self, name: str) -> str:
        """The full path or URI of a file, for programs: secrets in the URI are kept."""
        if self.local:
            return self.path(name)
        uri, mark, query = self.uri.partition("?")
        return f"{uri.rstrip('/')}/{name}{mark}{query}"

    @property
    def shown(self) -> str:
        """The run directory as a user would type it, secrets masked."""
        return mask(self.uri).rstrip("/")

    def display(self, name: str) -> str:
        """The full name of a file, as a user would type it; secrets masked."""
        return mask(self.locate(name))

    def create(self) -> None:
        """Make the folder, for its owner only."""
        self._attempt("", "made", self._create)

    def _create(self) -> None:
        if not self.local:
            self.filesystem.create_dir(self.root, recursive=True)
            return
        _make_folder(self.root)
        if not os.listdir(self.root):
            os.chmod(self.root, 0o700)  # made by somebody else beforehand; empty, so it is meant for this run

    def write(self, name: str, data: bytes) -> None:
        """Place a file atomically: afterwards it is there whole, or not at all."""
        target = self.path(name)
        put = _place if self.local else self._put
        self._attempt(name, "written", lambda: put(target, data))

    def claim(self, name: str, data: bytes) -> None:
        """Place a file that must not be there yet: of several who try, one succeeds; else `FileExistsError`.

        Exact on a local disk and, with boto3, on S3; on other object storage it is a look before a put.
        """
        target = self.path(name)
        put = _place_new if self.local else self._put_new
        try:
            self._attempt(name, "written", lambda: put(target, data))
        except FileExistsError:
            if self.read(name) != data:  # else it is ours: the answer to an earlier attempt was lost
                raise

    def _put(self, target: str, data: bytes) -> None:
        with self.filesystem.open_output_stream(target) as stream:
            stream.write(data)

    def _put_new(self, target: str, data: bytes) -> None:
        if s3.conditional(self.uri):
            s3.put_new(self.uri, target, data)
            return
        if self.filesystem.get_file_info(target).type != pyarrow.fs.FileType.NotFound:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        self._put(target, data)

    def remove(self, name: str) -> None:
        """Delete a file that only served for a while; one that is not there does no harm."""
        target = self.path(name)
        with contextlib.suppress(OSError):
            self.filesystem.delete_file(target)

    def remove_folder(self, name: str) -> None:
        """Delete a folder that only served for a while; one that is not there does no harm."""
        target = self.path(name)
        with contextlib.suppress(OSError):
            self.filesystem.delete_dir(target)

    def read(self, name: str) -> bytes:
        """The whole file.

        `FileNotFoundError` when it is not there. `OSError` when the place on the disk where it is cannot be read any
        more: that file is damaged. `StorageError` when the storage gives nothing at all: nobody knows what is in it.
        """
        target = self.path(name)

        def get() -> bytes:
            with self.filesystem.open_input_stream(target) as stream:
                return bytes(stream.read())

        try:
            return retrying.with_retries(get)
        except FileNotFoundError:
            self._make_sure_of_bucket(name)
            raise
        except OSError as error:
            if self.local and error.errno == errno.EIO:
                raise
            raise self._error(name, "read", error) from error

    def exists(self, name: str) -> bool:
        """True when the file or folder is there."""
        target = self.path(name)
        info = self._attempt(name, "looked for", lambda: self.filesystem.get_file_info(target))
        if info.type == pyarrow.fs.FileType.NotFound:
            self._make_sure_of_bucket(name)
            return False
        return True

    def list(self, folder: str) -> Iterator[str]:
        """Names of all files below a folder, in order; unfinished temporary files are left out.

        Files that come and go meanwhile do no harm. A bucket that is gone is an error, not an empty folder.
        """
        target = self.path(folder)
        look = _files_below if self.local else self._objects_below
        prefix = len(self.root.rstrip("/")) + 1
        found = self._attempt(folder, "listed", lambda: look(target))
        yield from sorted(path[prefix:] for path in found)

    def _objects_below(self, target: str) -> Sequence[str]:
        selector = pyarrow.fs.FileSelector(target, allow_not_found=True, recursive=True)
        found = self.filesystem.get_file_info(selector)
        if not found:
            self._make_sure_of_bucket(target[len(self.root) + 1 :])
        return [
            info.path
            for info in found
            if info.type == pyarrow.fs.FileType.File and not info.base_name.startswith(TEMPORARY)
        ]

    def _make_sure_of_bucket(self, name: str) -> None:
        """`StorageError` when nothing is found because the bucket is gone: that is not an empty folder."""
        bucket = self.root.split("/")[0]
        if self.local or not bucket:
            return
        with contextlib.suppress(OSError):  # who may see a part of a bucket only may not ask for it as a whole
            if (
                retrying.with_retries(lambda: self.filesystem.get_file_info(bucket)).type
                == pyarrow.fs.FileType.NotFound
            ):
                gone = FileNotFoundError(errno.ENOENT, f"the bucket {bucket!r} does not exist (any more)")
                raise self._error(name, "looked for", gone)

    def _error(self, name: str, done: str, error: OSError) -> StorageError:
        return StorageError(
            f"{self.display(name) if name else self.shown} could not be {done}: {mask_in(retrying.described(error))}. "
            "Free or repair the storage, then resume the run; nothing recorded so far is lost."
        )

    def _attempt(self, name: str, done: str, action: Callable[[], T]) -> T:
        try:
            return retrying.with_retries(action)
        except FileExistsError:
            raise
        except OSError as error:
            raise self._error(name, done, error) from error

    def __getstate__(self) -> dict[str, Any]:
        return {"uri": self.uri}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["uri"])  # type: ignore[misc]  # a filesystem handle does not travel between processes


def _place(target: str, data: bytes) -> None:
    """Write a local file beside its place, make it durable, move it there."""
    with _written(target, data) as temporary:
        os.replace(temporary, target)


def _place_new(target: str, data: bytes) -> None:
    """The same where nothing must be there yet: a hard link is refused where a rename would replace."""
    with _written(target, data) as temporary:
        try:
            os.link(temporary, target)
        except FileExistsError:
            raise
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
                raise
            # A filesystem without hard links: exclusive creation decides, the rename makes the content whole.
            os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            os.replace(temporary, target)


@contextlib.contextmanager
def _written(target: str, data: bytes) -> Iterator[str]:
    folder = os.path.dirname(target)
    _make_folder(folder)
    temporary = os.path.join(folder, f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        yield temporary
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    _make_durable(folder)


def _make_folder(folder: str) -> None:
    """Make a folder and those above it, for the owner only, so that it survives a power failure."""
    if os.path.isdir(folder):
        return
    above = os.path.dirname(folder)
    _make_folder(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(folder, 0o700)
        _make_durable(above)


def _make_durable(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _files_below(folder: str) -> list[str]:
    found: list[str] = []
    pending = [folder]
    while pending:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(pending.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif not entry.name.startswith(TEMPORARY):
                    found.append(entry.path)
    return found
