"""The run directory on any pyarrow filesystem: the only place that builds paths and touches files of a run.

Files are immutable: each is written once, whole, under its final name. Nothing here ever leaves the run directory,
whatever a customer is called (see `slug`). What the storage refuses is tried again as often as it makes sense, then it
is a `StorageError` that says what is wrong with the storage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pyarrow.fs

from tuning.basics.timing import USUAL, Timing
from tuning.basics.wording import command
from tuning.errors import FULL, DiskFullError, StorageError
from tuning.storage import retrying
from tuning.storage.backend import Backend, open_filesystem
from tuning.storage.confined_disk import ConfinedDisk
from tuning.storage.data_roots import EVERYWHERE, DataRoots
from tuning.storage.local_disk import LocalDisk
from tuning.storage.names import is_uri, mask, mask_in
from tuning.storage.object_storage import ObjectStorage

T = TypeVar("T")


class RunDirectory:
    """One run's folder. Names are relative, with `/`.

    uri: a local path or any URI of a pyarrow filesystem (`s3://bucket/runs/weekly`). local: whether it is on a disk of
    this machine (or mounted there). timing: of the pauses between attempts. roots: outside which nothing is read, of a
    run that is data to this process; nothing is written to it.
    """

    def __init__(self, uri: str | Path, timing: Timing = USUAL, roots: DataRoots = EVERYWHERE) -> None:
        if not isinstance(uri, str | Path):
            raise StorageError(f"{uri!r} is no folder of a run: give a path, or a URI such as s3://bucket/folder.")
        uri = str(uri)
        filesystem, root = open_filesystem(uri)
        root = root.rstrip("/")
        if not root:
            raise StorageError(f"{mask(uri)!r} names no folder for a run: give one, such as s3://bucket/folder.")
        self.local = not is_uri(uri) or uri.startswith("file://")
        self.uri = root if self.local else uri
        self.timing = timing
        self.storage: Backend
        if self.local and roots != EVERYWHERE:
            root = os.path.abspath(Path(uri).expanduser())  # where a link leads is looked at as each file is opened
            self.storage = ConfinedDisk(filesystem, root, root, roots)
        else:
            self.storage = (LocalDisk if self.local else ObjectStorage)(filesystem, root, self.uri)

    def __repr__(self) -> str:
        return f"RunDirectory({mask(self.uri)!r})"

    @property
    def root(self) -> str:
        """The folder's path on `filesystem`."""
        return self.storage.root

    @property
    def filesystem(self) -> pyarrow.fs.FileSystem:
        return self.storage.filesystem

    def path(self, name: str) -> str:
        """The path of a file of this run on its filesystem; a name that would leave the run is an error."""
        parts = name.split("/")
        if name.startswith("/") or any(part in ("", ".", "..") for part in parts) or "\0" in name:
            raise StorageError(f"{name!r} is not a file name inside a run directory.")
        return f"{self.root}/{name}"

    def locate(self, name: str) -> str:
        """The full path or URI of a file, for programs: secrets in the URI are kept."""
        self.path(name)
        return self.storage.locate(name)

    def name_of(self, location: str) -> str | None:
        """The name of the file that `locate` made this of; None for a file that is not in the run directory."""
        return self.storage.name_of(location)

    @property
    def shown(self) -> str:
        """The run directory as a user would type it, secrets masked."""
        return mask(self.uri).rstrip("/")

    def display(self, name: str) -> str:
        """The full name of a file, as a user would type it; secrets masked."""
        return mask(self.locate(name))

    def create(self) -> None:
        """Make the folder, for its owner only."""
        self._attempt("", "made", self.storage.create)

    def is_empty(self, besides: str) -> bool:
        """Whether nothing is in the folder; also when it is not there.

        besides: a folder in it that may be there as well, with nothing but unfinished temporary files.
        """
        selector = pyarrow.fs.FileSelector(self.root, allow_not_found=True)
        there = self._attempt("", "listed", lambda: self.filesystem.get_file_info(selector))
        return all(entry.base_name == besides for entry in there) and not any(self.list(besides))

    def entries(self) -> Sequence[str]:
        """The names of the files and folders directly in it, in no order; none when it is not there."""
        return self._attempt("", "listed", lambda: self.storage.entries(self.root))

    def size(self, name: str = "") -> int:
        """The bytes of a file of it, or of all files below a folder, by default of all of it; 0 where there is none."""
        path = self.path(name) if name else self.root
        if (there := self.filesystem.get_file_info(path)).is_file:
            return int(there.size or 0)
        below = self.filesystem.get_file_info(pyarrow.fs.FileSelector(path, allow_not_found=True, recursive=True))
        return sum(int(each.size or 0) for each in below)

    def delete(self, name: str = "") -> None:
        """Delete a file or folder of it, by default all of it; what is not there does no harm.

        `StorageError` when it cannot be deleted.
        """
        target = self.path(name) if name else self.root
        try:
            self._retried(lambda: self.storage.delete(target))
        except OSError as error:
            raise StorageError(
                f"{self.display(name) if name else self.shown} could not be deleted: "
                f"{mask_in(retrying.described(error))}. Repair the storage, then go on: "
                + command("delete", self.shown)
            ) from error

    def discard(self) -> None:
        """Delete the folder with all that is in it: of a run that could not begin."""
        self.storage.remove_folder(self.root)

    def write(self, name: str, data: bytes) -> None:
        """Place a file atomically: afterwards it is there whole, or not at all."""
        target = self.path(name)
        self._attempt(name, "written", lambda: self.storage.put(target, data))

    def write_pieces(self, name: str, pieces: Iterable[bytes]) -> None:
        """The same with a file that is never in memory as a whole; pieces: gone through again at each attempt."""
        target = self.path(name)
        self._attempt(name, "written", lambda: self.storage.put_pieces(target, pieces))

    def claim(self, name: str, data: bytes) -> None:
        """Place a file that must not be there yet: of several who try, one succeeds; else `FileExistsError`.

        Exact on a local disk and, with boto3, on S3; on other object storage it is a look before a put.
        """
        target = self.path(name)
        try:
            self._attempt(name, "written", lambda: self.storage.put_new(target, data))
        except FileExistsError:
            if self.read(name) != data:  # else it is ours: the answer to an earlier attempt was lost
                raise

    def remove(self, name: str) -> None:
        """Delete a file that only served for a while; one that is not there does no harm."""
        self.storage.remove(self.path(name))

    def remove_folder(self, name: str) -> None:
        """Delete a folder that only served for a while; one that is not there does no harm."""
        self.storage.remove_folder(self.path(name))

    def read(self, name: str) -> bytes:
        """The whole file.

        `FileNotFoundError` when it is not there. `OSError` when the place on the disk where it is cannot be read any
        more: that file is damaged. `StorageError` when the storage gives nothing at all: nobody knows what is in it.
        """
        target = self.path(name)
        try:
            return self._retried(lambda: self.storage.read(target))
        except FileNotFoundError:
            self._check_present(name)
            raise
        except OSError as error:
            if self.storage.is_damage(error):
                raise
            raise self._error(name, "read", error) from error

    def exists(self, name: str) -> bool:
        """True when the file or folder is there."""
        target = self.path(name)
        found = self._attempt(name, "looked for", lambda: self.storage.exists(target))
        if not found:
            self._check_present(name)
        return found

    def list(self, folder: str) -> Iterator[str]:
        """Names of all files below a folder, in order; unfinished temporary files are left out.

        Files that come and go in the meantime do no harm. A bucket that is gone is an error, not an empty folder.
        """
        target = self.path(folder)
        found = self._attempt(folder, "listed", lambda: self.storage.files_below(target))
        if not found:
            self._check_present(folder)
        prefix = len(self.root) + 1
        yield from sorted(path[prefix:] for path in found)

    def _check_present(self, name: str) -> None:
        """`StorageError` when nothing is found because the storage as a whole is gone."""
        try:
            self._retried(self.storage.check_present)
        except FileNotFoundError as gone:
            raise self._error(name, "looked for", gone) from gone
        except OSError:  # who may see a part of a bucket only may not ask for it as a whole
            pass

    def _error(self, name: str, done: str, error: OSError) -> StorageError:
        kind = DiskFullError if error.errno in FULL else StorageError
        kept = "then resume the run or repeat the command; nothing recorded so far is lost"
        return kind(
            f"{self.display(name) if name else self.shown} could not be {done}: {mask_in(retrying.described(error))}. "
            f"Free or repair the storage, {kept if name else 'or name another folder'}."
        )

    def _attempt(self, name: str, done: str, action: Callable[[], T]) -> T:
        try:
            return self._retried(action)
        except FileExistsError:
            raise
        except OSError as error:
            raise self._error(name, done, error) from error

    def _retried(self, action: Callable[[], T]) -> T:
        return retrying.with_retries(action, self.timing.storage_pause_s)

    def __getstate__(self) -> tuple[str, Timing]:
        return self.uri, self.timing

    def __setstate__(self, state: tuple[str, Timing]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # a filesystem handle does not travel between processes
