"""Which files a definition's data means, and what the customers in them are called."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow.fs

from tuning.basics.wording import did_you_mean, encodable
from tuning.data.file_access import located, size_of
from tuning.data.registry import suffixes, without_suffix
from tuning.errors import CustomerError, DataError, StorageError
from tuning.storage.data_roots import DataRoots, FolderEntry
from tuning.storage.names import is_uri, mask, without_query

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

    In folders (also below them) only files with a known suffix count, and none whose path has a hidden part.
    """
    found: dict[str, File] = {}
    for pattern in patterns(data):
        try:
            files = _remote(pattern) if is_uri(pattern) else _local(pattern)
        except CustomerError as error:
            raise DataError(f"data: {error}") from error
        found |= {file.path: replace(file, path=encodable(file.path)) for file in files}
    if not found:
        shown = ", ".join(repr(mask(pattern)) for pattern in patterns(data))
        raise DataError(
            f"data: no file matches {shown}.{_neighbour(patterns(data))} A glob such as 'customers/*.csv', a folder, "
            f"or one file with `by` is expected; in folders files end in {', '.join(suffixes())}."
        )
    return [found[path] for path in sorted(found)]


def _neighbour(names: Sequence[str]) -> str:
    """The file or folder beside a single name that is not there which is most like it."""
    if len(names) != 1 or is_uri(names[0]) or is_glob(names[0]):
        return ""
    folder, name = os.path.split(os.path.abspath(names[0]))
    with contextlib.suppress(OSError, CustomerError):
        return did_you_mean(name, [entry.name for entry in DataRoots.of_process().entries(folder)])
    return ""


def left_out(data: str | os.PathLike[str] | Sequence[str], most: int = 10_000) -> list[str]:
    """Files in local folders that may be meant as data and are not read; most: folders looked at.

    Their format is not known, or `_` begins their name or that of a folder.
    """
    folders = [os.path.abspath(item) for item in patterns(data) if not is_uri(item) and os.path.isdir(item)]
    found = [
        os.path.relpath(file.path, folder)
        for folder in folders
        for files in islice(_files_by_folder(folder, ("_",)), most)
        for file in files
        if LIKE_DATA.search(file.name) and not file.name.startswith(".")
    ]
    return [path for path in found if not _counts(path)]


def find_sizes(paths: Sequence[str]) -> dict[str, int]:
    """Bytes of each path; 0 for what is not there, which its reader will say."""
    places: dict[int, tuple[pyarrow.fs.FileSystem, list[str], list[str]]] = {}
    sizes = dict.fromkeys(paths, 0)
    roots = DataRoots.of_process()
    for path in paths:
        try:
            roots.check(path)
            filesystem, inner = located(path)
        except (StorageError, CustomerError):
            continue
        if isinstance(filesystem, pyarrow.fs.LocalFileSystem):
            sizes[path] = size_of(path)
            continue
        _, names, inners = places.setdefault(id(filesystem), (filesystem, [], []))
        names.append(path)
        inners.append(inner)
    for filesystem, names, inners in places.values():
        with contextlib.suppress(OSError):
            sizes |= {name: info.size or 0 for name, info in zip(names, filesystem.get_file_info(inners), strict=True)}
    return sizes


def _local(pattern: str) -> list[File]:
    DataRoots.of_process().check(pattern)
    path = os.path.abspath(os.path.expanduser(pattern))
    if os.path.isfile(path):
        return [File(path, size_of(path))]
    if os.path.isdir(path):
        return _below(path)
    if "**" in path:
        _refuse_a_disk(path)
    matches = sorted(set(_matching("/", path.split("/")[1:])))
    files = [File(match, size_of(match)) for match in matches if not os.path.isdir(match)]
    # Folders that a glob such as months/* matches stand for the files in them.
    return files or [file for match in matches for file in _below(match)]


def _matching(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """What is below a folder and matches the parts of a pattern, as in a shell: `**` is any number of folders."""
    part, rest = parts[0], parts[1:]
    if part != "**" and not any(sign in part for sign in WILDCARDS):
        path = os.path.join(folder, part)
        if rest:
            yield from _matching(path, rest)
        elif os.path.lexists(path):
            yield path
        return
    if part == "**" and rest:
        yield from _matching(folder, rest)
    for entry in DataRoots.of_process().entries(folder):
        if entry.name.startswith(".") and not part.startswith("."):
            continue
        if part == "**" and entry.folder:
            yield from _matching(entry.path, parts)
        elif entry.folder and rest and fnmatch.fnmatchcase(entry.name, part):
            yield from _matching(entry.path, rest)
        elif not rest and fnmatch.fnmatchcase(entry.name, part):
            yield entry.path


def _files_by_folder(folder: str, shown: tuple[str, ...] = ()) -> Iterator[list[FolderEntry]]:
    """The files of a folder, and of each one below it that is neither hidden nor a link.

    shown: beginnings of names that are not hidden here.
    """
    waiting = [folder]
    while waiting:
        entries = sorted(DataRoots.of_process().entries(waiting.pop()))
        folders = [each for each in entries[::-1] if each.folder and not each.link]
        waiting += [each.path for each in folders if each.name.startswith(shown) or not _hidden(each.name)]
        yield [each for each in entries if not each.folder]


def _below(folder: str) -> list[File]:
    found: list[File] = []
    others = 0
    for files in _files_by_folder(folder):
        data = [file.path for file in files if _counts(file.name)]
        others += 1 + len(files) - len(data)
        if others > MOST_OTHERS + OTHERS_PER_FILE * len(found):
            raise DataError(
                f"data: below {folder!r} are more than {MOST_OTHERS:,} folders and files without data. Name the folder "
                "of the data itself, or a pattern such as 'customers/*.csv'."
            )
        found += [File(path, size_of(path)) for path in data]
    return found


def _refuse_a_disk(pattern: str) -> None:
    """`DataError` where a pattern with `**` would go through a whole disk."""
    fixed = pattern
    for sign in WILDCARDS:
        fixed = fixed.split(sign)[0]
    _below(os.path.dirname(fixed))


def _hidden(name: str) -> bool:
    """Whether Spark, Hive or a notebook names its own files and folders like that; `_batch=2` is a value in Hive."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _counts(path: str) -> bool:
    """Whether a file below a folder is data. path: below it."""
    return path.lower().endswith(suffixes()) and not any(map(_hidden, path.split("/")))


def _remote(pattern: str) -> list[File]:
    address = without_query(pattern)
    query = pattern[len(address) :]
    base = address
    for sign in WILDCARDS:
        base = base.split(sign)[0]
    folder = base if base == address else base.rsplit("/", 1)[0]
    try:
        DataRoots.of_process().check(folder + query)
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
            if _counts(below):
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
