"""Models on disk: what a customer's winner consists of, and loading it through our own list of types.

A model is a folder: `model.json` (columns, task, classes, family, digests, what the encoding learned) and the
family's own file (`model.skops`, or `model.ubj` for XGBoost). Nothing is ever unpickled. The list of
trusted types is ours, never the file's (skops calls some of them untrusted on purpose because a crafted file
could crash the process: the digests in `model.json` and the run directory's owner-only mode guard that).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from tuning.errors import RunError
from tuning.models.base import FRAME, Family, Matrix, Model
from tuning.models.own import OwnFamily
from tuning.models.registry import family as find_family
from tuning.preprocessing.columns import Column, as_frame, to_raw
from tuning.preprocessing.encoding import Encoder
from tuning.preprocessing.task import Prediction, Task
from tuning.storage.run_directory import RunDirectory

FORMAT = 1
#: What `model.json` holds.
Description: TypeAlias = dict[str, Any]


class Writes(Protocol):
    """Where a model goes: a run directory, or what hands files on to one."""

    def write(self, name: str, data: bytes) -> None: ...


@dataclass
class CustomerModel:
    """A customer's winner: give it a frame with the same columns, it gives predictions.

    Attributes:
        customer: its id.
        family: the name of the model's family.
        task: regression or classification, with the classes.
        columns: what `predict` looks for in a frame.
        encoder: what the training rows taught the encoding.
        fitted: the model itself, as the family's `fit` returned it.
        own: the family, where it is one of the user's own models.
        example: a few rows of what it takes; None for a model saved before there were any.
    """

    customer: str
    family: str
    task: Task
    columns: tuple[Column, ...]
    encoder: Encoder
    fitted: Model
    own: Family | None = None
    example: pd.DataFrame | None = None

    @property
    def _family(self) -> Family:
        return self.own or find_family(self.family)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """(n,) numbers, or class labels as they stood in the data."""
        values = self._prediction(frame).values
        return np.asarray(self.task.classes)[values] if self.task.classification else values

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """(n, classes) probabilities; an error when the model has none."""
        proba = self._prediction(frame).proba
        if proba is None:
            raise RunError(f"the {self.family} model of customer {self.customer!r} has no probabilities.")
        return proba

    def _prediction(self, frame: pd.DataFrame) -> Prediction:
        raw = (as_frame if self.encoder.encoding == FRAME else to_raw)(frame, self.columns)
        X = self.encoder.transform(raw)
        rows = Matrix(X, np.zeros(len(X)), categorical=self.encoder.categorical(raw))
        return self._family.predict(self.fitted, rows, self.task)

    def save(self, directory: Writes, folder: str) -> str:
        """Write the folder's files; returns the SHA-256 of `model.json`."""
        name, content = self._family.save(self.fitted)
        files = {name: content}
        for file, data in files.items():
            directory.write(f"{folder}/{file}", data)
        description = {
            "format": FORMAT,
            "customer": self.customer,
            "family": self.family,
            "own": self.own is not None,
            "task": self.task.kind,
            "classes": list(self.task.classes),
            "columns": [[column.name, column.kind] for column in self.columns],
            "encoder": self.encoder.to_dict(),
            "example": _example_json(self.example),
            "model": name,
            "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
        }
        document = json.dumps(description, ensure_ascii=False, indent=1).encode()
        directory.write(f"{folder}/model.json", document)
        return hashlib.sha256(document).hexdigest()


def describe_model(directory: RunDirectory, folder: str, sha256: str | None = None) -> Description:
    """What `model.json` says about a saved model; its digest is checked first."""
    description = dict(json.loads(_read(directory, f"{folder}/model.json", sha256)))
    if description["format"] > FORMAT:
        raise RunError(f"{directory.display(folder)} has model format {description['format']}: upgrade tuning-service.")
    return description


def load_model(
    directory: RunDirectory, folder: str, sha256: str | None = None, *, allow_pickle: bool = False
) -> CustomerModel:
    """A saved model; every file's digest is checked before its content is looked at.

    allow_pickle: also one that was saved with cloudpickle, which runs the code in it.
    """
    description = describe_model(directory, folder, sha256)
    digests = description["sha256"]
    name = description["model"]
    own = own_family(description, allow_pickle) if description.get("own") else None
    family = own or find_family(description["family"])
    fitted = family.load(name, _read(directory, f"{folder}/{name}", digests[name]))
    return CustomerModel(
        customer=description["customer"],
        family=description["family"],
        task=Task(description["task"], tuple(description["classes"])),
        columns=tuple(Column(name, kind) for name, kind in description["columns"]),
        encoder=Encoder.from_dict(description["encoder"]),
        fitted=fitted,
        own=own,
        example=_example(description.get("example")),
    )


def own_family(description: Description, allow_pickle: bool) -> Family:
    """The family of a saved own model: able to load and predict, not to fit."""
    how = "frame" if description["encoder"]["encoding"] == FRAME else "encoded"
    return OwnFamily(description["family"], input=how, allow_pickle=allow_pickle)


def _read(directory: RunDirectory, name: str, sha256: str | None) -> bytes:
    try:
        content = directory.read(name)
    except FileNotFoundError as error:
        raise RunError(f"{directory.display(name)} is not there: the model was removed or never written.") from error
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise RunError(f"{directory.display(name)} is damaged: its SHA-256 is not the recorded one.")
    return content


def _example_json(frame: pd.DataFrame | None) -> Description | None:
    if frame is None:
        return None
    text = frame.to_json(orient="split", index=False, date_format="iso", default_handler=str, double_precision=15)
    return dict(json.loads(text))


def _example(rows: Description | None) -> pd.DataFrame | None:
    return None if rows is None else pd.DataFrame(rows["data"], columns=rows["columns"])
