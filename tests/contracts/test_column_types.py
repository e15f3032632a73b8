"""A column of objects of whatever type says of new rows what it said of those that a model has learned from."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tuning import RunResult, TuneRunner


def objects(*values: Any) -> Callable[[np.ndarray], Any]:
    """Rows of three groups as objects, one for each group."""
    return lambda groups: np.array([*values, None], dtype=object)[groups]


#: Each makes the numbers 0, 1, 2 of three groups into a column of which a file has another type.
COLUMNS: dict[str, Callable[[np.ndarray], Any]] = {
    "bytes": objects(b"a", b"b", b"c"),
    "bytes with gaps": objects(b"a", None, b"c"),
    "bytes of another alphabet": objects("é".encode(), "я".encode(), "東".encode()),
    "bytes and text": objects(b"a", "b", "c"),
    "categories of bytes": lambda groups: pd.Categorical(objects(b"a", b"b", b"c")(groups)),
    "Arrow's categories": lambda groups: (
        pd.Series(["a", "b", "c"]).astype(pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string())))[groups].array
    ),
    "a number, text and a fraction": objects(1, "a", 2.5),
    "truth values and text": objects(True, "a", False),
    "a date and text": objects(datetime.date(2024, 1, 1), "a", "b"),
    "types": objects(int, float, str),
    "fractions": objects(Fraction(1, 7), Fraction(3, 7), Fraction(6, 7)),
    "decimals": objects(Decimal("0.1"), Decimal("0.5"), Decimal(2)),
    "whole numbers beyond all types": objects(2**70, 2**71, 2**72),
    "dates": objects(*(datetime.date(2024, month, 1) for month in (1, 6, 12))),
    "times": objects(*map(datetime.time, (1, 7, 12))),
    "moments of a zone": objects(*(datetime.datetime(2024, month, 1, tzinfo=datetime.UTC) for month in (1, 6, 12))),
    "periods": lambda groups: pd.PeriodIndex(["2024-01", "2024-06", "2024-12"], freq="M")[groups],
    "intervals": lambda groups: pd.interval_range(0, 3)[groups],
    "intervals of a cut": lambda groups: pd.cut(groups, 3),
    "categories of numbers": pd.Categorical,
    "categories of intervals": lambda groups: pd.Categorical(pd.interval_range(0, 3)[groups]),
    "sparse text": lambda groups: pd.arrays.SparseArray(objects("a", "b", "c")(groups)),
    "UUIDs": objects(*map(UUID, ("1" * 32, "2" * 32, "3" * 32))),
}
GROUPS = np.random.default_rng(22).integers(3, size=60)
TARGETS = np.array([0.0, 3.0, 8.0])  # of three groups


@pytest.fixture(scope="module")
def of_columns(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    frames = {name: pd.DataFrame({"c": make(GROUPS), "wanted": TARGETS[GROUPS]}) for name, make in COLUMNS.items()}
    runner = TuneRunner(
        data=frames, target="wanted", search_space="knn", metric="rmse", trials=1, mlflow=False, report=False,
        split={"folds": 2, "type": "random"},
    )  # fmt: skip
    return runner.run(tmp_path_factory.mktemp("columns") / "run", in_process=True, progress=False)


@pytest.mark.long
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_says_of_new_rows_what_it_said_of_others(name: str, of_columns: RunResult) -> None:
    rows = pd.DataFrame({"c": COLUMNS[name](GROUPS)})
    for said in (of_columns.model(name).predict(rows), of_columns.predict(rows, name)["prediction"].to_numpy()):
        assert np.abs(said[:, None] - TARGETS).argmin(axis=1).tolist() == GROUPS.tolist()
