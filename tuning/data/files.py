"""Which files a definition's data means, and what the customers in them are called."""

from __future__ import annotations

import contextlib
import fnmatch
import glob as globbing
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow.fs

from tuning.basics.wording import encodable
from tuning.data.file_access import located, without_query
from tuning.data.registry import suffixes, without_suffix
from tuning.errors import DataError, StorageError
from tuning.storage.names import is_uri, mask

WILDCARDS = "*?["
# Endings of files that somebody may take for data, and that folders are not searched for.
LIKE_DATA = re.compile(r"\.(csv|tsv|parquet|pq|xlsx?|feather|arrow|orc|jsonl|zip)(\.\w+)?$", re.IGNORECASE)
# Folders, and files that are no data, that are gone through in search of data: else `data: /` takes minutes.
MOST_OTHERS, OTHERS_PER_FILE = 50_000, 10


@dataclass(frozen=True)
class File:
    """path: absolute, or a URI. size: bytes."""

    path: str
    size: int = 0


def patterns(data: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """A definition's data as a list of globs, folders and files."""
    return [str(data)] if isinstance(data, str | os.PathLike) else [str(item) for item in data]


def is_glob(data: str | os.PathLike[str] | Sequence[str]) -> bool:
    """True when files are chosen by a pattern, not named one by one or as a folder."""
    return any(
        any(sign in without_query(item) for sign in WILDCARDS) and not os.path.exists(item) for item in patterns(data)
    )


def find_files(data: str | os.PathLike[str] | Sequence[str]) -> list[File]:
    """The files of a glob, folder, file or list of them, sorted by path.

    In folders (also below them) only files with a known suffix count, and none whose path has a part beginning
    with `_` or `.`, as Spark, Hive and notebooks name their own files.
    """
    found: dict[str, File] = {}
    for pattern in patterns(data):
        for file in _remote(pattern) if is_uri(pattern) else _local(pattern):
            found[file.path] = replace(file, path=encodable(file.path))
    if not found:
        shown = ", ".join(repr(mask(pattern)) for pattern in patterns(data))
        raise DataError(
            f"data: no file matches {shown}. A glob such as 'customers/*.csv', a folder, or one file with `by` "
            f"is expected; in folders files end in {', '.join(suffixes())}."
        )
    return [found[path] for path in sorted(found)]


def left_out(data: str | os.PathLike[str] | Sequence[str], most: int = 10_000) -> list[str]:
    """Files in local folders that may be meant as data, and whose format is not known; most: folders looked at."""
    folders = [item for item in patterns(data) if not is_uri(item) and os.path.isdir(item)]
    return [
        os.path.relpath(os.path.join(where, name), folder)
        for folder in folders
        for where, _, names in islice(os.walk(folder), most)
        for name in sorted(names)
        if LIKE_DATA.search(name) and not _counts(name) and not name.startswith((".", "_"))
    ]


def find_sizes(paths: Sequence[str]) -> dict[str, int]:
    """Bytes of each path; 0 for what is not there, which its reader will say."""
    places: dict[int, tuple[pyarrow.fs.FileSystem, list[str], list[str]]] = {}
    sizes = dict.fromkeys(paths, 0)
    for path in paths:
        try:
            filesystem, inner = located(path)
        except StorageError:
            continue
        _, names, inners = places.setdefault(id(filesystem), (filesystem, [], []))
        names.append(path)
        inners.append(inner)
    for filesystem, names, inners in places.values():
        with contextlib.suppress(OSError):
            sizes |= {name: info.size or 0 for name, info in zip(names, filesystem.get_file_info(inners), strict=True)}
    return sizes


def _local(pattern: str) -> list[File]:
    path = os.path.abspath(os.path.expanduser(pattern))
    if os.path.isfile(path):
        return [File(path, _size(path))]
    if os.path.isdir(path):
        return _below(path)
    if "**" in path:
        _refuse_a_disk(path)
    matches = sorted(globbing.iglob(path, recursive=True))
    files = [File(match, _size(match)) for match in matches if not os.path.isdir(match)]
    # Folders that a glob such as months/* matches stand for the files in them.
    return files or [file for match in matches for file in _below(match)]


def _below(folder: str) -> list[File]:
    found: list[File] = []
    others = 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        data = [name for name in names if _counts(name)]
        others += 1 + len(names) - len(data)
        if others > MOST_OTHERS + OTHERS_PER_FILE * len(found):
            raise DataError(
                f"data: below {folder!r} are more than {MOST_OTHERS:,} folders and files without data. Name the folder "
                "of the data itself, or a pattern such as 'customers/*.csv'."
            )
        for name in data:
            path = os.path.join(where, name)
            found.append(File(path, _size(path)))
    return found


def _refuse_a_disk(pattern: str) -> None:
    """`DataError` where a pattern with `**` would go through a whole disk."""
    fixed = pattern
    for sign in WILDCARDS:
        fixed = fixed.split(sign)[0]
    _below(os.path.dirname(fixed))


def _size(path: str) -> int:
    """Bytes; 0 for a link that leads nowhere, which stays a customer and gets a reason."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _counts(name: str) -> bool:
    return name.lower().endswith(suffixes()) and not name.startswith((".", "_"))


def _remote(pattern: str) -> list[File]:
    address = without_query(pattern)
    query = pattern[len(address) :]
    base = address
    for sign in WILDCARDS:
        base = base.split(sign)[0]
    folder = base if base == address else base.rsplit("/", 1)[0]
    try:
        filesystem, inner = located(folder + query)
    except StorageError as error:
        web = " What is on the web has to be downloaded first." if base.startswith(("http:", "https:")) else ""
        raise DataError(f"data: {error}{web}") from error
    try:
        info = filesystem.get_file_info(inner)
        if info.type == pyarrow.fs.FileType.File:
            return [File(pattern, info.size)]
        selector = pyarrow.fs.FileSelector(inner, allow_not_found=True, recursive=True)
        infos = filesystem.get_file_info(selector)
    except OSError as error:
        raise DataError(f"data: {mask(pattern)!r} cannot be listed: {error}.") from error
    found = []
    for item in infos:
        below = item.path[len(inner) :]
        if item.type != pyarrow.fs.FileType.File:
            continue
        name = folder.rstrip("/") + "/" + below.lstrip("/")
        if base == address:
            if all(not part.startswith((".", "_")) for part in below.split("/")) and _counts(item.base_name):
                found.append(File(name + query, item.size))
        elif _matches(name, address):
            found.append(File(name + query, item.size))
    return found


def _matches(name: str, pattern: str) -> bool:
    """As in a shell: `*` stays within a folder, `**` does not."""
    if "**" in pattern:
        return fnmatch.fnmatch(name, pattern.replace("**/", "*"))
    parts, wanted = name.split("/"), pattern.split("/")
    return len(parts) == len(wanted) and all(map(fnmatch.fnmatch, parts, wanted))


def file_ids(files: Sequence[File]) -> list[str]:
    """A customer's name per file: its path below the folder that all files share, without the suffix."""
    addresses = [without_query(file.path) for file in files]
    schemes = {address.partition("://")[0] if is_uri(address) else "" for address in addresses}
    if len(schemes) > 1:
        return [without_suffix(address) for address in addresses]
    bare = [address.removeprefix(f"{scheme}://") for address in addresses for scheme in schemes]
    common = os.path.commonpath([path.rpartition("/")[0] for path in bare]).rstrip("/") + "/"
    return [without_suffix(path[len(common) :]) for path in bare]
