"""The files of a saved model: what `model.json` says of it, and each file by its digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from tuning.basics.documents import Json
from tuning.errors import OtherFormatError, RunError
from tuning.storage import packs
from tuning.storage.run_directory import RunDirectory

FORMAT = 6  # of a saved model's files; a change that older readers would misread makes it one higher
#: What `model.json` holds.
Description: TypeAlias = Json


def describe_model(directory: RunDirectory, folder: str, sha256: str | None = None) -> Description:
    """Return what `model.json` says about a saved model; its digest is checked first."""
    description: Description = json.loads(read_checked(directory, f"{folder}/model.json", sha256))
    if description["format"] != FORMAT:
        raise OtherFormatError(
            f"{directory.display(folder)} was written by another version of this program, in format "
            f"{description['format']} (this version reads format {FORMAT}): load it with that version, or train again."
        )
    return description


@dataclass(frozen=True)
class SavedFile:
    """A file of a saved model, with the digest that the run has recorded."""

    name: str
    content: bytes
    sha256: str


def saved_files(directory: RunDirectory, folder: str, sha256: str | None) -> Iterator[SavedFile]:
    """All files of a saved model, `model.json` first; each one's digest is checked."""
    document = read_checked(directory, f"{folder}/model.json", sha256)
    yield SavedFile("model.json", document, hashlib.sha256(document).hexdigest())
    description: Description = json.loads(document)
    for name, digest in description["sha256"].items():
        yield SavedFile(name, read_checked(directory, place_of(directory, folder, name, description), digest), digest)


def place_of(directory: RunDirectory, folder: str, name: str, description: Description) -> str:
    """Where a file of a saved model is: what customers share lies once in the run, and in the folder of a model that
    was taken out of it."""
    shared = description["shared"].get(name)
    return shared if shared is not None and directory.exists(shared) else f"{folder}/{name}"


def inputs(description: Description) -> dict[str, bool]:
    """Return the columns of what a saved model takes, and whether each must be there."""
    if description["prepare"] is None:
        return {name: True for name, _ in description["columns"]}
    return {name: False for name, _ in description["prepare"]["inputs"]}  # `Preparation` knows which it needs


def parts(description: Description) -> list[tuple[str, str]]:
    """Return (family, file) of each fitted model that a saved one consists of."""
    return [(values.get("booster", values["family"]), values["model"]) for values in description["members"]]


def read_checked(directory: RunDirectory, name: str, sha256: str | None) -> bytes:
    """Return a file of a run; `RunError` where it is not there, or not what was recorded."""
    try:
        content = packs.read(directory, name)
    except FileNotFoundError as error:
        raise RunError(f"{directory.display(name)} is not there: the model was removed or never written.") from error
    except OSError as error:
        raise RunError(f"{directory.display(name)} cannot be read: {error}") from error
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise RunError(f"{directory.display(name)} is damaged: its SHA-256 is not the recorded one.")
    return content
