"""The leaderboard of a run: one row per customer, in columns, so that a million of them are a matter of seconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.basics.documents import Json
from tuning.models.customer_model import described_as
from tuning.models.registry import families
from tuning.models.worker_group import group_last
from tuning.notes import from_row
from tuning.records.columns import NOTE, FigureRow
from tuning.records.figures import RECORDED, STUDY_FIGURES, named, notebook_table, shown_in
from tuning.records.schema import MODEL, NO_MODEL, OK, POOLED, QUARANTINED, RUNNING, UNFINISHED, Config, canonical
from tuning.runs.standings import Standings, UnfinishedCustomers

_FIGURES = named(each for each in STUDY_FIGURES if "leaderboard" in each.shown)
LEADERBOARD = tuple(_FIGURES)
SCHEMA = pa.schema([(each.name, each.type) for each in _FIGURES.values()])
_NOT_READ = ("metric", "mode")  # they are the run's
#: The columns of study records that a leaderboard is made of.
NEEDED = (
    *("study", "family", "ensemble", "config", "best_step"),
    *(each.name for each in shown_in("leaderboard", RECORDED) if each.name not in _NOT_READ),
)
SHOWN, SHOWN_LACKING = 10, 3  # customers, in a notebook; of them those without a model, where not all are shown
BATCH = 20_000  # rows that are made at a time
ORDER = (OK, RUNNING, UNFINISHED, POOLED, NO_MODEL, QUARANTINED)  # of customers by their status


@dataclass(frozen=True)
class Leaderboard:
    """One row per customer.

    standings: of all customers. metric, mode: of the run. unfinished: what is shown where no study has
    ended. sort: the column to sort by, of `LEADERBOARD`: numbers as `Figure.larger_first` has them, texts by the
    alphabet, nothing last. By customer, those with a model come first.
    """

    standings: Standings
    metric: str
    mode: str
    unfinished: UnfinishedCustomers
    sort: str = "customer"

    @cached_property
    def order(self) -> np.ndarray:
        """(customers,) their positions in `standings.customers`, in the order of the rows."""
        everyone = np.arange(len(self))
        column = self._column("status" if self.sort == "customer" else self.sort, everyone, self._best(everyone))
        if self.sort == "customer":
            return self.standings.order(pc.index_in(column, value_set=pa.array(ORDER)).to_numpy())
        if not (pa.types.is_string(column.type) or pa.types.is_nested(column.type)):
            values = column.to_numpy(zero_copy_only=False).astype(np.float64)
            larger_first = _FIGURES[self.sort].larger_first(self.mode)
            return self.standings.order(-values if larger_first else values)
        if pa.types.is_nested(column.type):
            column = as_cells(column, self.sort)
        ranks = pc.rank(pc.if_else(pc.equal(column, ""), None, column), tiebreaker="dense")
        return self.standings.order(ranks.to_numpy())

    def __len__(self) -> int:
        return len(self.standings.customers)

    def batches(self) -> Iterator[pa.Table]:
        """Yield the rows in order, some at a time, in columns of `SCHEMA`; `params` is JSON, notes are structs."""
        return map(self._rows, self._places())

    def _places(self) -> Iterator[np.ndarray]:
        return (self.order[start : start + BATCH] for start in range(0, len(self), BATCH))

    def _best(self, places: np.ndarray) -> pa.Table:
        best = pa.array(self.standings.best[places], mask=self.standings.unfinished[places])
        return self.standings.studies.take(best)

    def _rows(self, places: np.ndarray) -> pa.Table:
        best = self._best(places)
        return pa.table([self._column(name, places, best) for name in LEADERBOARD], schema=SCHEMA)

    def _column(self, name: str, places: np.ndarray, best: pa.Table) -> pa.Array | pa.ChunkedArray:
        """Return a column of some rows. places, best: of their customers, and these customers' best studies."""
        standings, none = self.standings, self.standings.unfinished[places]
        customers = standings.customers.take(pa.array(places))
        match name:
            case "customer":
                return customers
            case "metric" | "mode":
                return pa.repeat(self.metric if name == "metric" else self.mode, len(places))
            case "model":
                return _models(best)
            case "verdict":
                return standings.verdicts.take(pa.array(places))
            case "trials":
                trials = standings.trials[places]
                trials[none] = [self.unfinished.trials.get(each, 0) for each in customers.filter(none).to_pylist()]
                return pa.array(trials)
            case "seconds":
                return pa.array(np.round(standings.seconds[places], 3), mask=none)
            case "params":
                texts = (None if config is None else canonical(config) for config in _configs(best))
                return pa.array(texts, pa.string())
            case "status":
                return pc.if_else(pa.array(none), self.unfinished.status, best[name])
            case "reason" if none.any():
                rows = zip(best[name].to_pylist(), none, customers.to_pylist(), strict=True)
                found = [self.unfinished.why(each).to_row() if lacking else row for row, lacking, each in rows]
                return pa.array(found, NOTE)
        return best[name]

    def __iter__(self) -> Iterator[FigureRow]:
        """Yield the rows as plain values: `params` as a mapping, `reason` and `notes` as notes."""
        return chain.from_iterable(map(self._plain, self._places()))

    def _plain(self, places: np.ndarray) -> Iterator[FigureRow]:
        for row, params in zip(self._rows(places).to_pylist(), _configs(self._best(places)), strict=True):
            yield {**row, "params": params, **as_recorded_notes(row)}

    def ends(self, first: int, last: int = 0) -> list[FigureRow]:
        """Return that many first and last rows; all rows where there are no more."""
        rest = max(first, len(self) - last)
        return list(self._plain(np.concatenate([self.order[:first], self.order[rest:]])))

    def html(self, *, of_objective: bool) -> str:
        """Return what a notebook shows: the first customers, and the last where these have no model.

        of_objective: with the parameters.
        """
        lacking = [row for row in self.ends(0, SHOWN_LACKING) if row["status"] in (POOLED, NO_MODEL, QUARANTINED)]
        last = len(lacking) if len(self) > SHOWN else 0
        return notebook_table(self.ends(SHOWN - last, last), len(self), last, of_objective=of_objective)

    def frame(self) -> pd.DataFrame:
        """Return the rows as a table of pandas."""
        table = pa.concat_tables([SCHEMA.empty_table(), *self.batches()])
        return pd.DataFrame({name: _series(as_cells(table[name], name)) for name in LEADERBOARD})

    def csv(self, *, exact: bool = False) -> Csv:
        """Return the rows as CSV, with a line of names first; what is not there is empty.

        exact: texts as they are, for programs; else no cell is a formula (`guarded`).
        """
        return Csv(self, exact)


