"""What a model says of a customer's rows, or why it says nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.data.cells import ReadCsvOptions, marked
from tuning.data.column_types import to_frame, with_text
from tuning.errors import CustomerError, IntervalError, RunError, TuningError, UntrustedCodeError, reason_of
from tuning.models.pooled import POOL
from tuning.models.residuals import HIGH, LOW, check_interval
from tuning.notes import FileCode, Note
from tuning.runs.batch.models import NONE, ModelAnswer

if TYPE_CHECKING:
    from tuning.models.customer_model import CustomerModel


@dataclass(frozen=True)
class AnsweredRows:
    """What came of a customer's rows.

    Attributes:
        answer: what has answered, as the column `answer` says it.
        labels: the predictions; None where there are none.
        extra_columns: the values of further columns by name: probabilities of classes, ends of intervals.
        reason: why there are none; None where there are.
        held_back: rows for which the model went beyond its bounds, and was held there.
        unseen: by column the rows with a text that no row had on which the model was fitted.
        loaded: models that were loaded for it.
        load_seconds, predict_seconds: how long that took, and the predictions.
    """

    answer: str = NONE
    labels: pa.Array | None = None
    extra_columns: dict[str, np.ndarray] = field(default_factory=dict)
    reason: Note | None = None
    held_back: int = 0
    unseen: dict[str, int] = field(default_factory=dict)
    loaded: int = 0
    load_seconds: float = 0.0
    predict_seconds: float = 0.0


@dataclass(kw_only=True)
class AnswerCounts:
    """What came of the rows of many customers.

    Attributes:
        predicted: rows with a prediction.
        without: the customers that got none, and why.
        held_back: rows for which a model went beyond its bounds, and was held there.
        without_interval: predictions without the interval that was asked for: the pool's, and those of models of which
            no error on unseen rows is known.
        pooled: the customers without a model of their own, whose rows the run's pool predicts.
        unseen: by column the rows with a text that no row had on which their model was fitted.
    """

    predicted: int = 0
    without: dict[str, Note] = field(default_factory=dict)
    held_back: int = 0
    without_interval: int = 0
    pooled: dict[str, None] = field(default_factory=dict)
    unseen: Counter[str] = field(default_factory=Counter)

    def add(self, customer: str, answered: AnsweredRows) -> None:
        """What came of some rows of a customer."""
        if answered.labels is None:
            assert answered.reason is not None
            self.without[customer] = answered.reason
            return
        self.predicted += len(answered.labels)
        self.held_back += answered.held_back
        self.without_interval += int(np.isnan(answered.extra_columns.get(LOW, 0)).sum())
        self.pooled |= {customer: None} if answered.answer == POOL else {}
        self.unseen.update(answered.unseen)

    @property
    def remarks(self) -> dict[str, object]:
        """What is said of the rows, as plain values."""
        return {
            "without": {customer: str(why) for customer, why in self.without.items()},
            "held_back": self.held_back,
            "without_interval": self.without_interval,
            "pooled": [*self.pooled],
            "unseen": dict(self.unseen),
        }


def answered(
    model_of: Callable[[], ModelAnswer],
    rows_of: Callable[[CustomerModel], pd.DataFrame | None],
    interval: float | None,
) -> AnsweredRows:
    """What a customer's model says of rows, whatever is wrong with either.

    What would be wrong of all customers alike is raised: `UntrustedCodeError`, `IntervalError`.
    """
    start = time.perf_counter()
    try:
        answer = model_of()
        loaded = time.perf_counter()
        found = predicted(answer, rows_of(answer.model), interval)
    except (UntrustedCodeError, IntervalError):
        raise
    except TuningError as error:
        return AnsweredRows(reason=reason_of(error))
    except (Exception, SystemExit) as error:  # of the user's own model
        return AnsweredRows(reason=reason_of(error))
    return replace(found, load_seconds=loaded - start, predict_seconds=time.perf_counter() - loaded)


def predicted(
    answer: ModelAnswer, rows: pd.DataFrame | None, interval: float | None, *, alone: bool = False
) -> AnsweredRows:
    """What a model says of rows; every error is raised. alone: a model without intervals is an error, too."""
    model = answer.model
    check_interval(interval, model.task)
    if rows is None:
        raise RunError("the model has no example rows.")
    found = model.prediction(rows)
    if len(found.values) != len(rows):
        raise CustomerError(FileCode.OTHER_PREDICTIONS(predictions=len(found.values), rows=len(rows)))
    if model.task.classification:
        labels = label_array(model.task.classes).take(pa.array(found.values))
        chances = () if found.proba is None else zip(model.task.classes, found.proba.T, strict=True)
        extra_columns = {f"probability_{label}": values for label, values in chances}
    else:
        labels = pa.array(found.values, pa.float64(), from_pandas=True)
        ends = model.ends if alone else model.known_ends
        extra_columns = {} if interval is None else dict(zip((LOW, HIGH), ends(found, interval), strict=True))
    unseen = {name: int(new.sum()) for name, new in (found.unseen or {}).items()}
    return AnsweredRows(answer.answer, labels, extra_columns, held_back=found.held_back, unseen=unseen)


def rows_for(rows: pa.Table | pd.DataFrame, model: CustomerModel, csv: ReadCsvOptions) -> pd.DataFrame:
    """A customer's rows as its model was fitted on such: what was text then is text again. csv: of the definition."""
    if isinstance(rows, pd.DataFrame):
        return rows
    table = marked(rows, model.text, {})
    whole = [field.name for field in table.schema if pa.types.is_integer(field.type) and field.name in model.text]
    return to_frame(with_text(table, whole), csv)


def label_array(labels: Sequence[object]) -> pa.Array:
    """Class labels as they are, where these are of one type; else as text."""
    try:
        return pa.array([getattr(label, "item", lambda label=label: label)() for label in labels])
    except pa.ArrowException:
        return pa.array([str(label) for label in labels], pa.string())
