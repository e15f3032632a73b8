"""A column of one value and gaps says something: whether a row has the value. So it is no constant."""

from __future__ import annotations

import datetime
import decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_shapes import write_frame
from prepared_rows import prepare_data

from tuning import tune
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.registry import file_formats, file_source
from tuning.errors import CustomerError
from tuning.notes import DataCode
from tuning.preprocessing.columns import read_columns, to_raw
from tuning.preprocessing.kinds import PRESENCE

FLAG = np.random.default_rng(0).random(200) < 0.4


def gaps(value: object, dtype: Any = object) -> pd.Series:
    return pd.Series([value if there else None for there in FLAG], dtype=dtype)


VALUES = {
    "text": gaps("X"),
    "text type": gaps("X", "string"),
    "category": gaps("X", "category"),
    "text of a number": gaps("1"),
    "number": gaps(1.0, float),
    "zero": gaps(0.0, float),
    "infinite gaps": pd.Series(np.where(FLAG, 1.0, np.inf)),
    "whole number": gaps(3, "Int64"),
    "decimal": gaps(decimal.Decimal("1.5")),
    "boolean": gaps(True),
    "boolean type": gaps(False, "boolean"),
    "date": gaps(datetime.date(2024, 1, 2)),
    "datetime": gaps(pd.Timestamp("2024-01-02"), "datetime64[ns]"),
    "datetime with a zone": gaps(pd.Timestamp("2024-01-02", tz="UTC"), "datetime64[us, UTC]"),
    "text of a date": gaps("2024-01-31"),
    "text of a date that may be two": gaps("01/02/2024"),
    "duration": gaps(pd.Timedelta(hours=1), "timedelta64[s]"),
    "bytes": gaps(b"\xff"),
}
WRITTEN = ("text", "number", "whole number", "boolean", "datetime")


@pytest.mark.parametrize("name", VALUES)
def test_one_value_and_gaps_are_present_or_absent_in_old_and_new_rows(name: str) -> None:
    frame = pd.DataFrame({"c": VALUES[name]})
    found = read_columns(frame, ["c"], np.arange(len(frame)))
    assert ([column.kind for column in found.columns], found.left_out) == ([PRESENCE], ())
    assert found.raw.numbers[:, 0].tolist() == FLAG.tolist()
    for rows in (frame[FLAG], frame[~FLAG], frame[FLAG].infer_objects(), frame[~FLAG].astype(float, errors="ignore")):
        assert to_raw(rows, found.columns).numbers[:, 0].tolist() == FLAG[rows.index].tolist()
    assert to_raw(pd.DataFrame({"c": [5, 6]}), found.columns).numbers[:, 0].tolist() == [1, 1]  # is there


@pytest.mark.parametrize("name", VALUES)
def test_one_value_without_gaps_where_the_search_looks_is_constant(name: str) -> None:
    frame = pd.DataFrame({"c": VALUES[name]})
    for rows in (FLAG, ~FLAG):
        found = read_columns(frame, ["c"], np.flatnonzero(rows))
        assert (found.columns, found.left_out) == ((), (DataCode.EMPTY_OR_CONSTANT("c"),))


@pytest.mark.parametrize("format", ["frame", *(each.title for each in file_formats())])
@pytest.mark.parametrize("chosen", [None, ["c"]])
def test_every_format_keeps_such_a_column(format: str, chosen: list[str] | None, tmp_path: Path) -> None:
    frame = pd.DataFrame({name: VALUES[name] for name in WRITTEN} | {"y": np.where(FLAG, 1.0, 2.0) + np.arange(200)})
    for each in (each for each in file_formats() if each.title == format):
        write_frame(frame, path := str(tmp_path / f"t{each.suffixes[0]}"))
        frame = file_source(path, {}).read()
    for name in WRITTEN:
        rows = FrameSource(frame.rename(columns={name: "c"})[["c", "y"]]).read()
        data = prepare_data(rows, target="y", task="regression", seed=0, features=chosen)
        assert (data.columns[0].kind, data.raw.numbers[:, 0].tolist(), data.notes) == (PRESENCE, FLAG.tolist(), ())


@pytest.mark.long
def test_a_model_learns_from_it_and_predicts_rows_with_and_without_it(tmp_path: Path) -> None:
    X = pd.DataFrame({"a": np.random.default_rng(1).normal(size=200), "c": VALUES["text"]})
    y = (X["a"] + 5 * FLAG).rename("y")
    model = tune(
        X, y, models=["ridge"], trials=1, metric="rmse", mlflow=False, in_process=True, run_dir=tmp_path / "run"
    ).model()
    new = pd.DataFrame({"a": [0.0, 0.0, 0.0, 0.0], "c": [None, "X", 7, "other"]})
    assert model.predict(new).round(1).tolist() == [0, 5, 5, 5]
    assert model.predict(new[:1]).round(1).tolist() == [0]
    with pytest.raises(CustomerError, match="columns are missing: 'c'"):
        model.predict(new[["a"]])
