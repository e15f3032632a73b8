"""The date by which rows are split where nothing says how: at random, the scores would say little of rows to come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuning.basics.wording import amount
from tuning.definition.definition import Definition
from tuning.preprocessing.row_order import date_of, order_text, row_orders
from tuning.preprocessing.splitting import AUTO, RANDOM, STRATIFIED
from tuning.preprocessing.task import REGRESSION

if TYPE_CHECKING:
    import pandas as pd


def time_split(definition: Definition, task: str, frames: Mapping[str, pd.DataFrame]) -> tuple[str | None, list[str]]:
    """The column of a time split that the first rows of some customers call for, and a note on the order of rows.

    None where they have no order by a date, or the definition says how rows are split.
    """
    if definition.split.kind != AUTO or definition.target is None:
        return None, []
    found, looked_at = row_orders(frames.values(), definition.target, task, definition.dates)
    if not found:
        return None, []
    whose = "" if looked_at == 1 else f"for {len(found)} of the {amount(looked_at, 'customer')} looked at, "
    shuffled, column = RANDOM if task == REGRESSION else STRATIFIED, date_of(found)
    if column is not None:
        why = f"{whose}{order_text(found)}"
        return column, [
            f"split by time, the latest rows by {column!r} held out: {why}; `split: {shuffled}` if not meant."
        ]
    return None, [
        f"{whose}{order_text(found)}, and rows are held out at random: where later rows are to be predicted from "
        f"earlier ones, the scores are too good. `split: {{type: time, column: {found[0].column or 'COLUMN'}}}` holds "
        f"out the latest; `split: {shuffled}` says that this is meant."
    ]
