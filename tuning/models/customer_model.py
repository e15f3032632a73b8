"""Models on disk: what a customer's winner consists of, and loading it through our own list of types.

A model is a folder: `model.json` (columns, task, classes, family, digests, what the encoding learned) and the
family's own file (`model.skops`, or `model.ubj` for XGBoost). Nothing is ever unpickled. The list of
trusted types is ours, never the file's (skops calls some of them untrusted on purpose because a crafted file
could crash the process: the digests in `model.json` and the run directory's owner-only mode guard that).
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np
import pandas as pd

from tuning.errors import CustomerError, RunError
from tuning.models.base import FRAME, Configuration, Family, Matrix, Model
from tuning.models.own import OwnFamily
from tuning.models.preparation import Preparation
from tuning.models.registry import family as find_family
from tuning.preprocessing.columns import as_frame, text_names, to_raw
from tuning.preprocessing.dates import ISO
from tuning.preprocessing.encoding import Encoder
from tuning.preprocessing.kinds import TEXT, Column
from tuning.preprocessing.task import Prediction, Task
from tuning.storage.run_directory import RunDirectory

FORMAT = 1
#: Which rows a model was fitted on.
ALL_ROWS, SEARCH_ROWS = "all", "search"
#: What `model.json` holds.
Description: TypeAlias = dict[str, Any]


class Writes(Protocol):
    """Where a model goes: a run directory, or what hands files on to one."""

    def write(self, name: str, data: bytes) -> None: ...


@dataclass(repr=False)
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
        preparation: what the user's `prepare` makes of rows before the columns are looked for; None without one.
        best_config: the winning configuration, with the number of trees, rounds or epochs that count; empty for a model
            saved before it was kept.
        final_fit: which rows it was fitted on: "all", or "search" for those without the hold-out.
    """

    customer: str
    family: str
    task: Task
    columns: tuple[Column, ...]
    encoder: Encoder
    fitted: Model
    own: Family | None = None
    example: pd.DataFrame | None = None
    preparation: Preparation | None = None
    best_config: Configuration = field(default_factory=dict)
    final_fit: str = SEARCH_ROWS

    @property
    def text(self) -> list[str]:
        """The columns of what it takes that are text, even where new rows hold only digits."""
        if self.preparation is not None:
            return self.preparation.text
        return [column.name for column in self.columns if column.kind == TEXT]

    def __repr__(self) -> str:
        return f"<{self.family} model of customer {self.customer!r}: {self.task.kind} from {len(self.columns)} columns>"

    @property
    def _family(self) -> Family:
        return self.own or find_family(self.family)

    def predict(self, frame: pd.DataFrame) -> np.ndarray:
        """(n,) numbers, or class labels as they stood in the data.

        frame: rows as they were before `prepare`. Columns that only the target is made of may be absent.
        """
        return self.labels(self.prediction(frame))

    def predict_proba(self, frame: pd.DataFrame) -> np.ndarray:
        """(n, classes) probabilities; an error when the model has none."""
        proba = self.prediction(frame).proba
        if proba is None:
            raise RunError(f"the {self.family} model of customer {self.customer!r} has no probabilities.")
        return proba

    def labels(self, prediction: Prediction) -> np.ndarray:
        """(n,) what `predict` gives back of a prediction."""
        return np.asarray(self.task.classes)[prediction.values] if self.task.classification else prediction.values

    def prediction(self, frame: pd.DataFrame) -> Prediction:
        """All that the model says about rows; `CustomerError` says what is wrong with them."""
        if not isinstance(frame, pd.DataFrame):
            raise CustomerError(f"new rows are a pandas DataFrame, with the columns by name; this is {frame!r:.50}.")
        if not len(frame):
            raise CustomerError("there are no rows to predict.")
        frame = text_names(frame)
        if self.preparation is not None:
            frame = self.preparation.rows(frame, [column.name for column in self.columns])
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
            "dates": {column.name: column.format for column in self.columns if column.format != ISO},
            "encoder": self.encoder.to_dict(),
            "example": _example_json(self.example),
            "prepare": _preparation_json(self.preparation),
            "best_config": dict(self.best_config),
            "final_fit": self.final_fit,
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
    example, dates = _example(description.get("example")), description.get("dates", {})
    own = own_family(description, allow_pickle) if description.get("own") else None
    family = own or find_family(description["family"])
    fitted = family.load(name, _read(directory, f"{folder}/{name}", digests[name]))
    return CustomerModel(
        customer=description["customer"],
        family=description["family"],
        task=Task(description["task"], tuple(description["classes"])),
        columns=tuple(Column(name, kind, dates.get(name, ISO)) for name, kind in description["columns"]),
        encoder=Encoder.from_dict(description["encoder"]),
        fitted=fitted,
        own=own,
        example=example,
        preparation=_preparation(description.get("prepare"), example),
        best_config=description.get("best_config", {}),
        final_fit=description.get("final_fit", SEARCH_ROWS),
    )


def inputs(description: Description) -> dict[str, bool]:
    """The columns of what a saved model takes, and whether each must be there."""
    if description.get("prepare") is None:
        return {name: True for name, _ in description["columns"]}
    return {name: False for name, _ in description["prepare"]["inputs"]}  # `Preparation` knows which it needs


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
    plain = frame.assign(**{name: frame[name].map(_readable) for name in frame.columns if frame[name].dtype == object})
    text = plain.to_json(orient="split", index=False, date_format="iso", default_handler=str, double_precision=15)
    return dict(json.loads(text))


def _readable(value: object) -> object:
    return str(value) if isinstance(value, bytes) else value


def _example(rows: Description | None) -> pd.DataFrame | None:
    return None if rows is None else pd.DataFrame(rows["data"], columns=rows["columns"])


def _preparation_json(given: Preparation | None) -> Description | None:
    if given is None:
        return None
    return {"name": given.name, "source": given.source, "inputs": [list(pair) for pair in given.inputs]}


def _preparation(given: Description | None, example: pd.DataFrame | None) -> Preparation | None:
    if given is None or example is None:
        return None
    return Preparation(given["name"], given["source"], tuple((name, kind) for name, kind in given["inputs"]), example)