@dataclass(frozen=True)
class Csv:
    """The pieces of a leaderboard's CSV, made as they are asked for, and again each time."""

    board: Leaderboard
    exact: bool

    def __iter__(self) -> Iterator[bytes]:
        from tuning.data.formats.csv_file import csv_text

        yield f"{','.join(LEADERBOARD)}\n".encode()
        for batch in self.board.batches():
            cells = pa.table({name: as_cells(batch[name], name) for name in LEADERBOARD})
            text = csv_text(cells.to_pandas(types_mapper=_WHOLE.get), exact=self.exact)
            yield text.partition("\n")[2].encode()


_WHOLE = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}  # with a gap they would be floats


def as_recorded_notes(row: Json) -> dict[str, object]:
    """Return `reason` and `notes` of a row of structs as notes."""
    reason = row["reason"]
    return {"reason": reason and from_row(reason), "notes": [from_row(each) for each in row["notes"] or ()]}


def as_cells(column: pa.Array | pa.ChunkedArray, name: str) -> pa.Array | pa.ChunkedArray:
    """Return a column as CSV and pandas hold it: a reason as its sentence, notes as JSON with codes and values.

    Of a million rows only some are Python objects at a time.
    """
    write = _WRITTEN.get(name)
    if write is None:
        return column
    parts = (column.slice(start, BATCH).to_pylist() for start in range(0, len(column), BATCH))
    return pa.chunked_array([pa.array(map(write, part), pa.string()) for part in parts], pa.string())


def _sentence(row: Mapping[str, str] | None) -> str:
    return str(from_row(row)) if row else ""


def _notes_json(rows: Sequence[Mapping[str, str]] | None) -> str | None:
    return json.dumps([from_row(row).to_dict() for row in rows], ensure_ascii=False) if rows else None


#: How columns of structs are written.
_WRITTEN: Mapping[str, Callable[..., str | None]] = {"reason": _sentence, "notes": _notes_json}


def _series(column: pa.ChunkedArray) -> pd.Series:
    """Return a column of pandas; one that nobody has anything in holds None."""
    if column.null_count == len(column):
        return pd.Series([None] * len(column), dtype=object)
    return column.to_pandas()


def _models(studies: pa.Table) -> pa.Array:
    """Return the winner's family, or what the ensemble is made of."""
    rows = zip(studies["family"].to_pylist(), studies["ensemble"].to_pylist(), strict=True)
    return pa.array([model_name(*row) for row in rows], pa.string())


def model_name(family: str | None, ensemble: str | None) -> str | None:
    """Return what a model is called in tables. ensemble: its members as JSON, as records have it."""
    return family if ensemble is None else described_as([member["family"] for member in json.loads(ensemble)])


def exact_config(config: Config | None, family: str | None, best_step: int | None) -> Config | None:
    """Return a winner's configuration, with the length that it was refitted to (such as `n_estimators`)."""
    if config is None or family is None or best_step is None:
        return config
    built_in = families().get(family)
    return config if built_in is None else built_in.at_step(config, best_step)


def parameters(config: Config) -> Config:
    """Return a configuration of a model as tables show it: without the model's name, what its actors are at the end."""
    return group_last({name: value for name, value in config.items() if name != MODEL})


def _configs(studies: pa.Table) -> list[Config | None]:
    """Return winning configurations at the length of the last fit, without the name of the model, actors last.

    An objective's may have parameters of such names, which are its own.
    """
    rows = studies.select(["config", "family", "best_step"]).to_pylist()
    exact = [exact_config(row["config"] and json.loads(row["config"]), row["family"], row["best_step"]) for row in rows]
    return [
        config and (config if row["family"] is None else parameters(config))
        for config, row in zip(exact, rows, strict=True)
    ]
