"""`tune(X, y)`: one data set, for those who come from `fit(X, y)`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pandas as pd

from tuning.definition.given import signature
from tuning.definition.keywords import DefinitionKeys
from tuning.driver.runner import TuneRunner
from tuning.errors import DataError, DefinitionError
from tuning.preprocessing.shapes import ColumnLike, FrameLike, paired

if TYPE_CHECKING:
    from tuning.runs.results import RunResult

IN_A_TABLE = "use TuneRunner(data=frame, target='column').run(), which also takes background=True"


def tune(
    X: FrameLike,
    y: ColumnLike,
    *,
    run_dir: str | Path | None = None,
    progress: bool | str = True,
    in_process: bool = False,
    **fields: Unpack[DefinitionKeys],
) -> RunResult:
    """Train the best model for one data set; `tune(X, y).model()` predicts.

    X: (n, columns) in any shape that scikit-learn takes, as new rows for the model then are. Columns of an array are
    called x0, x1, …, those of levels "a, x", those of one name "a_1", "a_2". y: (n,) or (n, 1) what is to be predicted;
    a Series and a DataFrame X are paired by the labels of their rows, all else by position.
    run_dir, progress, in_process: as of `TuneRunner.run`. fields: keys of the definition, such as `trials=40`;
    `TuneRunner?` says what each means. `DataError` where X and y do not go together, `DefinitionError` where a key says
    what X and y do.

    >>> from tuning import tune                                       # doctest: +SKIP
    >>> model = tune(X, y, metric="roc_auc", trials=40).model()
    >>> model.predict(new_rows)
    """
    for key in sorted({"data", "target", "manifest"} & fields.keys()):
        raise DefinitionError(f"{key}: X and y say what to learn from; for a table with a target, {IN_A_TABLE}.")
    if isinstance(y, str):
        raise DataError(f"y: {y!r} is one text, and y is one value per row of X; for a column of X, {IN_A_TABLE}.")
    rows, values = paired(X, y)
    called = fields.get("name", "tune")
    data = {called: pd.concat([rows, values], axis=1)}
    runner = TuneRunner({"name": called, **fields, "data": data, "target": values.name})
    return runner.run(run_dir, progress=progress, in_process=in_process)


tune.__signature__ = signature(tune)  # type: ignore[attr-defined]  # by which Tab knows the keys
