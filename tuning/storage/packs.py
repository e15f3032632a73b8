"""Many small files in one: a pack is a ZIP archive, written once like every file of a run.

A million customers' models would be two million files and as many folders, each of them a few kilobytes that a disk
rounds up and waits for. A file in a pack has a name like any other, which goes on behind the archive's:
`models/0c1f2a9b.zip/acme/model.json`. Any program that opens ZIP archives takes single files out.
"""

from __future__ import annotations

import contextlib
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator
from functools import lru_cache
from uuid import uuid4

from tuning.storage.background import BackgroundWriter
from tuning.storage.run_directory import RunDirectory

SUFFIX = ".zip"
MOST_BYTES, MOST_FILES = 1 << 26, 2000  # then another pack is begun; a reader goes through all names, 20 µs each
END, END_BYTES = b"PK\x05\x06", 22  # how the end of an archive without a comment begins, and how long it is
# One wrong bit may also say that a file is encrypted, of another version, before the archive or compressed.
DAMAGE = (zipfile.BadZipFile, RuntimeError, ValueError, EOFError, struct.error, zlib.error)


class PackWriter(BackgroundWriter):
    """Files of a run directory on their way into packs; nobody may rely on one before `flush`."""

    def __init__(self, directory: RunDirectory) -> None:
        super().__init__(directory)
        self._name = ""
        self._content = io.BytesIO()
        self._pack: zipfile.ZipFile | None = None

    def folder(self, parent: str, name: str) -> str:
        """A folder's name in a pack that is still open."""
        if self._pack is not None and self._full(self._pack):
            self._close()
        if self._pack is None:
            self._name = f"{parent}/{uuid4().hex[:16]}{SUFFIX}"
            self._content = io.BytesIO()
            self._pack = zipfile.ZipFile(self._content, "w")
        return f"{self._name}/{name}"

    def write(self, name: str, data: bytes) -> None:
        """Put a file into the pack that its name begins with; any other file is placed by itself."""
        pack, inside = _taken_apart(name)
        if self._pack is None or pack != self._name:
            super().write(name, data)
        else:
            self._pack.writestr(zipfile.ZipInfo(inside), data)

    def flush(self) -> None:
        """Place the pack, and wait until everything is in place; a `StorageError` says what could not be written."""
        self._close()
        super().flush()

    def _full(self, pack: zipfile.ZipFile) -> bool:
        return self._content.tell() > MOST_BYTES or len(pack.filelist) >= MOST_FILES

    def _close(self) -> None:
        pack, self._pack = self._pack, None
        if pack is not None:
            pack.close()
            super().write(self._name, self._content.getvalue())


def read(directory: RunDirectory, name: str) -> bytes:
    """A file of a run, in a pack or not.

    As `RunDirectory.read`; a pack that is damaged is an `OSError`.
    """
    pack, inside = _taken_apart(name)
    if not pack:
        return directory.read(name)
    with _damage_said(directory, pack):
        try:
            return _opened(directory.uri, pack).read(inside)
        except KeyError:
            raise FileNotFoundError(name) from None


def files_below(directory: RunDirectory, folder: str) -> Iterator[str]:
    """Names of all files below a folder, in order, in a pack or not; a pack that is damaged is an `OSError`."""
    pack, inside = _taken_apart(folder)
    if not pack:
        yield from directory.list(folder)
        return
    with _damage_said(directory, pack):
        names = _opened(directory.uri, pack).namelist()
    yield from sorted(f"{pack}/{name}" for name in names if name.startswith(f"{inside}/"))


@contextlib.contextmanager
def _damage_said(directory: RunDirectory, pack: str) -> Iterator[None]:
    """What `zipfile` raises for a damaged archive, which may be nearly anything, as an `OSError`."""
    try:
        yield
    except DAMAGE as error:
        raise OSError(f"{directory.display(pack)} is damaged: {error}") from error


@lru_cache(maxsize=2)
def _opened(uri: str, name: str) -> zipfile.ZipFile:
    """Packs never change, and whoever reads one model often goes on with its neighbour."""
    content = RunDirectory(uri).read(name)
    if content[-END_BYTES:][:4] != END:  # else zipfile takes the end of a file inside for that of the pack
        raise zipfile.BadZipFile("its end is missing")
    return zipfile.ZipFile(io.BytesIO(content))


def _taken_apart(name: str) -> tuple[str, str]:
    """(pack, name in it); the former is empty for a file of its own. No customer's folder ends as a pack does."""
    pack, found, inside = name.partition(f"{SUFFIX}/")
    return (pack + SUFFIX, inside) if found else ("", name)
