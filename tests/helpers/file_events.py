"""What the kernel says of the files in a folder: inotify hears forks and C libraries, too."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path

IN_ACCESS, IN_CLOSE_NOWRITE, IN_OPEN = 0x1, 0x10, 0x20


class FileEvents:
    """A watch on a folder. mask: the events that it hears; two equal ones in a row may count as one."""

    def __init__(self, folder: Path, mask: int) -> None:
        library = ctypes.CDLL(None)
        self._descriptor = library.inotify_init1(os.O_NONBLOCK)
        assert library.inotify_add_watch(self._descriptor, os.fsencode(folder), mask) >= 0

    def close(self) -> None:
        os.close(self._descriptor)

    def read(self) -> Iterator[tuple[int, str]]:
        """The events since the last look, each with the name of its file."""
        while True:
            try:
                events = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return
            while events:
                _, mask, _, length = struct.unpack_from("iIII", events)
                yield mask, os.fsdecode(events[16 : 16 + length].rstrip(b"\0"))
                events = events[16 + length :]
