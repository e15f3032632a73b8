"""What the processes below one hold on this machine, as Linux tells it: ports, files and names."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_LISTENS = "0A"  # the state in /proc/net/tcp
_WRITES = os.O_WRONLY | os.O_RDWR


def tree(root: int) -> set[int]:
    """A process and all below it."""
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found, before = {root}, set[int]()
    while found != before:
        before = set(found)
        found |= {pid for pid, parent in parents.items() if parent in before}
    return found


def ports(pids: set[int]) -> set[int]:
    """The TCP ports on which processes listen."""
    inodes = {target[8:-1] for pid in pids for target in _targets(pid).values() if target.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path("/proc/net", table).read_text().splitlines()[1:]:
            columns = row.split()
            if columns[3] == _LISTENS and columns[9] in inodes:
                found.add(int(columns[1].rpartition(":")[2], 16))
    return found


def written_files(pids: set[int]) -> set[str]:
    """The files that processes have open to write into, without devices, pipes and what is deleted already."""
    found = set()
    for pid in pids:
        for descriptor, target in _targets(pid).items():
            if target.startswith("/") and not target.startswith("/dev/") and not target.endswith(" (deleted)"):
                with contextlib.suppress(OSError, ValueError):
                    lines = Path("/proc", str(pid), "fdinfo", descriptor).read_text().splitlines()
                    if int(lines[1].split()[1], 8) & _WRITES:
                        found.add(target)
    return found


def command(pid: int) -> bytes:
    """A process's command line, which Ray sets to what it does; empty when it has ended."""
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return b""


def _targets(pid: int) -> dict[str, str]:
    found = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found[entry.name] = os.readlink(entry.path)
    return found
