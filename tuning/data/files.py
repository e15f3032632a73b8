"""Which files a definition's data means, and what the customers in them are called."""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import pyarrow.fs

from tuning.basics.wording import did_you_mean, encodable
from tuning.data.file_access import located, size_of
from tuning.data.registry import suffixes, without_suffix
from tuning.errors import CustomerError, DataError, StorageError
from tuning.storage.data_roots import DataRoots, FolderEntry
from tuning.storage.names import is_uri, mask, without_query

# Endings of files that somebody may take for data, and that folders are not searched for.
LIKE_DATA = re.compile(r"\.(csv|tsv|parquet|pq|xlsx?|feather|arrow|orc|jsonl|zip)(\.\w+)?$", re.IGNORECASE)
# Folders, and files that are no data, that are gone through in search of data: else `data: /` takes minutes.
MOST_OTHERS, OTHERS_PER_FILE = 50_000, 10


@dataclass(frozen=True)
class File:
    """path: absolute, or a URI. size: bytes. id: the customer that it would be."""

    path: str
    size: int = 0
    id: str = ""

    @property
    def name(self) -> str:
        """The name of what is written for it: its id, with the file's suffix."""
        own = without_query(self.path).rpartition("/")[2]
        return self.id + own[len(without_suffix(own)) :]


def patterns(data: str | os.PathLike[str] | Sequence[str]) -> list[str]:
    """Return a definition's data as a list of globs, folders and files."""
    return [str(data)] if isinstance(data, str | os.PathLike) else [str(item) for item in data]


def is_glob(data: str | os.PathLike[str] | Sequence[str]) -> bool:
    """Return whether files are chosen by a pattern, not named one by one or as a folder."""
    return any(
        without_query(item) != _before_wildcards(without_query(item)) and not os.path.exists(item)
        for item in patterns(data)
    )


