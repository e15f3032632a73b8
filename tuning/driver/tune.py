"""`tune(X, y)`: one data set, for those who come from `fit(X, y)`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import numpy as np
import pandas as pd

from tuning.basics.wording import amount
from tuning.definition.given import signature
from tuning.definition.keywords import DefinitionKeys
from tuning.driver.runner import TuneRunner
from tuning.errors import DataError, DefinitionError
from tuning.preprocessing.columns import array_frame

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tuning.runs.results import RunResult

TARGET = "target"
IN_A_TABLE = "use TuneRunner(data=frame, target='column').run(), which also takes background=True"


def tune(
    X: pd.DataFrame | ArrayLike,
    y: pd.Series | ArrayLike,
    *,
    run_dir: str | Path | None = None,
    progress: bool | str = True,
    in_process: bool = False,
    **fields: Unpack[DefinitionKeys],
) -> RunResult:
    """Train the best model for one data set; `tune(X, y).model()` predicts.

    X: (n, columns) a DataFrame, or an array whose columns are then called x0, x1, …; its model takes arrays, too,
    unless it leaves a column out. y: (n,) what is to be predicted.
    run_dir, progress, in_process: as of `TuneRunner.run`. fields: keys of the definition, such as `trials=40`;
    `TuneRunner?` says what each means. `DataError` where X and y do not go together, `DefinitionError` where a key says
    what X and y do.

    >>> from tuning import tune                                       # doctest: +SKIP
    >>> model = tune(X, y, metric="roc_auc", trials=40).model()
    >>> model.predict(new_rows)
    """
    for key in sorted({"data", "target", "manifest"} & fields.keys()):
        raise DefinitionError(f"{key}: X and y say what to learn from; for a table with a target, {IN_A_TABLE}.")
    rows = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else _named(np.asarray(X))
    values = np.asarray(y) if not isinstance(y, pd.Series) else y.array
    if isinstance(y, str):
        raise DataError(f"y: {y!r} is one text, and y is one value per row of X; for a column of X, {IN_A_TABLE}.")
    if np.ndim(values) != 1 or len(values) != len(rows):
        raise DataError(
            f"y has the shape {np.shape(values)}, and X has {amount(len(rows), 'row')}: y is one value per row of X."
        )
    name = str(y.name) if isinstance(y, pd.Series) and y.name is not None else TARGET
    if name in rows.columns:
        raise DataError(f"X has a column {name!r}, as y is called: leave it out of X, or give y another name.")
    called = fields.get("name", "tune")
    data = {called: pd.DataFrame({**rows, name: values}, index=rows.index)}
    runner = TuneRunner({"name": called, **fields, "data": data, "target": name})
    return runner.run(run_dir, progress=progress, in_process=in_process)


tune.__signature__ = signature(tune)  # type: ignore[attr-defined]  # by which Tab knows the keys


def _named(values: np.ndarray) -> pd.DataFrame:
    if values.ndim != 2:
        raise DataError(f"X has the shape {values.shape}: rows and columns are expected.")
    return array_frame(values)
