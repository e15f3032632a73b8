"""Files of data on any filesystem: where a path leads, how a file is opened, what it is known by, what is wrong."""

from __future__ import annotations

import contextlib
import csv as csv_module
import hashlib
import io
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from functools import lru_cache
from typing import TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.fs

from tuning.basics.wording import shorten
from tuning.errors import CustomerError, StorageError
from tuning.notes import FileCode
from tuning.storage.backend import open_filesystem
from tuning.storage.data_roots import EVERYWHERE, OPENED, DataRoots
from tuning.storage.names import is_uri, without_query

T = TypeVar("T")
#: `DataRoots.opened` or `DataRoots.found`.
Find: TypeAlias = Callable[[DataRoots, str], contextlib.AbstractContextManager[str]]
GONE = ""  # the stamp of a file that is not there
NOT_UTF_8 = re.compile(r"\\udc[89a-f]")  # what `readable` makes of a byte of a file's name
DIGESTED_AT_ONCE = 1 << 20  # bytes
MOST_OPEN = 64  # files that a block of `opened_once` holds
AT_ONCE = 16  # looks at a storage, which take it a tenth of a second each


def file_name(path: str) -> str:
    """A file's own name, for messages."""
    return os.path.basename(without_query(path))


def located(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The pyarrow filesystem of a path or URI, kept for the next file of the same place, and the path on it.

    What is there may only be read through `opened`, or where `DataRoots.check` has let the place pass. Names stand for
    themselves: `%` in a URI is a percent sign, as it comes from listing a bucket.
    """
    if not is_uri(path):
        return _filesystem("")[0], os.path.abspath(os.path.expanduser(path))
    address = without_query(path)
    scheme, _, rest = address.partition("://")
    authority, _, below = rest.partition("/")
    filesystem, root = _filesystem(f"{scheme}://{authority}{'/' if not authority else ''}{path[len(address) :]}")
    return filesystem, f"{root.rstrip('/')}/{below}"


@lru_cache(maxsize=16)
def _filesystem(root: str) -> tuple[pyarrow.fs.FileSystem, str]:
    return open_filesystem(root, "the place")


def is_same_file(one: str, other: str) -> bool:
    """Whether two paths or URIs lead to the same file, through links too."""
    if is_uri(one) or is_uri(other):
        return located(one) == located(other)
    with contextlib.suppress(OSError):
        return os.path.samefile(os.path.expanduser(one), os.path.expanduser(other))
    return False


@contextlib.contextmanager
def opened(path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
    """As `located`, to read a file: the path on the filesystem is good within the block.

    `CustomerError` for what is outside `DataRoots`, for a folder, and for a pipe or a device, which nobody may ever
    write to.
    """
    with _placed(path, DataRoots.opened) as place:
        yield place


@contextlib.contextmanager
def opened_once() -> Iterator[None]:
    """Keep the files that `open_file` opens within the block for those who read them next, the last ones opened.

    A file that is replaced meanwhile is opened again. Other threads open files for themselves.
    """
    token = _kept_open.set(_kept_open.get() or _FilesKeptOpen())
    try:
        yield
    finally:
        _kept_open.reset(token)


def open_file(path: str) -> pa.NativeFile:
    """Open a file to read it; who calls closes it. Errors are those of `opened`."""
    files = _kept_open.get()
    if files is None:
        with opened(path) as (filesystem, inner):
            return filesystem.open_input_file(inner)
    stamp = file_stamp(path)
    if (found := files.reader(path, stamp)) is not None:
        return found
    with opened(path) as (filesystem, inner):
        files.keep(path, stamp, filesystem.open_input_file(inner))
    return files.reader(path, stamp)


class _FilesKeptOpen:
    """Open files by their paths, each with the stamp that it had before it was opened.

    A file is closed with its last reader: one that is no longer kept may still be read.
    """

    def __init__(self) -> None:
        self._files: dict[str, tuple[str, pa.NativeFile]] = {}

    def keep(self, path: str, stamp: str, file: pa.NativeFile) -> None:
        self._files[path] = stamp, file
        if len(self._files) > MOST_OPEN:
            self._files.pop(next(iter(self._files)))

    def reader(self, path: str, stamp: str) -> pa.NativeFile | None:
        """Return a reader of the file from its beginning; None where it is not open, or has another stamp by now."""
        known, file = self._files.get(path, ("", None))
        return None if file is None or known != stamp else pa.PythonFile(SharedReader(file), "r")


_kept_open: ContextVar[_FilesKeptOpen | None] = ContextVar("files of data that are kept open", default=None)


class SharedReader(io.RawIOBase):
    """Reads a file from its beginning, and leaves it open for others who read it meanwhile or later."""

    def __init__(self, file: pa.NativeFile) -> None:
        self._file, self._size, self._at = file, file.size(), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        data = self._file.read_at(self._size - self._at if size < 0 else size, self._at)
        self._at += len(data)
        return bytes(data)

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        return self._at

    def tell(self) -> int:
        return self._at


@contextlib.contextmanager
def _placed(path: str, find: Find) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
    """Where a path or URI is that may be read. find: looks it up on a disk."""
    roots = DataRoots.of_process()
    roots.check(path)
    filesystem, inner = located(path)
    local = isinstance(filesystem, pyarrow.fs.LocalFileSystem)
    with find(roots, inner) if local else contextlib.nullcontext(inner) as checked:
        yield filesystem, checked


def look_at_each(look: Callable[[str], T], files: Iterable[str]) -> dict[str, T]:
    """What a look at each file says, several at once where they are on object storage."""
    names = sorted(set(files))
    if not any(map(is_uri, names)):
        return {name: look(name) for name in names}  # for small files, threads take longer than the looks
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(look, names), strict=True))


def check_readable(paths: Iterable[str]) -> None:
    """`CustomerError` for a file that is outside `DataRoots`, for code of the user's own that opens it itself."""
    if DataRoots.of_process() != EVERYWHERE:
        for path in paths:
            with reading_errors(path), opened(path):
                pass


def content_of(path: str) -> bytes:
    """All of a small file; what can be wrong with it is a `CustomerError`."""
    with reading_errors(path), opened(path) as (filesystem, inner), filesystem.open_input_stream(inner) as stream:
        return bytes(stream.read())


def size_of(path: str) -> int:
    """Bytes of a local file; 0 for what is not there or may not be read, which its reader will say."""
    try:
        if (roots := DataRoots.of_process()) is EVERYWHERE:
            return os.path.getsize(path)  # of many files, the `with` would take longer than that
        with roots.found(path) as checked:
            return os.path.getsize(checked)
    except (OSError, CustomerError):
        return 0


@contextlib.contextmanager
def reading_errors(path: str, encoding: str = "utf-8") -> Iterator[None]:
    """Around reading a file: what can be wrong with it becomes a `CustomerError`."""
    shown = file_name(path)
    try:
        yield
    except CustomerError:
        raise
    except StorageError as error:
        raise CustomerError(FileCode.FILE_UNREADABLE(shown, error=str(error).rstrip("."))) from error
    except FileNotFoundError as error:
        code = FileCode.FILE_NAME_NOT_UTF8 if NOT_UTF_8.search(shown) else FileCode.FILE_NOT_THERE
        raise CustomerError(code(shown)) from error
    except PermissionError as error:
        raise CustomerError(FileCode.FILE_FORBIDDEN(shown)) from error
    except UnicodeError as error:
        why = f"{error.reason} at byte {error.start}" if isinstance(error, UnicodeDecodeError) else str(error)
        raise CustomerError(FileCode.FILE_NOT_ENCODED(shown, encoding=encoding, error=why)) from error
    except (ValueError, OSError, EOFError, csv_module.Error, pa.ArrowException) as error:
        empty = type(error).__name__ == "EmptyDataError"
        raise CustomerError(
            FileCode.FILE_EMPTY(shown) if empty else FileCode.FILE_UNREADABLE(shown, error=_without_place(error, shown))
        ) from error


def _without_place(error: Exception, shown: str) -> str:
    """What a library says of a file, with the file's name for the descriptor that it was opened by."""
    said = OPENED.sub(lambda _: shown, str(error)).removeprefix("Error tokenizing data. C error: ")
    return shorten(" ".join(said.split()).rstrip("."), 200)


def file_stamp(path: str) -> str:
    """Size and time of a file on a disk, the ETag of an object; GONE where neither can be had."""
    try:
        with _placed(path, DataRoots.found) as (filesystem, inner):
            if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
                return _etag(filesystem, inner)
            found = os.stat(inner)
    except (OSError, StorageError, CustomerError):
        return GONE
    return f"{found.st_size} {found.st_mtime_ns}"


def written_at(path: str) -> int:
    """When a file was last written, in nanoseconds; 0 where nobody can tell."""
    with contextlib.suppress(OSError, StorageError, CustomerError), _placed(path, DataRoots.found) as (storage, inner):
        return storage.get_file_info(inner).mtime_ns or 0
    return 0


def file_digest(path: str) -> str:
    """The SHA-256 of a file on a disk, the ETag of an object; the error's name where it cannot be read."""
    try:
        with opened(path) as (filesystem, inner):
            if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
                return _etag(filesystem, inner)
            files, digest = _kept_open.get(), hashlib.sha256()
            kept = None if files is None else files.reader(path, file_stamp(path))
            with kept or open(inner, "rb", buffering=0) as file:
                while piece := file.read(DIGESTED_AT_ONCE):
                    digest.update(piece)
            return digest.hexdigest()
    except (OSError, StorageError, CustomerError) as error:
        return type(error).__name__  # nobody can read it now; when that changes, so does the customer


def joined(parts: Sequence[str]) -> str:
    """One stamp or digest for several files; nothing where there are none, or one of them has none."""
    if len(parts) == 1:
        return parts[0]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest() if parts and all(parts) else ""


def _etag(filesystem: pyarrow.fs.FileSystem, inner: str) -> str:
    with filesystem.open_input_file(inner) as file:
        tag = {key.lower(): value for key, value in (file.metadata() or {}).items()}.get("etag")
    if tag:
        return bytes(tag).decode("utf-8", "replace")
    info = filesystem.get_file_info(inner)
    return f"{info.size} {info.mtime_ns}"