def find_files(data: str | os.PathLike[str] | Sequence[str]) -> list[File]:
    """Return the files of a glob, folder, file or list of them, sorted by path.

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
    files = [found[path] for path in sorted(found)]
    return [replace(file, id=name) for file, name in zip(files, _ids([file.path for file in files]), strict=True)]


def _neighbour(names: Sequence[str]) -> str:
    """Suggest the existing file or folder with the name most like a missing one."""
    if len(names) != 1 or is_uri(names[0]) or is_glob(names[0]):
        return ""
    folder, name = os.path.split(os.path.abspath(names[0]))
    with contextlib.suppress(OSError, CustomerError):
        return did_you_mean(name, [entry.name for entry in DataRoots.of_process().entries(folder)])
    return ""


def left_out(data: str | os.PathLike[str] | Sequence[str], most: int = 10_000) -> list[str]:
    """Return files in local folders that may be meant as data and are not read; most: folders looked at.

    Their format is not known, or `_` begins their name or that of a folder.
    """
    disk = _Place(DataRoots.of_process().entries, size_of)
    folders = [os.path.abspath(item) for item in patterns(data) if not is_uri(item) and os.path.isdir(item)]
    found = [
        os.path.relpath(file.path, folder)
        for folder in folders
        for files in islice(disk.files_by_folder(folder, ("_",)), most)
        for file in files
        if LIKE_DATA.search(file.name) and not file.name.startswith(".")
    ]
    return [path for path in found if not path.lower().endswith(suffixes()) or any(map(_hidden, path.split("/")))]


def _local(pattern: str) -> list[File]:
    roots = DataRoots.of_process()
    roots.check(pattern)
    path = os.path.abspath(os.path.expanduser(pattern))
    if os.path.isfile(path):
        return [File(path, size_of(path))]
    disk = _Place(roots.entries, size_of)
    if os.path.isdir(path):
        return disk.below(path)
    if "**" in path:
        disk.below(os.path.dirname(_before_wildcards(path)))  # which refuses to go through a whole disk
    return disk.matches("/", path.split("/")[1:])


def _remote(pattern: str) -> list[File]:
    address = without_query(pattern)
    query, base = pattern[len(address) :], _before_wildcards(address)
    folder = address if base == address else base.rsplit("/", 1)[0]
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
        infos = filesystem.get_file_info(pyarrow.fs.FileSelector(inner, allow_not_found=True, recursive=True))
    except OSError as error:
        raise DataError(f"data: {mask(pattern)!r} cannot be listed: {error}.") from error
    sizes = {info.path[len(inner) :].lstrip("/"): info.size for info in infos if info.type == pyarrow.fs.FileType.File}
    tree: dict[str, dict[str, FolderEntry]] = {}
    for path in sizes:
        parts = path.split("/")
        for depth, name in enumerate(parts):
            above, here = "/".join(parts[:depth]), "/".join(parts[: depth + 1])
            tree.setdefault(above, {})[name] = FolderEntry(name, here, folder=here != path, link=False)
    place = _Place(lambda above: list(tree.get(above, {}).values()), sizes.__getitem__)
    found = place.below("") if base == address else place.matches("", address[len(folder) + 1 :].split("/"))
    return [replace(file, path=f"{folder.rstrip('/')}/{file.path}{query}") for file in found]


@dataclass(frozen=True)
class _Place:
    """Folders that are searched for files. entries: what one holds. size: of a file, in bytes."""

    entries: Callable[[str], Sequence[FolderEntry]]
    size: Callable[[str], int]

    def matches(self, folder: str, parts: Sequence[str]) -> list[File]:
        """Return files that match the parts of a pattern; a matching folder (months/*) stands for its files."""
        found = sorted(set(self._matching(folder, parts)))
        files = [File(each.path, self.size(each.path)) for each in found if not each.folder]
        return files or [file for each in found for file in self.below(each.path)]

    def _matching(self, folder: str, parts: Sequence[str]) -> Iterator[FolderEntry]:
        """Yield the matches below a folder, as a shell finds them: `**` stands for any number of folders."""
        part, rest = parts[0], parts[1:]
        if rest and part == _before_wildcards(part):
            yield from self._matching(os.path.join(folder, part), rest)
            return
        if part == "**" and rest:
            yield from self._matching(folder, rest)
        for entry in self.entries(folder):
            if entry.name.startswith(".") and not part.startswith("."):
                continue
            if part == "**" and entry.folder:
                yield from self._matching(entry.path, parts)
            elif fnmatch.fnmatchcase(entry.name, part):
                if not rest:
                    yield entry
                elif entry.folder:
                    yield from self._matching(entry.path, rest)

    def below(self, folder: str) -> list[File]:
        """Return all data below a folder."""
        found: list[File] = []
        others = 0
        for files in self.files_by_folder(folder):
            data = [file.path for file in files if file.name.lower().endswith(suffixes()) and not _hidden(file.name)]
            others += 1 + len(files) - len(data)
            if others > MOST_OTHERS + OTHERS_PER_FILE * len(found):
                raise DataError(
                    f"data: below {folder!r} are more than {MOST_OTHERS:,} folders and files without data. Name the "
                    "folder of the data itself, or a pattern such as 'customers/*.csv'."
                )
            found += [File(path, self.size(path)) for path in data]
        return found

    def files_by_folder(self, folder: str, shown: tuple[str, ...] = ()) -> Iterator[list[FolderEntry]]:
        """Yield the files of a folder, and of each folder below it that is neither hidden nor a link.

        shown: beginnings of names that are not hidden here.
        """
        waiting = [folder]
        while waiting:
            entries = sorted(self.entries(waiting.pop()))
            folders = [each for each in entries[::-1] if each.folder and not each.link]
            waiting += [each.path for each in folders if each.name.startswith(shown) or not _hidden(each.name)]
            yield [each for each in entries if not each.folder]


def _before_wildcards(pattern: str) -> str:
    return re.split(r"[*?[]", pattern, maxsplit=1)[0]


def _hidden(name: str) -> bool:
    """Return whether Spark, Hive or a notebook names its own files like that; `_batch=2` is a value in Hive."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name)


def _ids(paths: Sequence[str]) -> list[str]:
    """Return a customer's name per file: its path below the folder that all share, without the suffix."""
    addresses = [without_query(path) for path in paths]
    schemes = {address.partition("://")[0] if is_uri(address) else "" for address in addresses}
    if len(schemes) > 1:
        return [without_suffix(address) for address in addresses]
    bare = [address.removeprefix(f"{scheme}://") for address in addresses for scheme in schemes]
    common = os.path.commonpath([path.rpartition("/")[0] for path in bare]).rstrip("/") + "/"
    return [without_suffix(path[len(common) :]) for path in bare]
