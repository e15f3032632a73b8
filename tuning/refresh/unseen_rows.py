"""Which rows of a customer are new to its models, and what is odd about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.columnar import Columnar
from tuning.basics.wording import amount, name_list, value_text
from tuning.data.customers import Customer
from tuning.data.loading import Loader, OrderedRows
from tuning.data.new_rows import new_rows
from tuning.data.partition import partition
from tuning.data.row_digests import learned_columns
from tuning.definition.definition import Definition
from tuning.errors import CustomerError
from tuning.preprocessing.dates import ISO, date_format, parse_dates
from tuning.preprocessing.row_hashes import row_hashes
from tuning.preprocessing.splitting import GROUP, TIME
from tuning.refresh.known_rows import hashes_of, new_positions
from tuning.storage.run_directory import RunDirectory

# By how many standard deviations, beside what chance does, a column's mean has moved when that is worth a word.
LEAST_MOVE = 0.5


@dataclass(frozen=True)
class UnseenRows:
    """Rows of a customer that its models have not seen.

    where: which block each of them is of; None where each is its own. note: what is odd about their columns or moments.
    """

    frame: pd.DataFrame
    where: np.ndarray | None
    note: str = ""


@dataclass(frozen=True)
class NewRowsReader:
    """Reads the new rows of customers.

    customers: whose rows they are, as they are now. before, past, rows: tables of the rows of last time, of those that
    were there before that, and of now.
    """

    definition: Definition
    customers: Sequence[Customer]
    before: pa.Table
    past: pa.Table | None
    rows: pa.Table

    @cached_property
    def _wanted(self) -> dict[str, np.ndarray]:
        """The hashes of each customer's new rows."""
        names = [each.id for each in self.customers]
        before, past, now = (hashes_of(table, names) for table in (self.before, self.past, self.rows))
        known = {name: np.concatenate([before[name], past[name]]) for name in names}
        return {name: now[name][new_positions(known[name], now[name])] for name in names}

    @cached_property
    def _found(self) -> OrderedRows | None:
        return new_rows(self.definition, Columnar.of(Customer, self.customers), self.before, self._wanted)

    def of(self, customer: Customer) -> UnseenRows:
        """A customer's new rows; `CustomerError` where they cannot be read."""
        if not len(self._wanted[customer.id]):
            return UnseenRows(pd.DataFrame(), None)
        frame = None if self._found is None else self._found.rows(customer.id)
        if frame is None or len(frame) != len(self._wanted[customer.id]):
            raise CustomerError("its rows are not those any more that were looked at; refresh again.")
        absent = [name for name in self._columns(customer.id) if name not in frame.columns]
        frame = frame.reindex(columns=[*frame.columns, *absent])  # as they are beside the customer's other rows
        split = self.definition.split
        along = {GROUP: split.group, TIME: split.column}.get(split.kind)
        note = _clock_note(frame[along], self.definition) if split.kind == TIME and along is not None else ""
        lack = f"its new rows have no {name_list(absent)}, which others of its rows have" * bool(absent)
        said = "; ".join(filter(None, (lack, note)))
        return UnseenRows(frame, None if along is None else row_hashes(frame[[along]]), said)

    def _columns(self, customer: str) -> list[str]:
        """Those of all its rows that are there."""
        own = self.rows.filter(pc.equal(self.rows["customer"], customer))
        texts = pc.unique(own["columns"]).to_pylist()
        return sorted({name for text in texts for name in json.loads(text or "{}")})

    def moved_column(self, customer: Customer) -> str:
        """Which column's values have moved most from known to new rows, in words; empty where none has by much.

        Reads all rows of the customer.
        """
        with TemporaryDirectory(prefix="tuning-refresh-") as folder:
            (placed,) = partition(self.definition, Columnar.of(Customer, [customer]), RunDirectory(folder))
            frame = Loader(self.definition, [placed]).read(placed)
        names = [name for name in learned_columns(self.definition, [*frame]) if name not in self.definition.by]
        is_new = np.isin(row_hashes(frame[names]), self._wanted[customer.id])
        found = [(*_move(frame.loc[~is_new, name], frame.loc[is_new, name]), name) for name in names]
        move, said, name = max(found, default=(0.0, "", ""))
        return f"{name!r} has moved most: {said}" if move >= LEAST_MOVE else ""


def _clock_note(moments: pd.Series, definition: Definition) -> str:
    """What is said where a target is known that lies in the future."""
    if pd.api.types.is_numeric_dtype(moments) or getattr(moments.dtype, "kind", "") == "m":
        return ""
    texts = pd.Series(moments.unique()).map(str)
    format = ISO if moments.dtype.kind == "M" else date_format(texts, definition.dates) or ISO
    later = (parse_dates(moments, format) > pd.Timestamp.now(tz="UTC") + pd.Timedelta(days=1)).to_numpy()
    if not later.any():
        return ""
    said = f"{amount(int(later.sum()), 'new row')} of its {len(later)} lie after today by {moments.name!r}"
    return f"{said}, such as {moments[later].iloc[-1]}: look at the clock that wrote them"


def _move(known: pd.Series, new: pd.Series) -> tuple[float, str]:
    """By how many standard deviations a column has moved beyond chance, and how that is said."""
    if min(known.count(), new.count()) < 2:
        return 0.0, ""
    chance = (1 / known.count() + 1 / new.count()) ** 0.5
    if pd.api.types.is_numeric_dtype(known) and pd.api.types.is_numeric_dtype(new):
        before, now = float(known.mean()), float(new.mean())
        spread = float(known.std()) or float(new.std())
        away = abs(now - before) / spread if spread else 0.0
        said = f"its mean is {value_text(now)}, and was {value_text(before)} ({away:.1f} standard deviations)"
        return away - 2 * chance, said
    shares = [each.astype(str).value_counts(normalize=True) for each in (known, new)]
    change = shares[1].sub(shares[0], fill_value=0.0)
    value = str(change.abs().idxmax())
    before, now = (float(each.get(value, 0.0)) for each in shares)
    spread = max((before * (1 - before)) ** 0.5, (now * (1 - now)) ** 0.5, 0.1)
    return abs(now - before) / spread - 2 * chance, f"{value!r} is {now:.0%} of its values, and was {before:.0%}"
