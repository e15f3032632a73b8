"""The customers of a run in columns, as pictures of all of them take them: a result, or a table of Arrow or pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import pandas as pd

    from tuning.runs.results import RunResult

    CustomerRows: TypeAlias = RunResult | pa.Table | pd.DataFrame


def customer_table(customers: CustomerRows) -> pa.Table:
    """One row per customer; `TypeError` of what has none."""
    if isinstance(customers, pa.Table):
        return customers
    if callable(best := getattr(customers, "best_studies", None)):
        found = best()
        return found.append_column("metric", pa.repeat(customers.board().metric, len(found)))
    if not hasattr(customers, "columns"):
        raise TypeError(f"this picture is of a run's customers: give its result, not {customers!r:.40}.")
    return pa.Table.from_pandas(customers)


def shown_metric(table: pa.Table, given: str | None) -> str:
    """The metric of scores as users read it: as it is given, else that of the customers."""
    found = [given] if given is not None or "metric" not in table.column_names else table["metric"].unique().to_pylist()
    named = [each for each in found if each is not None]
    if not named:
        raise TypeError("name the metric of these scores, such as metric='rmse': the table has no column `metric`.")
    return str(named[0])


def numbers(table: pa.Table, column: str) -> np.ndarray:
    """A column with NaN where nothing is; nearly every other way from Arrow to numpy loads pandas."""
    return np.array(table[column].to_pylist(), dtype=float)


def ids_of(customers: pa.Table, chosen: np.ndarray) -> list[str | None]:
    """The ids of some of the customers; none where the table has no such column."""
    if "customer" not in customers.column_names:
        return []
    ids: list[str | None] = customers["customer"].filter(pa.array(chosen)).to_pylist()
    return ids
