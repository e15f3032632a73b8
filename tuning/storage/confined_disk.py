"""A run directory of somebody else, on a local disk, of which nothing is read that is outside the roots of data."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow.fs

from tuning.storage.backend import TEMPORARY
from tuning.storage.data_roots import DataRoots
from tuning.storage.local_disk import LocalDisk


class ConfinedDisk(LocalDisk):
    """To read only. `CustomerError` for a file of the run that is a link out of the roots."""

    def __init__(self, filesystem: pyarrow.fs.FileSystem, root: str, uri: str, roots: DataRoots) -> None:
        super().__init__(filesystem, root, uri)
        self.roots = roots

    def read(self, path: str) -> bytes:
        with self.roots.opened(path) as checked:
            return super().read(checked)

    def exists(self, path: str) -> bool:
        try:
            with self.roots.opened(path):
                return True
        except (FileNotFoundError, NotADirectoryError):
            return False

    def files_below(self, path: str) -> Sequence[str]:
        found: list[str] = []
        for entry in self.roots.entries(path):
            if entry.folder and not entry.link:
                found += self.files_below(entry.path)
            elif not entry.folder and not entry.name.startswith(TEMPORARY):
                found.append(entry.path)
        return found
