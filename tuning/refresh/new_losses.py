"""What champion and challenger lose on rows that neither has learned from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.basics.columnar import Columnar
from tuning.basics.wording import raised
from tuning.champions.champion import Challenger, Champion
from tuning.champions.comparison import RowComparison
from tuning.champions.losses import MetricSoFar, RowLoss, block_means, row_loss
from tuning.champions.releases import Releases
from tuning.data.customers import Customer
from tuning.data.loading import OrderedRows
from tuning.data.new_rows import new_rows
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, TuningError
from tuning.evaluation.metrics import Metric
from tuning.models.customer_model import CustomerModel
from tuning.preprocessing.classes import read_classes
from tuning.preprocessing.roles import read_target
from tuning.preprocessing.row_hashes import row_hashes
from tuning.preprocessing.splitting import GROUP, TIME
from tuning.preprocessing.task import Prediction
from tuning.refresh.known_rows import hashes_of, new_positions
from tuning.runs.model_reader import ModelReader


@dataclass(frozen=True)
class SeenRows:
    """A customer's new rows, and what its champion says of them.

    where: which block each of them is of; None where each is its own. y: (n,) numbers or codes of classes.
    """

    frame: pd.DataFrame
    where: np.ndarray | None
    y: np.ndarray
    metric: Metric
    said: Prediction

    def losses(self) -> np.ndarray:
        """(blocks,) the champion's losses."""
        loss = row_loss(self.metric, probabilities=self.said.proba is not None)
        return block_means(loss.of(self.y, self.said), self.where)


@dataclass(frozen=True)
class NewRowsReader:
    """Reads the new rows of customers, and lets their models predict them.

    metric: the run's, by name. function: the user's own metric. customers: whose rows they are, as they are now.
    before, rows: tables of the rows of last time and of now. allow_code: as of `RunResult.model`.
    """

    definition: Definition
    metric: str
    releases: Releases
    customers: Sequence[Customer]
    before: pa.Table
    rows: pa.Table
    least_gain: float
    function: Callable[..., float] | None = None
    allow_code: bool = False

    @cached_property
    def _wanted(self) -> dict[str, np.ndarray]:
        """The hashes of each customer's new rows."""
        names = [each.id for each in self.customers]
        before, now = hashes_of(self.before, names), hashes_of(self.rows, names)
        return {name: now[name][new_positions(before[name], now[name])] for name in names}

    @cached_property
    def _found(self) -> OrderedRows | None:
        return new_rows(self.definition, Columnar.of(Customer, self.customers), self.before, self._wanted)

    def rows_of(self, customer: Customer) -> tuple[pd.DataFrame, np.ndarray | None]:
        """The new rows, and which block each of them is of; `CustomerError` where they cannot be read."""
        new = None if self._found is None else self._found.rows(customer.id)
        if new is None or len(new) != len(self._wanted[customer.id]):
            raise CustomerError("its rows are not those any more that were looked at; refresh again.")
        split = self.definition.split
        along = {GROUP: split.group, TIME: split.column}.get(split.kind)
        return new, None if along is None else row_hashes(new[[along]])

    def seen(self, champion: Champion, frame: pd.DataFrame, where: np.ndarray | None) -> SeenRows:
        """What a champion says of rows. It fails where that cannot be loaded, or does not fit their columns."""
        model = self._model(champion)
        said = model.prediction(frame)
        y = _encoded(frame[self.definition.target or ""], model)
        return SeenRows(frame, where, y, Metric(self.metric, model.task, self.function), said)

    def against(self, seen: SeenRows, challenger: Challenger) -> RowComparison:
        """A comparison with these rows. It fails where the challenger cannot predict them."""
        other = self._model(challenger).prediction(seen.frame)
        loss = row_loss(seen.metric, probabilities=seen.said.proba is not None and other.proba is not None)
        before = self.kept(challenger) or self._start(loss)
        mine, its = (block_means(loss.of(seen.y, each), seen.where) for each in (seen.said, other))
        after = before.after(mine, its)
        if before.metric is None:
            return after
        return replace(after, metric=before.metric.after(seen.metric, seen.y, seen.said, other))

    def kept(self, challenger: Challenger) -> RowComparison | None:
        """What was compared so far; with another `least_gain` evidence begins anew."""
        kept = None if challenger.comparison is None else RowComparison.of_json(challenger.comparison)
        return kept if kept is not None and kept.least_gain == self.least_gain else None

    def nothing_yet(self) -> RowComparison:
        """A comparison on no row."""
        return RowComparison.start(np.empty(0), least_gain=self.least_gain)

    def _start(self, loss: RowLoss) -> RowComparison:
        return RowComparison.start(np.empty(0), loss.bound, self.least_gain, None if loss.of_rows else MetricSoFar())

    def _model(self, of: Champion | Challenger) -> CustomerModel:
        assert of.model_path is not None
        directory = self.releases.run_directory(of.run)
        return ModelReader(directory).saved(of.model_path, of.model_sha256, self.allow_code)


def _encoded(values: pd.Series, model: CustomerModel) -> np.ndarray:
    """(n,) numbers, or codes of the model's classes; `CustomerError` for a class that it has never seen."""
    task = model.task
    values = read_target(values, task.kind)[0]
    if not task.classification:
        return values.to_numpy(dtype=np.float64)
    codes, labels = read_classes(values)
    places: Mapping[object, int] = {label: place for place, label in enumerate(task.classes)}
    unknown = [label for label in labels if label not in places]
    if unknown:
        raise CustomerError(f"the new rows have a class that the models do not know: {unknown[0]!r}.")
    return np.array([places[label] for label in labels], dtype=np.int64)[codes]


def said_of(error: BaseException) -> str:
    """An error in one line."""
    return str(error) if isinstance(error, TuningError) else raised(error)
