"""Where processes listen, and which files they have open."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterable
from ipaddress import ip_address
from pathlib import Path

_LISTENS = "0A"  # the state in /proc/net/tcp


def listening(pids: Iterable[int]) -> set[tuple[str, int]]:
    """The addresses and TCP ports on which processes listen."""
    inodes = {target[8:-1] for pid in pids for target in open_files(pid).values() if target.startswith("socket:[")}
    found = set()
    for table in ("tcp", "tcp6"):
        for row in Path("/proc/net", table).read_text().splitlines()[1:]:
            columns = row.split()
            if columns[3] == _LISTENS and columns[9] in inodes:
                address, _, port = columns[1].partition(":")
                found.add((_read(address), int(port, 16)))
    return found


def everywhere(pids: Iterable[int]) -> set[tuple[str, int]]:
    """Those that other machines can reach."""
    return {(address, port) for address, port in listening(pids) if not _is_loopback(address)}


def _is_loopback(text: str) -> bool:
    address = ip_address(text)
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def _read(written: str) -> str:
    """An address of /proc/net: words of four bytes in the machine's order."""
    words = bytes.fromhex(written)
    return str(ip_address(b"".join(struct.pack(">I", word) for word in struct.unpack(f"={len(words) // 4}I", words))))


def open_files(pid: int) -> dict[str, str]:
    """What a process has open, by descriptor; nothing of one that has ended."""
    found = {}
    with contextlib.suppress(OSError):
        for entry in os.scandir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                found[entry.name] = os.readlink(entry.path)
    return found
