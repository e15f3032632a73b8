"""The shapes of X and y that scikit-learn takes, as frames in which the names of columns are different texts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np
import pandas as pd

from tuning.basics.wording import amount, encodable, raised
from tuning.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix

FrameLike: TypeAlias = "pd.DataFrame | ArrayLike | spmatrix | sparray"
ColumnLike: TypeAlias = "pd.Series | pd.DataFrame | pd.Index | ArrayLike"


def column_names(labels: Iterable[object]) -> list[str]:
    """Return the names of columns: a label as text, one of several levels ("a", "x") as "a, x" without empty levels.

    An empty or missing label is "unnamed". Each of several columns of one name gets its number: "a_1", "a_2".
    """
    levels = [label if isinstance(label, tuple) else (label,) for label in labels]
    texts = [[encodable(str(level)) for level in each if not np.any(pd.isna(level))] for each in levels]
    names = [", ".join(filter(str.strip, each)) or "unnamed" for each in texts]
    while len(times := Counter(names)) < len(names):
        number: defaultdict[str, count[int]] = defaultdict(lambda: count(1))
        names = [f"{name}_{next(number[name])}" if times[name] > 1 else name for name in names]
    return names


def text_names(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the frame with `column_names`; the frame itself where it has them."""
    labels = frame.columns
    plain = type(labels) is pd.Index and labels.is_unique
    if plain and all(isinstance(label, str) and label.strip() and encodable(label) == label for label in labels):
        return frame
    return frame.set_axis(pd.Index(column_names(labels)), axis=1)


def to_frame(rows: object) -> pd.DataFrame:
    """Return rows as a frame with `column_names`, those of an array x0, x1, …; `DataError` says what is no rows."""
    rows = rows.to_pandas() if hasattr(rows, "to_pandas") else rows
    if isinstance(rows, pd.DataFrame):
        return text_names(rows)
    values = cast("np.ndarray", rows) if hasattr(rows, "tocsc") else _array("X", rows)
    if len(values.shape) != 2 or values.dtype.names:
        series = "X.to_frame() for one column, X.to_frame().T for one row"
        array = "np.reshape(X, (-1, 1)) for one column, np.reshape(X, (1, -1)) for one row"
        plain = values.shape and not values.dtype.names
        way = series if isinstance(rows, pd.Series) else array if plain else "pd.DataFrame(X)"
        raise DataError(f"X has the shape {values.shape}: rows and columns are expected, such as {way}.")
    names = [f"x{number}" for number in range(values.shape[1])]
    if hasattr(values, "tocsc"):
        return pd.DataFrame.sparse.from_spmatrix(values, columns=names)
    return pd.DataFrame(values, columns=names).infer_objects()


def array_width(names: Sequence[str]) -> int:
    """Return how many columns an array has that became a frame with these among its columns; 0 where none did."""
    numbered = [name for name in names if name[:1] == "x" and name[1:].isdecimal()]
    return len(numbered) if numbered == [f"x{number}" for number in range(len(numbered))] else 0


def paired(X: object, y: object) -> tuple[pd.DataFrame, pd.Series]:
    """Return X as a frame and the target of each row, without an index; `DataError` where they do not go together.

    A DataFrame and a Series are paired by label, all else by position. The target of a column's name is called "… (y)".
    """
    rows, target = to_frame(X), _one_column(y)
    if len(target) != len(rows):
        count = f"y has {amount(len(target), 'value')}, and X has {amount(len(rows), 'row')}"
        raise DataError(f"{count}: y is one value per row of X.")
    if isinstance(X, pd.DataFrame) and isinstance(y, pd.Series | pd.DataFrame) and not y.index.equals(X.index):
        unique = X.index.is_unique and y.index.is_unique
        places = y.index.get_indexer(X.index) if unique else np.array([-1])
        if (places < 0).any():
            lost = f"{X.index[places < 0].tolist()[0]!r} is in X alone" if unique else "a label is there more than once"
            raise DataError(
                f"X and y have different indexes, which do not say which row is which: {lost}. Give both the same "
                "index, or y.to_numpy(), which pairs them by position."
            )
        target = target.iloc[places]
    name = "target" if target.name is None else column_names([target.name])[0]
    while name in rows:
        name = f"{name} (y)"
    return rows.reset_index(drop=True), target.reset_index(drop=True).rename(name)


def _one_column(y: object) -> pd.Series:
    if isinstance(y, pd.Series | pd.Index | pd.api.extensions.ExtensionArray):
        return pd.Series(y)
    table = y if isinstance(y, pd.DataFrame) else _array("y", y)
    if not table.shape or table.shape[1:] not in ((), (1,)):
        raise DataError(f"y has the shape {table.shape}: y is one value per row of X; search for each column alone.")
    return pd.Series(table.iloc[:, 0] if isinstance(table, pd.DataFrame) else table.reshape(-1)).infer_objects()


def _array(what: str, given: object) -> np.ndarray:
    """Return an array of what is given, in which numbers and texts of a list stay what they are."""
    given = given.toarray() if hasattr(given, "toarray") else given
    if isinstance(given, np.ma.MaskedArray):  # pandas takes what is masked as missing
        return given
    try:
        return np.asarray(given, dtype=object if isinstance(given, list | tuple) else None)
    except Exception as error:  # of a type that somebody else has made
        raise DataError(f"{what} is no array: {raised(error)}.") from error
