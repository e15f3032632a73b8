"""The state that a spread trial goes on from: a pickle, because it holds whatever a model or the user's objective is.

Unpickling runs code, so only what this run wrote itself is read: from a folder below the run directory, which is its
owner's only, and with the digest that stands before it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from typing import Any

from tuning.errors import StorageError
from tuning.storage.run_directory import RunDirectory

FILE = "state.pkl"
DIGEST = hashlib.sha256().digest_size


def write_state(folder: str, content: dict[str, Any]) -> None:
    """Put a state into a local folder, which becomes a checkpoint."""
    data = pickle.dumps(content)
    with open(os.path.join(folder, FILE), "wb") as stream:
        stream.write(hashlib.sha256(data).digest() + data)


def read_state(directory: RunDirectory, path: str) -> dict[str, Any] | None:
    """The state in a checkpoint; None when it is gone, damaged or not of this run: the trial starts again.

    path: of the checkpoint's folder, on the run directory's filesystem.
    """
    name = path.removeprefix(f"{directory.root}/")
    if name == path or not name.startswith("tune/"):
        return None
    try:
        content = directory.read(f"{name}/{FILE}")
    except (OSError, StorageError):
        return None
    digest, data = content[:DIGEST], content[DIGEST:]
    if hashlib.sha256(data).digest() != digest:
        return None
    found: dict[str, Any] = pickle.loads(data)  # noqa: S301  # see above
    return found
