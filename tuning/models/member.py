"""One fitted model of a customer's: alone all there is, or one of several whose answers are averaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from tuning.basics.documents import Json
from tuning.errors import RunError
from tuning.models.base import FRAME, Config, EncodedRows, Family, Model
from tuning.models.bounds import Bounds
from tuning.models.own import OwnFamily
from tuning.models.registry import family as find_family
from tuning.preprocessing.columns import RawColumns, as_frame, to_raw
from tuning.preprocessing.dates import ISO
from tuning.preprocessing.encoding import Encoder
from tuning.preprocessing.kinds import TEXT, Column
from tuning.preprocessing.task import Prediction, Task


@dataclass(frozen=True, repr=False)
class Member:
    """A fitted model with what its rows go through.

    Attributes:
        family: the name of its family.
        columns: what it looks at.
        encoder: what the training rows taught the encoding; members may share one.
        fitted: the model itself, as the family's `fit` returned it.
        own: the family, where it is one of the user's own models.
        config: with the number of trees, rounds or epochs that count.
        weight: of its answers among those of all members.
        bounds: between which numbers it answers; None where it may answer anything.
    """

    family: str
    columns: tuple[Column, ...]
    encoder: Encoder
    fitted: Model
    own: Family | None = None
    config: Config = field(default_factory=dict)
    weight: float = 1.0
    bounds: Bounds | None = None

    @property
    def kind(self) -> Family:
        """Its family."""
        return self.own or find_family(self.family)

    @property
    def takes(self) -> tuple[bool, tuple[Column, ...]]:
        """Whether it takes columns as they are, and which: members that take the same share what is made of rows."""
        return self.encoder.encoding == FRAME, self.columns

    def raw(self, frame: pd.DataFrame) -> RawColumns:
        """Return rows before its encoding; `CustomerError` says what is wrong with them."""
        return (as_frame if self.encoder.encoding == FRAME else to_raw)(frame, self.columns)

    def unseen(self, raw: RawColumns) -> dict[str, np.ndarray]:
        """As of `Prediction`."""
        names = [column.name for column in self.columns if column.kind == TEXT]
        return {names[position]: rows for position, rows in self.encoder.unseen(raw).items()}

    def encoded(self, raw: RawColumns) -> EncodedRows:
        """Return rows as its model takes them."""
        X = self.encoder.transform(raw)
        return EncodedRows(X, np.zeros(len(X)), categorical=self.encoder.categorical(raw))

    def prediction(self, rows: EncodedRows, task: Task) -> Prediction:
        """Its answer for encoded rows."""
        found = self.kind.predict(self.fitted, rows, task)
        return found if self.bounds is None else self.bounds.hold(found)

    def described(self) -> dict[str, object]:
        """All but the encoder and the model itself, as plain values."""
        return {
            "family": self.family,
            "own": self.own is not None,
            "columns": [[column.name, column.kind] for column in self.columns],
            "dates": {column.name: column.format for column in self.columns if column.format != ISO},
            "best_config": dict(self.config),
            "weight": self.weight,
            "bounds": None if self.bounds is None else self.bounds.to_json(),
        }


def read_member(values: Json, encoder: Encoder, read: Callable[[str], bytes], allow_code: bool) -> Member:
    """Return a member from what `Member.described` said, and from its file.

    values: with the name of the file as "model". read: gives the content of a file. allow_code: also a model that was
    saved with cloudpickle, which runs the code in it.
    """
    name, dates = values["model"], values["dates"]
    own: Family | None = None
    if values["own"]:  # able to load and predict, not to fit
        how = "frame" if encoder.encoding == FRAME else "encoded"
        own = OwnFamily(values["family"], input=how, allow_code=allow_code)
    family = own or find_family(values["family"])
    if reason := family.missing():
        raise RunError(f"the model cannot be loaded: {reason}")
    return Member(
        family=values["family"],
        columns=tuple(Column(column, kind, dates.get(column, ISO)) for column, kind in values["columns"]),
        encoder=encoder,
        fitted=family.load(name.rpartition("-")[2], read(name)),
        own=own,
        config=values["best_config"],
        weight=values["weight"],
        bounds=Bounds.from_json(values["bounds"]),
    )
