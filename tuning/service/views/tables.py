"""A run's tables as the server maps them: a page of the leaderboard, and one customer.

Nothing is kept in memory but what is asked for; files that were mapped stay readable after they are deleted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.basics.wording import did_you_mean
from tuning.errors import DefinitionError, MissingError
from tuning.notes import from_row
from tuning.records.columns import FigureRow
from tuning.runs.leaderboard import LEADERBOARD, as_cells, as_recorded_notes
from tuning.service.names import AS_THEY_ARE, Names

LEADERBOARD_FILE, STUDIES_FILE, TRIALS_FILE = "leaderboard.arrow", "studies.arrow", "trials.arrow"
SUMMARY_FILE = "summary.json"
UNSORTED = ("params", "metric", "mode", "customer")  # the rows are in the order of the last, and none asks for others'
MOST_ROWS = 500  # of a page
#: Of customers on a leaderboard; empty for all of them.
Status = Literal["", "ok", "pool", "no_model", "quarantined", "running", "unfinished"]


@cache
def written_by() -> Mapping[str, object]:
    """What tables are known by: those of another version of the program may lack what this one shows."""
    return {"version": metadata.version("tuning-service"), "columns": list(LEADERBOARD)}


def order_of(column: str) -> str:
    """The leaderboard's column with the numbers of the rows in the order of another column."""
    return f"_order_of_{column}"


@dataclass(frozen=True)
class LeaderboardPage:
    """Some rows of a leaderboard.

    Attributes:
        rows: by column name, `params` as a mapping.
        found: how many customers the search has found, on all pages.
        customers: how many there are.
    """

    rows: list[FigureRow]
    found: int
    customers: int


class RunTables:
    """The tables of one run in a folder that `write` has made. names: those that its team has."""

    def __init__(self, folder: Path, names: Names = AS_THEY_ARE) -> None:
        self.folder, self._names = folder, names
        self.summary: Json = names.document(json.loads((folder / SUMMARY_FILE).read_text(encoding="utf-8")))
        self._board = _mapped(folder / LEADERBOARD_FILE)

    @property
    def written(self) -> float:
        """When they were written, in seconds since 1970: the folder is named after the microsecond."""
        return int(self.folder.name) / 1e6

    @property
    def current(self) -> bool:
        """Whether this version of the program has written them."""
        return bool(self.summary.get("written_by") == written_by())

    def __len__(self) -> int:
        return len(self._board)

    def page(
        self, *, sort: str = "customer", search: str = "", status: str = "", start: int = 0, rows: int = 50
    ) -> LeaderboardPage:
        """Return rows from `start` on, in the order of a column; `DefinitionError` for an unknown column.

        search: part of a customer's id, in any case. status: such as "ok"; empty for all.
        """
        rows, order = max(0, min(rows, MOST_ROWS)), self._order(sort)
        if search or status:
            order = order[self._chosen(search, status)[order]]
        places, found = order[start : start + rows], len(order)
        taken = self._names.document(self._board.select(LEADERBOARD).take(pa.array(places)).to_pylist())
        return LeaderboardPage([_row(row) for row in taken], found, len(self))

    def all_rows(self, sort: str = "customer") -> pa.Table:
        """Return the whole leaderboard in the order of a column, `params` as JSON; the same error as `page`."""
        rows = self._board.select(LEADERBOARD)
        found = rows if sort == "customer" else rows.take(pa.array(self._order(sort)))
        cells = {name: as_cells(found[name], name) for name in LEADERBOARD}
        texts = {name: pa.array(map(self._text, cells[name].to_pylist()), pa.string()) for name in ("reason", "notes")}
        return pa.table({**cells, **texts})

    def _text(self, cell: str | None) -> str | None:
        return cell and self._names.text(cell)

    def _order(self, sort: str) -> np.ndarray:
        """(customers,) the rows' numbers in the order of a column."""
        if sort == "customer":
            return np.arange(len(self))
        if order_of(sort) not in self._board.column_names:
            sortable = ["customer", *(name for name in LEADERBOARD if name not in UNSORTED)]
            raise DefinitionError.about("sort", f"{sort!r} is no column to sort by.{did_you_mean(sort, sortable)}")
        order: np.ndarray = self._board[order_of(sort)].to_numpy()
        return order

    def _chosen(self, search: str, status: str) -> np.ndarray:
        """(customers,) which rows are meant."""
        chosen = np.ones(len(self), dtype=bool)
        if search:
            hits = pc.match_substring(self._board["customer"], search, ignore_case=True)
            chosen &= hits.to_numpy()
        if status:
            chosen &= pc.equal(self._board["status"], status).to_numpy()
        return chosen

    def customer(self, customer: str) -> dict[str, object]:
        """Return the row of a customer, its studies and its trials; `MissingError` for somebody else.

        `trials` is None where the run has too many trials to be kept here.
        """
        place = pc.index(self._board["customer"], customer).as_py()
        if place < 0:
            raise MissingError(f"no customer {customer!r} in this run. GET …/leaderboard?search= finds its customers.")
        row = self._names.document(self._board.select(LEADERBOARD).slice(place, 1).to_pylist()[0])
        trials = self._records(TRIALS_FILE, customer) if self.summary["trials_kept"] else None
        return {**_row(row), "studies": self._records(STUDIES_FILE, customer), "trials": trials}

    def _records(self, file: str, customer: str) -> list[dict[str, object]]:
        records = _mapped(self.folder / file)
        places = np.flatnonzero(pc.equal(records["customer"], customer))  # Arrow's own crashes without a row
        rows = records.take(pa.array(places)).to_pylist()
        ordered = sorted(rows, key=lambda row: (row["study"], row.get("trial") or 0))
        return [_record(row) for row in self._names.document(ordered)]


def _row(row: Json) -> dict[str, object]:
    return {**_finite(row), "params": _mapping(row["params"]), **as_recorded_notes(row)}


def _finite(row: Json) -> dict[str, object]:
    """A score that is not a number is one that is not there: JSON has none."""
    return {name: None if isinstance(each, float) and not math.isfinite(each) else each for name, each in row.items()}


def _record(row: Json) -> dict[str, object]:
    """A record as users read it."""
    plain = {**row, "config": _mapping(row["config"])}
    for name in ("metrics", "fold_scores", "steps"):
        if name in plain:
            plain[name] = plain[name] or []
    if "steps" in plain:
        plain["steps"] = [{**_finite(each), "metrics": _finite(dict(each["metrics"] or []))} for each in plain["steps"]]
        plain["metrics"] = _finite(dict(plain["metrics"]))
    if isinstance(plain.get("ensemble"), str):
        plain["ensemble"] = json.loads(plain["ensemble"])
    if plain.get("reason"):
        plain["reason"] = from_row(plain["reason"])
    if "notes" in plain:
        plain["notes"] = [from_row(each) for each in plain["notes"] or []]
    return _finite(plain)


def _mapping(text: str | None) -> Json | None:
    return None if text is None else json.loads(text)


def _mapped(file: Path) -> pa.Table:
    with pa.memory_map(str(file)) as source:
        return pa.ipc.open_file(source).read_all()
