"""Files of data on any filesystem: where a path leads, how a file is opened, what it is known by, what is wrong."""

from __future__ import annotations

import contextlib
import csv as csv_module
import hashlib
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
KEPT_BYTES, MOST_KEPT = 1 << 20, 64  # of a file, and files, that a block of `read_once` holds
AT_ONCE = 16  # looks at a storage, which take it a tenth of a second each


def file_name(path: str) -> str:
    """Return a file's own name, for messages."""
    return os.path.basename(without_query(path))


def located(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """Return the pyarrow filesystem of a path or URI, kept for the next file of the same place, and the path on it.

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
    """Return whether two paths or URIs lead to the same file, through links too."""
    if is_uri(one) or is_uri(other):
        return located(one) == located(other)
    with contextlib.suppress(OSError):
        return os.path.samefile(os.path.expanduser(one), os.path.expanduser(other))
    return False


@contextlib.contextmanager
def opened(path: str) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
    """Locate a file to read it: the path on the filesystem is valid within the block.

    `CustomerError` for what is outside `DataRoots`, for a folder, and for a pipe or a device, which nobody may ever
    write to.
    """
    with _placed(path, DataRoots.opened) as place:
        yield place


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Keep the content of small files that `open_file` opens within the block for those who read them next.

    A file that is replaced meanwhile is read again. Other threads read files for themselves.
    """
    token = _contents.set({} if (kept := _contents.get()) is None else kept)
    try:
        yield
    finally:
        _contents.reset(token)


def open_file(path: str) -> pa.NativeFile:
    """Open a file to read it; the caller closes it. Errors are those of `opened`."""
    kept = _contents.get()
    stamp = GONE if kept is None else file_stamp(path)
    known, content = (kept or {}).get(path, (GONE, None))
    if content is not None and known == stamp:
        return pa.BufferReader(content)
    with opened(path) as (filesystem, inner):
        file = filesystem.open_input_file(inner)
    if kept is None or stamp == GONE or file.size() > KEPT_BYTES:
        return file
    with file:
        kept[path] = stamp, file.read_buffer()
    if len(kept) > MOST_KEPT:
        kept.pop(next(iter(kept)))
    return pa.BufferReader(kept[path][1])


#: Contents of files by their paths, each with the stamp that the file had before it was opened.
_contents: ContextVar[dict[str, tuple[str, pa.Buffer]] | None] = ContextVar("contents of files", default=None)


@contextlib.contextmanager
def _placed(path: str, find: Find) -> Iterator[tuple[pyarrow.fs.FileSystem, str]]:
    """Yield the place of a path or URI that may be read. find: looks it up on a disk."""
    roots = DataRoots.of_process()
    roots.check(path)
    filesystem, inner = located(path)
    local = isinstance(filesystem, pyarrow.fs.LocalFileSystem)
    with find(roots, inner) if local else contextlib.nullcontext(inner) as checked:
        yield filesystem, checked


def look_at_each(look: Callable[[str], T], files: Iterable[str]) -> dict[str, T]:
    """Return the result of a look at each file; on object storage several are looked at together."""
    names = sorted(set(files))
    if not any(map(is_uri, names)):
        return {name: look(name) for name in names}  # for small files, threads take longer than the looks
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(names, pool.map(look, names), strict=True))


def check_readable(paths: Iterable[str]) -> None:
    """Raise `CustomerError` for a file outside `DataRoots`, for the user's code that opens it itself."""
    if DataRoots.of_process() != EVERYWHERE:
        for path in paths:
            with reading_errors(path), opened(path):
                pass


def content_of(path: str) -> bytes:
    """Return all of a small file; `CustomerError` where it cannot be read."""
    with reading_errors(path), opened(path) as (filesystem, inner), filesystem.open_input_stream(inner) as stream:
        return bytes(stream.read())


def size_of(path: str) -> int:
    """Return the bytes of a file; 0 for one that is not there or may not be read, which its reader reports."""
    try:
        if DataRoots.of_process() is EVERYWHERE and not is_uri(path):
            return os.path.getsize(path)  # of many files, the `with` would take longer than that
        with _placed(path, DataRoots.found) as (filesystem, inner):
            return filesystem.get_file_info(inner).size or 0
    except (OSError, StorageError, CustomerError):
        return 0


@contextlib.contextmanager
def reading_errors(path: str, encoding: str = "utf-8") -> Iterator[None]:
    """Turn whatever is wrong with a file that is read within the block into a `CustomerError`."""
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
    """Return a library's message with the file's name for the descriptor that the file was opened by."""
    said = OPENED.sub(lambda _: shown, str(error)).removeprefix("Error tokenizing data. C error: ")
    return shorten(" ".join(said.split()).rstrip("."), 200)


def file_stamp(path: str) -> str:
    """Return size and time of a file on a disk, the ETag of an object; GONE where neither can be had."""
    try:
        with _placed(path, DataRoots.found) as (filesystem, inner):
            if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
                return _etag(filesystem, inner)
            found = os.stat(inner)
    except (OSError, StorageError, CustomerError):
        return GONE
    return f"{found.st_size} {found.st_mtime_ns}"


def file_digest(path: str) -> str:
    """Return the SHA-256 of a file on a disk, the ETag of an object; the error's name where it cannot be read."""
    try:
        if is_uri(path):
            with opened(path) as (filesystem, inner):
                if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
                    return _etag(filesystem, inner)
        digest = hashlib.sha256()
        with open_file(path) as file:
            while piece := file.read_buffer(DIGESTED_AT_ONCE):
                digest.update(piece)
        return digest.hexdigest()
    except (OSError, StorageError, CustomerError) as error:
        return type(error).__name__  # nobody can read it now; when that changes, so does the customer


def joined(parts: Sequence[str]) -> str:
    """Join the stamps or digests of several files; empty where there are none, or one file has none."""
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
