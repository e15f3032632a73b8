"""New rows through the models of a run, as they would have been read and prepared for training."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa

from tuning.basics.wording import option, raised
from tuning.data.cells import ReadCsvOptions, unmarked
from tuning.data.column_types import concatenated, to_frame, with_text
from tuning.data.keys import Key, check_columns, customer_id, key_table, row_keys
from tuning.data.registry import file_source
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError, DefinitionError, TuningError, UntrustedCodeError
from tuning.models.pooled import POOL
from tuning.models.residuals import HIGH, LOW, PREDICTION, check_interval
from tuning.preprocessing.columns import text_names
from tuning.runs.plan_file import frozen_definition

if TYPE_CHECKING:
    from tuning.models.customer_model import CustomerModel
    from tuning.storage.run_directory import RunDirectory

NewRows: TypeAlias = "pd.DataFrame | str | Path"
#: A customer's model, and columns that its answers get beside it; a `TuningError` says why there is none.
ModelOf: TypeAlias = "Callable[[object], tuple[CustomerModel, Mapping[str, object]]]"


class SavedModels(Protocol):
    """Where a run's models are found: its `RunResult`."""

    directory: RunDirectory

    def __len__(self) -> int: ...

    def model(self, customer: object = None, *, allow_code: bool = False) -> CustomerModel: ...


@dataclass(frozen=True)
class PredictedRows:
    """The rows of a file with predictions.

    Attributes:
        rows: as they came, with columns of predictions and, for classes, probabilities behind.
        column: name of the predictions, one that the rows do not use.
        without: the customers that got none, and why.
        held_back: rows for which a model went beyond its bounds, and was held there.
        pooled: the customers without a model of their own, whose rows the run's pool predicts.
        unseen: by column the rows with a text that no row had on which their model was fitted.
        without_interval: predictions without the interval that was asked for: the pool's, and those of models of which
            no error on unseen rows is known.
    """

    rows: pd.DataFrame
    column: str
    without: dict[str, str]
    held_back: int = 0
    pooled: tuple[str, ...] = ()
    unseen: Mapping[str, int] = field(default_factory=dict)
    without_interval: int = 0

    @property
    def remarks(self) -> dict[str, object]:
        """What is to be said beside the rows, as plain values."""
        return {
            "without": self.without,
            "held_back": self.held_back,
            "without_interval": self.without_interval,
            "pooled": [*self.pooled],
            "unseen": dict(self.unseen),
        }


def predict_rows(
    result: SavedModels,
    rows: NewRows,
    customer: object = None,
    *,
    allow_code: bool = False,
    interval: float | None = None,
) -> PredictedRows:
    """New rows with predictions.

    rows: a frame, whose index is kept, or a file. customer: whose model; None takes each row's own, by the key columns
    of the definition, or the model of the run's only customer.
    interval: as of `CustomerModel.predict`.
    """
    return predict_by(
        lambda name: (result.model(name, allow_code=allow_code), {}),
        frozen_definition(result.directory),
        rows,
        customer,
        several=len(result) > 1,
        interval=interval,
    )


def predict_by(
    model_of: ModelOf,
    definition: Definition,
    rows: NewRows,
    customer: object = None,
    *,
    several: bool = True,
    interval: float | None = None,
) -> PredictedRows:
    """The same by models of any kind.

    definition: how rows are read, and the key columns. several: whether there are more customers than one.
    """
    check_interval(interval)
    if not isinstance(rows, pd.DataFrame | str | Path):
        raise DefinitionError(f"new rows are a pandas DataFrame or a file; this is {rows!r:.50}.")
    if customer is None and not definition.by and several:
        raise DefinitionError(
            f"{option('customer')} is needed: the run's customers are files, so rows name no customer."
        )
    whole = None if customer is None and definition.by else model_of(customer)
    new = _FrameRows(rows, definition) if isinstance(rows, pd.DataFrame) else _FileRows(str(rows), definition)
    answers, without = _Answers(new.names, interval), dict[str, str]()
    if whole is not None:
        model, more = whole
        check_interval(interval, model.task)
        shown = new.shown(model.text)
        answers.add(model, new.of(model), more, alone=True)
    else:
        check_columns(definition.by, new.names)
        shown = new.shown(())
        without = _by_key(model_of, new, answers)
    column = free_name(PREDICTION, new.names)
    found = shown.join(pd.concat(answers.parts)) if answers.parts else shown.assign(**{column: None})
    pooled, unseen = tuple(answers.pooled), answers.unseen
    return PredictedRows(found.set_axis(new.index), column, without, answers.held_back, pooled, unseen, answers.endless)


def free_name(name: str, taken: Iterable[str]) -> str:
    """The name, with a number where it is taken."""
    known = set(taken)
    number = 1
    while (found := name if number == 1 else f"{name}_{number}") in known:
        number += 1
    return found


