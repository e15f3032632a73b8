"""The state that a spread trial goes on from: a pickle, because it holds whatever a model or the user's objective is.

Unpickling runs code, so only what this run wrote itself is read: from a folder below the run directory, which is its
owner's only, and with the digest that stands before it.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from dataclasses import dataclass, fields

from tuning.errors import StorageError
from tuning.storage.run_directory import RunDirectory

FILE = "state.pkl"
DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True)
class SavedState:
    """From which a trial goes on. state: of its training. seconds, fit_seconds: wall and CPU time until then."""

    state: object
    seconds: float
    fit_seconds: float


def write_state(folder: str, content: SavedState) -> None:
    """Put a state into a local folder, which becomes a checkpoint."""
    data = pickle.dumps({field.name: getattr(content, field.name) for field in fields(content)})
    with open(os.path.join(folder, FILE), "wb") as stream:
        stream.write(hashlib.sha256(data).digest() + data)


def read_state(directory: RunDirectory, path: str) -> SavedState | None:
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
    return SavedState(**pickle.loads(data))  # noqa: S301  # see above
