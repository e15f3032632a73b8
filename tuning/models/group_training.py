"""What several processes are given to train, and what the trial's own process makes of what they send.

The trial's own process encodes the rows and writes them as shards. After each step it gets the models, and predicts
with the trees that are new, while the actors train the next step.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol, Self

from tuning.models.base import Config, EncodedRows, Grown
from tuning.models.boosters import load_booster, plain_matrix, prediction_of
from tuning.preprocessing.task import Prediction, Task

if TYPE_CHECKING:
    from xgboost import Booster

TREES = ("gbtree", None)  # boosters whose trees never change once they are there


@dataclass(frozen=True)
class TrainingJob:
    """One model that is trained: of one fold, or the final one.

    Attributes:
        shards: names of Parquet files of the training rows in the run directory, one per actor.
        weighted: whether they have weights.
        types: XGBoost's type of each feature.
        params: of XGBoost, without its threads.
        rounds: of the whole model.
        every: rounds of a step; the last one may be shorter.
        model: to go on from, as XGBoost's UBJSON.
    """

    shards: Sequence[str]
    weighted: bool
    types: Sequence[str]
    params: Config
    rounds: int
    every: int
    model: bytes | None = None


class GroupTraining(Protocol):
    """A group that trains models of equally many rounds; an iterator of all of them after each step, as UBJSON."""

    def __iter__(self) -> Self: ...

    def __next__(self) -> tuple[bytes, ...]: ...

    def close(self) -> None:
        """End everything that it has started, whatever it is doing."""


def grown_folds(
    training: GroupTraining,
    folds: Sequence[tuple[EncodedRows, EncodedRows]],
    task: Task,
    states: Sequence[bytes | None],
    config: Config,
) -> Generator[tuple[Grown, ...], None, None]:
    """Yield the steps of a trial that a worker group trains. folds, states: as of `SteppedFamily.grow_folds`."""
    steady = config.get("booster") in TREES
    try:
        unseen = [
            _Unseen(valid, task, load_booster(state) if state else None, steady)
            for (_, valid), state in zip(folds, states, strict=True)
        ]
        for models in training:
            yield tuple(
                (each.prediction(load_booster(model)), partial(bytearray, model))
                for each, model in zip(unseen, models, strict=True)
            )
    finally:
        training.close()


class _Unseen:
    """What a growing model says of rows it has not seen: each step adds what its new trees say.

    steady: whether the trees before stay as they are.
    """

    def __init__(self, rows: EncodedRows, task: Task, model: Booster | None, steady: bool) -> None:
        self.task, self.steady, self.done = task, steady, 0
        self.rows = plain_matrix(rows)
        if model is not None:
            self._add(model)

    def prediction(self, model: Booster) -> Prediction:
        """Return what the model after a step says."""
        new = (self.done, model.num_boosted_rounds()) if self.steady else (0, 0)
        raw = model.predict(self.rows, iteration_range=new)
        self._add(model)
        return prediction_of(raw, self.task)

    def _add(self, model: Booster) -> None:
        if self.steady:
            rounds = model.num_boosted_rounds()
            margin = model.predict(self.rows, output_margin=True, iteration_range=(self.done, rounds))
            self.rows.set_base_margin(margin)
            self.done = rounds
