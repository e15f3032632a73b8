"""A note where rows that have an order are split at random: the scores would say little of the rows to come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tuning.basics.wording import amount
from tuning.definition.definition import Definition
from tuning.preprocessing.row_order import order_text, row_orders
from tuning.preprocessing.splitting import AUTO, RANDOM, STRATIFIED
from tuning.preprocessing.task import REGRESSION

if TYPE_CHECKING:
    import pandas as pd


def random_split_notes(definition: Definition, task: str, frames: Mapping[str, pd.DataFrame]) -> list[str]:
    """What the first rows of some customers say; nothing where the definition says how rows are split."""
    if definition.split.kind != AUTO or definition.target is None:
        return []
    found, looked_at = row_orders(frames.values(), definition.target, task, definition.dates)
    if not found:
        return []
    whose = "" if looked_at == 1 else f"for {len(found)} of the {amount(looked_at, 'customer')} looked at, "
    by = found[0].column or "COLUMN"
    return [
        f"{whose}{order_text(found)}, and rows are held out at random: where later rows are to be predicted from "
        f"earlier ones, the scores are too good. `split: {{type: time, column: {by}}}` holds out the latest; "
        f"`split: {{type: {RANDOM if task == REGRESSION else STRATIFIED}}}` says that this is meant."
    ]
