"""Models on disk: what a customer's winner consists of, and loading it through our own list of types.

A model is a folder: `model.json` (columns, task, classes, family, digests, what the encoding learned) and the
family's own file (`model.skops`, or `model.ubj` for XGBoost); of an ensemble one file per member. Nothing is ever
unpickled. The list of trusted types is ours, never the file's (skops calls some of them untrusted on purpose because a
crafted file could crash the process: the digests in `model.json` and the run directory's owner-only mode guard that).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, overload

import numpy as np
import pandas as pd

from tuning.basics.wording import amount, natural_order
from tuning.errors import CustomerError, RunError
from tuning.models.base import Config, EncodedRows
from tuning.models.example_rows import example_json, read_example
from tuning.models.member import Member, read_member
from tuning.models.model_files import (
    FORMAT,
    Description,
    describe_model,
    place_of,
    read_checked,
)
from tuning.models.model_names import OfModel
from tuning.models.pooled import POOL, POOL_FORMS, PooledMember, SharedFile, read_pooled
from tuning.models.preparation import Preparation
from tuning.models.residuals import HIGH, LOW, PREDICTION, Residuals, check_interval
from tuning.notes import FileCode
from tuning.preprocessing.columns import RawColumns
from tuning.preprocessing.encoding import Encoder
from tuning.preprocessing.kinds import TEXT, Column
from tuning.preprocessing.shapes import FrameLike, to_frame
from tuning.preprocessing.task import Prediction, Task, average
from tuning.storage.run_directory import RunDirectory

ENSEMBLE = "ensemble"  # in place of a family's name
#: Which rows a model was fitted on.
ALL_ROWS, SEARCH_ROWS = "all", "search"


class Writes(Protocol):
    """Where a model goes: a run directory, or what hands files on to one."""

    def write(self, name: str, data: bytes) -> None: ...


@dataclass(repr=False)
class CustomerModel(OfModel):
    """A customer's model: give it a frame with the same columns, it gives predictions.

    scikit-learn's tools take it as a fitted estimator, such as `permutation_importance`. Like scikit-learn's own
    `FrozenEstimator` it stays as it is: `fit` does nothing, and a clone is the model itself.

    Attributes:
        customer: its id.
        task: regression or classification, with the classes.
        members: the winner alone, or with it those whose answers are averaged with its own, by weight; the winner is
            the first one.
        example: a few rows of what it takes; None for a model saved before there were any.
        preparation: what the user's `prepare` makes of rows before the columns are looked for; None without one.
        final_fit: which rows it was fitted on: "all", or "search" for those without the hold-out.
        residuals: of a regression, how far targets of unseen rows lay from what was said of them; None of classes, of a
            model saved before they were kept, and of one that no unseen row was left for.
        width: columns of the arrays that it takes; 0 of one that was made of columns with names of their own.
        size: of the files that it was loaded from, in bytes; 0 of one that was not loaded.
    """

    customer: str
    task: Task
    members: tuple[Member, ...]
    example: pd.DataFrame | None = None
    preparation: Preparation | None = None
    final_fit: str = SEARCH_ROWS
    residuals: Residuals | None = None
    width: int = 0
    size: int = field(default=0, compare=False)

    @property
    def family(self) -> str:
        """The name of the model's family; "ensemble" where there are several."""
        return family_of([member.family for member in self.members])

    @property
    def best_config(self) -> Config:
        """The winning configuration, with the number of trees, rounds or epochs that count."""
        return self.members[0].config

    @property
    def columns(self) -> tuple[Column, ...]:
        """What `predict` looks for in a frame; what one of the members takes as text is text."""
        found: dict[str, Column] = {}
        for column in (column for member in self.members for column in member.columns):
            if column.name not in found or column.kind == TEXT:
                found[column.name] = column
        return tuple(found.values())

    @property
    def text(self) -> list[str]:
        """The columns of what it takes that are text, even where new rows hold only digits."""
        if self.preparation is not None:
            return self.preparation.text
        return [column.name for column in self.columns if column.kind == TEXT]

    def pool_alone(self) -> CustomerModel:
        """Return the run's pool as this customer's model, without the customer's own members."""
        members = tuple(member for member in self.members if isinstance(member, PooledMember))
        if not members:
            raise RunError(f"the pool is no member of the model of customer {self.customer!r}. Leave `pool` out.")
        return replace(self, members=members, residuals=None)

    def __repr__(self) -> str:
        what = described_as([member.family for member in self.members])
        columns = amount(len(self.columns), "column")
        return f"<{what} model of customer {self.customer!r}: {self.task.kind} from {columns}>"

    @overload
    def predict(self, frame: FrameLike) -> np.ndarray: ...

    @overload
    def predict(self, frame: FrameLike, interval: float) -> pd.DataFrame: ...

    def predict(self, frame: FrameLike, interval: float | None = None) -> np.ndarray | pd.DataFrame:
        """Return (n,) numbers, or class labels as they stood in the data.

        frame: rows as they were before `prepare`. Columns that only the target is made of may be absent. Arrays,
        nested lists and sparse matrices are taken by a model of such, as `tuning.tune` makes it. interval: of a
        regression, the share of new rows whose target is to lie within an interval, such as 0.8: then a frame with the
        columns prediction, prediction_low and prediction_high comes back. `DefinitionError` for another number, and of
        classes; `RunError` of a model without `residuals`.
        """
        if interval is None:
            return self.labels(self.prediction(frame))
        check_interval(interval, self.task)
        found = self.prediction(frame)
        low, high = self.ends(found, interval)
        index = frame.index if isinstance(frame, pd.DataFrame) else None
        return pd.DataFrame({PREDICTION: found.values, LOW: low, HIGH: high}, index=index)

    def known_ends(self, prediction: Prediction, interval: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the same among the rows of many customers: NaN without `residuals`."""
        if self.residuals is not None:
            return self.ends(prediction, interval)
        missing = np.full(len(prediction.values), np.nan)
        return missing, missing

    def ends(self, prediction: Prediction, interval: float) -> tuple[np.ndarray, np.ndarray]:
        """Return (low, high) of a prediction's intervals; `RunError` without `residuals`."""
        who = f"customer {self.customer!r}" if self.customer else "a customer that is not known"
        if self.residuals is None and self.family == POOL:
            raise RunError(f"for {who} the run's pool answers, without intervals. Leave `interval` out.")
        if self.residuals is None:
            raise RunError(
                f"the model of customer {self.customer!r} has no intervals: all "
                "rows were fitted without a search. Train it again by a search, or leave out `interval`."
            )
        return self.residuals.ends(prediction.values, interval)

    def predict_proba(self, frame: FrameLike) -> np.ndarray:
        """Return (n, classes) probabilities, in the order of `classes_`; an error when the model has none."""
        proba = self.prediction(frame).proba
        if proba is None:
            raise RunError(f"the {self.family} model of customer {self.customer!r} has no probabilities.")
        return proba[:, self.task.in_order]

    @property
    def classes_(self) -> np.ndarray:
        """(classes,) the labels, sorted; `AttributeError` of a regression, as scikit-learn has it."""
        if not self.task.classification:
            raise AttributeError(f"{self!r} has no classes_.")
        return np.asarray(self.task.classes)[self.task.in_order]

    def score(self, frame: FrameLike, y: Sequence[object] | np.ndarray, sample_weight: object = None) -> float:
        """As scikit-learn's estimators: the accuracy of classes, R² of numbers."""
        from sklearn.metrics import accuracy_score, r2_score

        metric = accuracy_score if self.task.classification else r2_score
        return float(metric(y, self.predict(frame), sample_weight=sample_weight))

    def labels(self, prediction: Prediction) -> np.ndarray:
        """Return (n,) what `predict` gives back of a prediction."""
        return np.asarray(self.task.classes)[prediction.values] if self.task.classification else prediction.values

    def prediction(self, frame: FrameLike) -> Prediction:
        """All that the model says about rows; `CustomerError` says what is wrong with them."""
        frame = self._named(frame)
        if not len(frame):
            raise CustomerError(FileCode.NO_ROWS())
        if self.preparation is not None:
            frame = self.preparation.rows(frame, [column.name for column in self.columns])
        raw: dict[object, RawColumns] = {}
        encoded: dict[int, EncodedRows] = {}
        answers, unseen = list[Prediction](), dict[str, np.ndarray]()
        for member in self.members:
            if member.takes not in raw:
                raw[member.takes] = member.raw(frame)
            if id(member.encoder) not in encoded:
                encoded[id(member.encoder)] = member.encoded(raw[member.takes])
                unseen |= member.unseen(raw[member.takes])
            answers.append(member.prediction(encoded[id(member.encoder)], self.task))
        mean = average(answers, [member.weight for member in self.members], self.task)
        return replace(mean, unseen=unseen)

    def _named(self, rows: FrameLike) -> pd.DataFrame:
        """Return the rows with columns by name: those of an array have them only where the model was made of one."""
        frame = to_frame(rows)
        if hasattr(rows, "columns") or frame.shape[1] == self.width:
            return frame
        names = sorted((column.name for column in self.columns), key=natural_order)
        raise CustomerError(FileCode.NO_FRAME(columns=names, width=self.width, shape=[*frame.shape]))

    def save(self, directory: Writes, folder: str) -> Saved:
        """Write the folder's files; an encoder that several members share is written once."""
        own = [member for member in self.members if not isinstance(member, PooledMember)]
        saved = [member.kind.save(member.fitted) for member in own]
        alone = len(self.members) == 1
        files = {name if alone else f"{place}-{name}": content for place, (name, content) in enumerate(saved, start=1)}
        shared = {name: file for member in self.members for name, file in _shared_files(member)}
        encoders = list({id(member.encoder): member.encoder for member in own}.values())
        places, names = {id(encoder): place for place, encoder in enumerate(encoders)}, iter(files)
        members = [
            member.described()
            if isinstance(member, PooledMember)
            else {**member.described(), "encoder": places[id(member.encoder)], "model": next(names)}
            for member in self.members
        ]
        digests = {file: hashlib.sha256(data).hexdigest() for file, data in files.items()}
        description: dict[str, object] = {
            "format": FORMAT,
            "customer": self.customer,
            "task": self.task.kind,
            "classes": list(self.task.classes),
            "family": self.family,
            "columns": [[column.name, column.kind] for column in self.columns],
            "encoders": [encoder.to_dict() for encoder in encoders],
            "members": members,
            "example": example_json(self.example),
            "prepare": None if self.preparation is None else self.preparation.to_json(),
            "final_fit": self.final_fit,
            "width": self.width,
            "residuals": None if self.residuals is None else self.residuals.to_json(),
            "sha256": {**digests, **{name: file.sha256 for name, file in shared.items()}},
            "shared": {name: file.path for name, file in shared.items()},
        }
        for file, data in files.items():
            directory.write(f"{folder}/{file}", data)
        document = json.dumps(description, ensure_ascii=False, sort_keys=True).encode()
        directory.write(f"{folder}/model.json", document)
        return Saved(folder, hashlib.sha256(document).hexdigest(), sum(map(len, [document, *files.values()])))


@dataclass(frozen=True)
class Saved:
    """A model on disk.

    Attributes:
        path: of its folder in the run directory.
        sha256: of `model.json`, which holds the digests of the other files.
        size: of all its files, in bytes.
    """

    path: str
    sha256: str
    size: int


def family_of(families: Sequence[str]) -> str:
    """Return what a model of members of these families is: their family, the pool alone, or an ensemble."""
    if all(family in POOL_FORMS for family in families):
        return POOL
    return families[0] if len(families) == 1 else ENSEMBLE


def described_as(families: Sequence[str]) -> str:
    """What a model is called in tables: its family, or how many members an ensemble has and of which families."""
    if (family := family_of(families)) != ENSEMBLE:
        return family
    return f"{ENSEMBLE} of {len(families)} ({', '.join(dict.fromkeys(families))})"


def _shared_files(member: Member) -> Iterator[tuple[str, SharedFile]]:
    if isinstance(member, PooledMember) and member.pool is not None:
        yield from member.pool.files.items()


def load_model(
    directory: RunDirectory, folder: str, sha256: str | None = None, *, allow_code: bool = False
) -> CustomerModel:
    """Return a saved model; every file's digest is checked before its content is looked at.

    allow_code: also one that was saved with cloudpickle, which runs the code in it.
    """
    description = describe_model(directory, folder, sha256)
    digests, sizes = description["sha256"], list[int]()

    def read(name: str) -> bytes:
        content = read_checked(directory, place_of(directory, folder, name, description), digests[name])
        sizes.append(len(content))
        return content

    def member(values: Description) -> Member:
        if "level" in values:
            return read_pooled(values, read)
        return read_member(values, encoders[values["encoder"]], read, allow_code)

    encoders = [Encoder.from_dict(values) for values in description["encoders"]]
    example, members = read_example(description["example"]), tuple(map(member, description["members"]))
    return CustomerModel(
        customer=description["customer"],
        task=Task(description["task"], tuple(description["classes"])),
        members=members,
        example=example,
        preparation=Preparation.from_json(description["prepare"], example),
        final_fit=description["final_fit"],
        residuals=Residuals.from_json(description["residuals"]),
        width=description["width"],
        size=sum(sizes),
    )
