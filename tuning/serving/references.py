"""How releases and runs name each other's directories: relatively within a storage, which may so be moved as a whole.

A run has a small file, its mark, for each name of champions that has ever referred to it. It only says where to look;
whether the run is needed is told by the releases there.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath

from tuning.errors import RunError
from tuning.storage.names import is_uri
from tuning.storage.run_directory import RunDirectory

MARKS = "champions"  # their folder in a run


def way(start: RunDirectory, end: RunDirectory, within: str) -> str | None:
    """Return the relative path from one directory to another; None where not both are below a common one.

    within: the common one, as a path or URI.
    """
    (before, first, after), (other, last, rest) = _taken(start.uri), _taken(end.uri)
    above = f"{_taken(within)[1].rstrip('/')}/"
    if (before, after) != (other, rest) or not (first.startswith(above) and last.startswith(above)):
        return None
    return posixpath.relpath(last, first)


def opened(start: RunDirectory, reference: str) -> RunDirectory:
    """Return the directory that a `way` leads to, or that a full path or URI names."""
    full = is_uri(reference) or reference.startswith("/")
    return RunDirectory(reference if full else joined(start.uri, reference))


def mark(root: RunDirectory, directory: RunDirectory) -> None:
    """Note in a run that champions refer to it; before they do. root: the champions' folder."""
    reference = way(directory, root, within=joined(root.uri, "../..")) or root.uri
    name = f"{MARKS}/{hashlib.sha256(reference.encode()).hexdigest()[:16]}.json"
    if not directory.exists(name):
        directory.write(name, json.dumps({"champions": reference}, ensure_ascii=False).encode())


def marked_by(directory: RunDirectory) -> list[RunDirectory]:
    """Return the folders of all champions that have ever referred to a run. `RunError` where that cannot be read."""
    found = []
    for file in directory.list(MARKS):
        try:
            found.append(opened(directory, json.loads(directory.read(file))["champions"]))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise RunError(
                f"{directory.display(file)} says which champions need the run, and cannot be read: {error}. Remove it "
                "if you know that none does."
            ) from error
    return found


def last_part(uri: str) -> str:
    """Return the last name in a path or URI."""
    return posixpath.basename(_taken(uri)[1])


def _taken(uri: str) -> tuple[str, str, str]:
    """Return (what stands before the path, the path, what follows it) of a URI or path."""
    if not is_uri(uri):
        return "", uri, ""
    address, mark, query = uri.partition("?")
    scheme, _, rest = address.partition("://")
    host, _, path = rest.partition("/")
    return f"{scheme}://{host}", f"/{path.rstrip('/')}", f"{mark}{query}"


def joined(uri: str, name: str) -> str:
    """Return a path or URI below another, or above it where the name begins so."""
    if not is_uri(uri):
        return os.path.normpath(os.path.join(os.path.expanduser(uri), name))
    before, path, after = _taken(uri)
    return f"{before}{posixpath.normpath(posixpath.join(path, name))}{after}"
