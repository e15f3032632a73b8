"""A run directory on a local disk: files are durable and whole before they have their names."""

from __future__ import annotations

import contextlib
import errno
import os
import uuid
from collections.abc import Iterable, Iterator, Sequence

from tuning.storage.backend import TEMPORARY, Backend


class LocalDisk(Backend):
    """A temporary file, fsync, rename and fsync of the folder."""

    local = True

    def locate(self, name: str) -> str:
        return f"{self.root}/{name}"

    def name_of(self, location: str) -> str | None:
        before = f"{self.root}/"
        return location.removeprefix(before) if location.startswith(before) else None

    def create(self) -> None:
        _make_folder(self.root)
        if not os.listdir(self.root):
            os.chmod(self.root, 0o700)  # made by somebody else beforehand; empty, so it is meant for this run

    def put(self, path: str, data: bytes) -> None:
        _place(path, [data])

    def put_pieces(self, path: str, pieces: Iterable[bytes]) -> None:
        _place(path, pieces)

    def put_new(self, path: str, data: bytes) -> None:
        _place_new(path, data)

    def files_below(self, path: str) -> Sequence[str]:
        return _files_below(path)

    def check_present(self) -> None:
        """A folder that is not there holds nothing."""

    def entries(self, path: str) -> Sequence[str]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            return os.listdir(path)
        return []

    def delete(self, path: str) -> None:
        """A link is deleted, not what it leads to."""
        if os.path.isdir(path) and not os.path.islink(path):
            for name in self.entries(path):
                self.delete(f"{path}/{name}")
            with contextlib.suppress(FileNotFoundError):
                os.rmdir(path)
        else:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def is_damage(self, error: OSError) -> bool:
        return error.errno == errno.EIO


def _place(target: str, pieces: Iterable[bytes]) -> None:
    """Write a local file beside its place, make it durable, move it there."""
    with _written(target, pieces) as temporary:
        os.replace(temporary, target)


def _place_new(target: str, data: bytes) -> None:
    """The same where nothing must be there yet: a hard link is refused where a rename would replace."""
    with _written(target, [data]) as temporary:
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
def _written(target: str, pieces: Iterable[bytes]) -> Iterator[str]:
    folder = os.path.dirname(target)
    _make_folder(folder)
    temporary = os.path.join(folder, f"{TEMPORARY}{uuid.uuid4().hex}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as stream:
            stream.writelines(pieces)
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
