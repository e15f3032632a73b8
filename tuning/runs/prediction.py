"""New rows through the models of a run, as they would have been read and prepared for training."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuning.data.keys import check_columns, customer_id, key_table, row_keys, written_as_floats
from tuning.data.prepared import OwnCode
from tuning.data.reading import MISSING, read_frame
from tuning.definition.definition import Definition
from tuning.errors import CustomerError, DataError, DefinitionError, RunError
from tuning.preprocessing.columns import TEXT
from tuning.runs.plan_file import frozen_definition

if TYPE_CHECKING:
    import pandas as pd

    from tuning.models.customer_model import CustomerModel
    from tuning.runs.results import RunResult

PREDICTION = "prediction"


def predict_file(
    result: RunResult, path: str, customer: str | None = None, *, allow_pickle: bool = False
) -> tuple[pd.DataFrame, dict[str, str]]:
    """The rows of a file with predictions, and the customers that got none, with the reason.

    customer: whose model; None takes each row's own, by the key columns of the definition.
    """
    definition = frozen_definition(result.directory)
    by, code = definition.by, OwnCode(definition, result.directory)
    if customer is None and not by:
        raise DefinitionError("--customer is needed: the run's customers are files, so rows name no customer.")
    if customer is not None:
        model = result.model(customer, allow_pickle=allow_pickle)
        # What was text when the model was fitted stays text, even if these rows look like numbers.
        text = [column.name for column in model.columns if column.kind == TEXT]
        frame = _read(path, definition, (*text, *by))
        return _predicted(model, frame, _prepared(code, frame)), {}
    frame = _read(path, definition, by)
    check_columns(by, list(frame.columns))
    return _by_key(result, code, frame, allow_pickle)


def _by_key(
    result: RunResult, code: OwnCode, frame: pd.DataFrame, allow_pickle: bool
) -> tuple[pd.DataFrame, dict[str, str]]:
    import numpy as np
    import pandas as pd

    by = code.definition.by
    codes, keys = row_keys(key_table(frame, by), by)
    shorten = written_as_floats(keys)
    parts: list[pd.DataFrame] = []
    without: dict[str, str] = {}
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(keys) + 1))
    for number, key in enumerate(keys):
        rows = frame.iloc[order[bounds[number] : bounds[number + 1]]]
        name = customer_id(key, shorten)
        try:
            model = result.model(name, allow_pickle=allow_pickle)
            parts.append(_predicted(model, rows, _prepared(code, _as_fitted(rows, model))))
        except (RunError, CustomerError) as error:
            without[name] = str(error)
            parts.append(rows.assign(**{PREDICTION: None}))
    return pd.concat(parts).sort_index(kind="stable"), without


def _read(path: str, definition: Definition, text: tuple[str, ...]) -> pd.DataFrame:
    try:
        frame = read_frame(path, definition.csv_options, text=text)
    except CustomerError as error:
        raise DataError(str(error)) from error
    for name in text:
        if name in frame.columns and name not in definition.by:
            frame[name] = frame[name].where(~frame[name].isin([*MISSING, *definition.csv.na_values]))
    return frame


def _as_fitted(rows: pd.DataFrame, model: CustomerModel) -> pd.DataFrame:
    """Numbers as text where the model was fitted with text."""
    import pandas as pd

    wrong = {
        column.name: rows[column.name].map(lambda value: None if pd.isna(value) else str(value))
        for column in model.columns
        if column.kind == TEXT and column.name in rows and pd.api.types.is_integer_dtype(rows[column.name])
    }
    return rows.assign(**wrong) if wrong else rows


def _prepared(code: OwnCode, frame: pd.DataFrame) -> pd.DataFrame:
    """The rows as the model was trained on them; each has to stay, since each gets a prediction."""
    prepared = code.frame(frame)
    if len(prepared) != len(frame):
        raise CustomerError(
            f"prepare returned {len(prepared)} rows for {len(frame)}; to predict, it must keep every row, in order."
        )
    return prepared


def _predicted(model: CustomerModel, rows: pd.DataFrame, prepared: pd.DataFrame) -> pd.DataFrame:
    answer = rows.assign(**{PREDICTION: model.predict(prepared)})
    if not model.task.classification:
        return answer
    try:
        proba = model.predict_proba(prepared)
    except RunError:
        return answer
    return answer.assign(**{f"probability_{label}": proba[:, at] for at, label in enumerate(model.task.classes)})
