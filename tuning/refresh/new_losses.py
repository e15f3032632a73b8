"""What champion and challenger lose on rows that neither has learned from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from tuning.basics.timing import hang_seconds
from tuning.basics.wording import raised
from tuning.champions.champion import Challenger, Champion
from tuning.champions.comparison import RowComparison
from tuning.champions.losses import MetricSoFar, RowLoss, block_means, row_loss
from tuning.champions.releases import Releases
from tuning.data.child_process import ChildProcess
from tuning.errors import CustomerError, NotLookedAtError, TuningError, UntrustedCodeError
from tuning.evaluation.metrics import Metric
from tuning.models.customer_model import CustomerModel
from tuning.preprocessing.classes import read_classes
from tuning.preprocessing.roles import read_target
from tuning.preprocessing.task import Prediction
from tuning.refresh.unseen_rows import UnseenRows
from tuning.runs.model_reader import ModelReader

ATTEMPTS = 2  # of models that have ended their process, which may have been no fault of theirs


@dataclass(frozen=True)
class NewLosses:
    """What came of a customer's new rows.

    Attributes:
        champion: (blocks,) its losses; None where it cannot serve.
        comparison: with these rows; None where no challenger was compared.
        fault: why the champion cannot serve. unread: why the rows tell nothing of any model, as where they have no
            target. note: why the challenger was not compared, or, beside a fault, cannot serve either.
    """

    champion: np.ndarray | None = None
    comparison: RowComparison | None = None
    fault: str = ""
    unread: str = ""
    note: str = ""


@dataclass(frozen=True)
class ComparedModels:
    """Lets the models of a release predict new rows.

    name, storage: of the releases. target: the column. metric: the run's, by name. function: the user's own metric.
    allow_code: as of `RunResult.model`.
    """

    name: str
    storage: str
    target: str
    metric: str
    least_gain: float
    function: Callable[..., float] | None = None
    allow_code: bool = False

    def losses(self, champion: Champion, challenger: Challenger | None, rows: UnseenRows) -> NewLosses:
        """What both lose on rows. `UntrustedCodeError` where a model's own code is not allowed: one word allows it for
        all."""
        try:
            model = self._model(champion)
            said = model.prediction(rows.frame)
        except UntrustedCodeError:
            raise
        except (Exception, SystemExit) as error:  # of the user's own code, too
            return NewLosses(fault=error_text(error), note=self._why_not(challenger, rows))
        try:
            if self.target not in rows.frame.columns:
                raise CustomerError(f"the target {self.target!r} is not among their columns.")
            y = _encoded(rows.frame[self.target], model)
            metric = Metric(self.metric, model.task, self.function)
            loss = row_loss(metric, probabilities=said.proba is not None)
            found = NewLosses(block_means(loss.of(y, said), rows.where))
        except (Exception, SystemExit) as error:  # whatever is in a file, and of the user's own metric
            return NewLosses(unread=error_text(error))
        if challenger is None:
            return found
        try:
            return replace(found, comparison=self._compared(challenger, rows, y, metric, said))
        except UntrustedCodeError:
            raise
        except (Exception, SystemExit) as error:
            return replace(found, note=error_text(error))

    def _why_not(self, challenger: Challenger | None, rows: UnseenRows) -> str:
        """Why a challenger cannot serve either; empty where it can, or where there is none."""
        if challenger is None:
            return ""
        try:
            self._model(challenger).prediction(rows.frame)
        except UntrustedCodeError:
            raise
        except (Exception, SystemExit) as error:
            return error_text(error)
        return ""

    def _compared(
        self, challenger: Challenger, rows: UnseenRows, y: np.ndarray, metric: Metric, said: Prediction
    ) -> RowComparison:
        other = self._model(challenger).prediction(rows.frame)
        loss = row_loss(metric, probabilities=said.proba is not None and other.proba is not None)
        before = self.kept(challenger) or self._start(loss)
        mine, its = (block_means(loss.of(y, each), rows.where) for each in (said, other))
        after = before.after(mine, its)
        return after if before.metric is None else replace(after, metric=before.metric.after(metric, y, said, other))

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
        directory = Releases(self.name, self.storage).run_directory(of.run)
        return ModelReader(directory).saved(of.model_path, of.model_sha256, self.allow_code)


def losses_in(
    child: ChildProcess | None,
    models: ComparedModels,
    champion: Champion,
    challenger: Challenger | None,
    rows: UnseenRows,
) -> NewLosses:
    """What both lose, found out in a child process: what a model does to its process is the end of that one.

    child: None for this process.
    """
    if child is None:
        return models.losses(champion, challenger, rows)
    seconds = hang_seconds(len(rows.frame), of_objective=False)
    ended = ""
    for _ in range(ATTEMPTS):
        try:
            return child.call("its model", seconds, models.losses, champion, challenger, rows)
        except NotLookedAtError as error:
            ended = str(error)
    if challenger is None:
        return NewLosses(fault=ended)
    alone = losses_in(child, models, champion, None, rows)
    return alone if alone.fault else replace(alone, note=ended)


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


def error_text(error: BaseException) -> str:
    """An error in one line."""
    return str(error) if isinstance(error, TuningError) else raised(error)
