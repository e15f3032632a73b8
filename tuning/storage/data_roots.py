"""Which places data may be read from: everywhere, or only below the roots that `TUNING_DATA_ROOTS` lists.

What is opened is what was checked. A local file is first found without being opened (`O_PATH`), links and all; then the
kernel says where it really is and what it is; then that very file is opened, through its descriptor. So a link or a
folder that somebody swaps in between changes nothing, and no device is touched or pipe waited for. A hard link, or
something mounted below a root, is below the root. Object storage has no links: there the address alone decides.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote

from tuning.errors import CustomerError, DataError
from tuning.notes import FileCode
from tuning.storage.names import is_uri, mask, without_query

VARIABLE = "TUNING_DATA_ROOTS"
OPENED = re.compile(r"/proc/self/fd/\d+")  # how a checked file is called while it is open

_own: set[str] = set()  # where the runs of this process have put rows for themselves


class FolderEntry(NamedTuple):
    """What a folder holds. folder: also of a link to one."""

    name: str
    path: str
    folder: bool
    link: bool


@dataclass(frozen=True)
class DataRoots:
    """Where data may be read.

    Attributes:
        places: folders and URIs; none for everywhere.
        closed: files and folders below them that may not be read all the same, and are no data of a folder.
        own: where this process's runs have put rows for themselves, which may be read as well.
    """

    places: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    own: tuple[str, ...] = ()

    @classmethod
    def of_process(cls) -> DataRoots:
        """Those that `TUNING_DATA_ROOTS` lists now, one a line, or in one line with colons between them.

        A `!` stands before what is closed, such as `!/data/private`.
        `DataError` where one is relative, which would be another folder in each process, or where it lists nothing but
        is there.
        """
        text = os.environ.get(VARIABLE, "")
        if not text:
            return EVERYWHERE
        listed = text.split("\n") if "\n" in text else re.split(rf"{re.escape(os.pathsep)}(?!//)", text)
        named = [root.rstrip("/") or "/" for root in listed if root.strip()]
        places = tuple(root for root in named if not root.startswith("!"))
        if not places or not all(is_uri(root) or os.path.isabs(root.removeprefix("!")) for root in named):
            raise DataError(f"{VARIABLE}: {text!r} lists no place, or a relative one. List absolute folders and URIs.")
        if not os.path.isdir("/proc/self/fd"):
            raise DataError(f"{VARIABLE} is kept on Linux with /proc only. Unset it here.")
        return cls(places, tuple(root[1:] for root in named if root.startswith("!")), tuple(_own))

    def check(self, path: str) -> None:
        """`CustomerError` unless a path or URI is below a root by its name; nothing is looked up for that.

        Of a path also its real form of a root counts. Both `..` and links are seen to: `..` here, links by `opened`.
        """
        if not self.places:
            return
        if is_uri(path):
            inside = any(_uri_below(path, root) for root in (*self.places, *self.own) if is_uri(root))
        else:
            inside = "\0" not in path and self._holds(os.path.abspath(os.path.expanduser(path)))
        if not inside:
            raise CustomerError(FileCode.OUTSIDE_ROOTS(mask(path), places=self._shown))

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[str]:
        """As `found`, of a file to read; `CustomerError` for a folder, a pipe or a device."""
        with self.found(path) as checked:
            if not os.path.isfile(checked) and os.path.exists(checked):
                kind = "a folder" if os.path.isdir(checked) else "a pipe or a device"
                raise CustomerError(FileCode.NO_FILE(os.path.basename(path), kind=kind))
            yield checked

    @contextlib.contextmanager
    def found(self, path: str) -> Iterator[str]:
        """Another path of a local file or folder, which is good within the block and leads to just what was checked.

        `CustomerError` for what is outside; `OSError` where it is not there. Nothing is opened by this.
        """
        if not self.places:
            yield path
            return
        self.check(path)
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            checked = f"/proc/self/fd/{descriptor}"
            if not self._holds(os.readlink(checked)):
                raise CustomerError(FileCode.LINK_OUTSIDE_ROOTS(os.path.basename(path), places=self._shown))
            yield checked
        finally:
            os.close(descriptor)

    def entries(self, folder: str) -> list[FolderEntry]:
        """What a local folder holds; nothing where it is none, is not there or may not be read.

        `CustomerError` for a folder that is outside.
        """
        try:
            with self.found(folder) as checked, os.scandir(checked) as found:
                before, place = os.path.join(folder, ""), os.path.realpath(checked) if self.closed else ""
                return [
                    FolderEntry(each.name, before + each.name, each.is_dir(), each.is_symlink())
                    for each in found
                    if not self.closed or not _among(os.path.join(place, each.name), self.closed)
                ]
        except OSError:
            return []

    def _holds(self, path: str) -> bool:
        return _among(path, self.own) or (_among(path, self.places) and not _among(path, self.closed))

    @property
    def _shown(self) -> list[str]:
        return [mask(root) for root in self.places if is_uri(root) or os.path.isdir(root)]


EVERYWHERE = DataRoots()


def data_roots_environment() -> dict[str, str]:
    """The variable for a process elsewhere that works for this one; nothing where it is not set."""
    return {VARIABLE: text} if (text := os.environ.get(VARIABLE)) else {}


def add_own_rows(place: str) -> None:
    """Let this process read the rows that a run has written for itself. place: their folder in the run directory."""
    _own.add(place)


def _among(path: str, places: Sequence[str]) -> bool:
    """Whether a local path is below one of some places, as that is called or where it really is."""
    local = [place for place in places if not is_uri(place)]
    return any(_below(path, place) or _below(path, os.path.realpath(place)) for place in local)


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def _uri_below(uri: str, root: str) -> bool:
    """Whether a URI is below another, part by part, in every way in which a client may read it."""
    (address, query), (above, expected) = _parts(uri), _parts(root)
    plain = address
    while (decoded := unquote(plain)) != plain:
        plain = decoded
    steps = re.split(r"[/\\]", plain.partition("://")[2])
    return query == expected and _below(address, above) and not {".", ".."} & {*steps}


def _parts(uri: str) -> tuple[str, str]:
    """A URI's address, with its scheme in small letters, and what stands behind it."""
    address = without_query(uri)
    scheme, _, rest = address.partition("://")
    return f"{scheme.lower()}://{rest.rstrip('/')}", uri[len(address) :]