class _FrameRows:
    """The rows of a frame, whose types are its own."""

    def __init__(self, frame: pd.DataFrame, definition: Definition) -> None:
        self._frame, self._by, self.index = text_names(frame).reset_index(drop=True), definition.by, frame.index
        self.names = list(self._frame.columns)

    def keys(self) -> tuple[np.ndarray, list[Key]]:
        """(code of each row, keys), as of `row_keys`."""
        return row_keys(key_table(self._frame, self._by), self._by)

    def of(self, model: CustomerModel, rows: np.ndarray | None = None) -> pd.DataFrame:
        """Some of the rows, all by default."""
        return self._frame if rows is None else self._frame.iloc[rows]

    def shown(self, text: Sequence[str]) -> pd.DataFrame:
        """All rows as they are handed back, numbered."""
        return self._frame


class _FileRows:
    """The rows of a file; what the cells of a CSV are is decided for each customer, by its model and its own rows."""

    def __init__(self, path: str, definition: Definition) -> None:
        self._csv = definition.csv_options
        self._by = definition.by
        source = file_source(path, self._csv)
        try:
            present = [name for name in self._by if name in source.columns()]
            pieces = list(source.pieces(present))
        except CustomerError as error:
            raise DataError(str(error)) from error
        self._table = concatenated([piece.rows for piece in pieces])
        self._keys = concatenated([piece.keys for piece in pieces])
        self.names = list(to_frame(self._table[:0], self._csv).columns)
        self.index = pd.RangeIndex(len(self._table))

    def keys(self) -> tuple[np.ndarray, list[Key]]:
        """(code of each row, keys), as of `row_keys`."""
        return row_keys(self._keys, self._by)

    def of(self, model: CustomerModel, rows: np.ndarray | None = None) -> pd.DataFrame:
        """Some of the rows, all by default, for the model."""
        frame = rows_for(self._table if rows is None else self._table.take(rows), model, self._csv)
        return frame.set_axis(range(len(frame)) if rows is None else rows)

    def shown(self, text: Sequence[str]) -> pd.DataFrame:
        """All rows as they are handed back, numbered. text: columns whose cells stay as they are written."""
        return to_frame(unmarked(self._table, text), self._csv).reset_index(drop=True)


def rows_for(table: pa.Table, model: CustomerModel, csv: ReadCsvOptions) -> pd.DataFrame:
    """A customer's rows as its model was fitted on such: what was text then is text again. csv: of the definition."""
    table = unmarked(table, model.text)
    whole = [field.name for field in table.schema if pa.types.is_integer(field.type) and field.name in model.text]
    return to_frame(with_text(table, whole), csv)


class _Answers:
    """What models add to rows: columns, part by part, and how often they had to guess.

    taken: the rows' own columns. interval: as of `predict_rows`.
    """

    def __init__(self, taken: Sequence[str], interval: float | None) -> None:
        self._taken, self.interval = taken, interval
        self.parts: list[pd.DataFrame] = []
        self.held_back = 0
        self.endless = 0
        self.pooled: list[str] = []
        self.unseen: Counter[str] = Counter()

    def add(self, model: CustomerModel, rows: pd.DataFrame, more: Mapping[str, object], *, alone: bool = False) -> None:
        """Predict rows. more: columns with the same value in each of them. alone: there are no other customers."""
        found = model.prediction(rows)
        columns: dict[str, object] = {free_name(PREDICTION, self._taken): model.labels(found)}
        if found.proba is not None:
            for position, label in enumerate(model.task.classes):
                columns[free_name(f"probability_{label}", self._taken)] = found.proba[:, position]
        elif self.interval is not None and not model.task.classification:
            low, high = (model.ends if alone else model.known_ends)(found, self.interval)
            columns |= {free_name(LOW, self._taken): low, free_name(HIGH, self._taken): high}
            self.endless += int(np.isnan(low).sum())
        columns |= {free_name(name, self._taken): value for name, value in more.items()}
        self.parts.append(pd.DataFrame(columns, index=rows.index))
        self.held_back += found.held_back
        self.pooled += [model.customer] * (model.family == POOL)
        self.unseen.update({name: int(new.sum()) for name, new in (found.unseen or {}).items()})


def _by_key(model_of: ModelOf, rows: _FrameRows | _FileRows, answers: _Answers) -> dict[str, str]:
    """Who has none of the answers, and why."""
    codes, keys = rows.keys()
    without: dict[str, str] = {}
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    for number, key in enumerate(keys):
        name = customer_id(key)
        try:
            model, more = model_of(name)
            answers.add(model, rows.of(model, order[bounds[number] : bounds[number + 1]]), more)
        except UntrustedCodeError:
            raise  # one word allows it for all
        except TuningError as error:
            without[name] = str(error)
        except (Exception, SystemExit) as error:  # of the user's own model
            without[name] = raised(error)
        else:
            check_interval(answers.interval, model.task)  # classes of one are classes of all
    return without
