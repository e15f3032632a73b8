"""The date by which rows are split where nothing says how: at random, the scores would say little of rows to come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuning.basics.wording import amount
from tuning.definition.definition import Definition
from tuning.notes import Note, PlanCode
from tuning.preprocessing.row_order import date_of, order_text, row_orders
from tuning.preprocessing.splitting import AUTO, RANDOM, STRATIFIED
from tuning.preprocessing.task import REGRESSION

if TYPE_CHECKING:
    import pandas as pd


def time_split(definition: Definition, task: str, frames: Mapping[str, pd.DataFrame]) -> tuple[str | None, list[Note]]:
    """Return the column of a time split that the first rows of some customers call for, and a note on their order.

    None where they have no order by a date, or the definition says how rows are split.
    """
    if definition.split.kind != AUTO or definition.target is None:
        return None, []
    found, looked_at = row_orders(frames.values(), definition.target, task, definition.dates)
    if not found:
        return None, []
    whose = "" if looked_at == 1 else f"for {len(found)} of the {amount(looked_at, 'customer')} looked at, "
    shuffled, column = RANDOM if task == REGRESSION else STRATIFIED, date_of(found)
    why = f"{whose}{order_text(found)}"
    if column is not None:
        return column, [PlanCode.SPLIT_BY_TIME(column, why=why, shuffled=shuffled)]
    return None, [PlanCode.ROWS_IN_ORDER(found[0].column or "COLUMN", why=why, shuffled=shuffled)]
