"""Files of data on any filesystem: where a path leads, how a file is opened, what it is known by, what is wrong."""

from __future__ import annotations

import contextlib
import csv as csv_module
import hashlib
import os
import re
from collections.abc import Iterator
from functools import lru_cache

import pyarrow as pa
import pyarrow.fs

from tuning.errors import CustomerError, StorageError
from tuning.storage.backend import open_filesystem
from tuning.storage.names import is_uri

GONE = ""  # the stamp of a file that is not there
NOT_UTF_8 = re.compile(r"\\udc[89a-f]")  # what `readable` makes of a byte of a file's name
DIGESTED_AT_ONCE = 1 << 20  # bytes


def without_query(path: str) -> str:
    """A path without the options that a URI may end in (`?endpoint_override=…&scheme=http`)."""
    return re.sub(r"\?\w+=[^/]*(//[^/]*)?$", "", path) if is_uri(path) else path


def file_name(path: str) -> str:
    """A file's own name, for messages."""
    return os.path.basename(without_query(path))


def located(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """The pyarrow filesystem of a path or URI, kept for the next file of the same place, and the path on it.

    Names stand for themselves: `%` in a URI is a percent sign, as it comes from listing a bucket.
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


def readable(path: str) -> tuple[pyarrow.fs.FileSystem, str]:
    """As `located`; `CustomerError` for a folder, and for a pipe or a device, which nobody may ever write to."""
    filesystem, inner = located(path)
    if not is_uri(path) and not os.path.isfile(inner) and os.path.exists(inner):
        what = "a folder" if os.path.isdir(inner) else "a pipe or a device"
        raise CustomerError(f"{file_name(path)} is {what}, a file is expected.")
    return filesystem, inner


@contextlib.contextmanager
def reading_errors(path: str, encoding: str = "utf-8") -> Iterator[None]:
    """Around reading a file: what can be wrong with it becomes a `CustomerError`."""
    shown = file_name(path)
    try:
        yield
    except CustomerError:
        raise
    except StorageError as error:
        raise CustomerError(str(error)) from error
    except FileNotFoundError as error:
        hint = " Its name is not UTF-8; rename it." if NOT_UTF_8.search(shown) else ""
        raise CustomerError(f"the file {shown} is not there.{hint}") from error
    except PermissionError as error:
        raise CustomerError(f"the file {shown} may not be read: permission denied.") from error
    except UnicodeError as error:
        where = f" ({error.reason} at byte {error.start})" if isinstance(error, UnicodeDecodeError) else ""
        raise CustomerError(f"the file {shown} is not {encoding} text{where}; set `encoding`.") from error
    except (ValueError, OSError, EOFError, csv_module.Error, pa.ArrowException) as error:
        text = " ".join(str(error).split())[:200].removeprefix("Error tokenizing data. C error: ").rstrip(".")
        if type(error).__name__ == "EmptyDataError":
            text = "it is empty"
        raise CustomerError(f"the file {shown} cannot be read: {text}.") from error


def file_stamp(path: str) -> str:
    """Size and time of a file on a disk, the ETag of an object; GONE where neither can be had."""
    try:
        filesystem, inner = located(path)
        if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
            return _etag(filesystem, inner)
        found = os.stat(inner)
    except (OSError, StorageError):
        return GONE
    return f"{found.st_size} {found.st_mtime_ns}"


def file_digest(path: str) -> str:
    """The SHA-256 of a file on a disk, the ETag of an object; the error's name where it cannot be read."""
    try:
        filesystem, inner = located(path)
        if not isinstance(filesystem, pyarrow.fs.LocalFileSystem):
            return _etag(filesystem, inner)
        if not os.path.isfile(inner):  # a pipe would never end
            return "no file"
        with open(inner, "rb", buffering=0) as file:
            digest = hashlib.sha256()
            while piece := file.read(DIGESTED_AT_ONCE):
                digest.update(piece)
        return digest.hexdigest()
    except (OSError, StorageError) as error:
        return type(error).__name__  # nobody can read it now; when that changes, so does the customer


def _etag(filesystem: pyarrow.fs.FileSystem, inner: str) -> str:
    with filesystem.open_input_file(inner) as file:
        tag = {key.lower(): value for key, value in (file.metadata() or {}).items()}.get("etag")
    if tag:
        return bytes(tag).decode("utf-8", "replace")
    info = filesystem.get_file_info(inner)
    return f"{info.size} {info.mtime_ns}"
