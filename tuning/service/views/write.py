"""A run's tables for its pages, which a child process writes.

Arrow files without compression, so that the server maps them: a page of them costs what it shows. The rows of the
leaderboard are in the order of the column `customer`; for every other column, `orders.arrow` has the rows' numbers in
its order. Trials and studies stand together by customer, and the leaderboard says where.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.feather

from tuning.records.parts import STUDIES, TRIALS
from tuning.records.tables import no_rows
from tuning.reporting.html import PictureRow
from tuning.runs import optuna_study
from tuning.runs.leaderboard import LEADERBOARD, SCHEMA
from tuning.runs.outcome import sentences
from tuning.runs.report.page import Group, customers_without, pictures
from tuning.runs.results import RunResult
from tuning.service.views.tables import (
    LEADERBOARD_FILE,
    ORDERS_FILE,
    STUDIES_FILE,
    SUMMARY_FILE,
    TRIALS_FILE,
    starts,
    written_by,
)

UNSORTED = ("params", "metric", "mode", "customer")
MOST_TRIALS = 3_000_000  # beyond, one customer's are read when they are asked for


def write(result: RunResult, folder: Path) -> None:
    """Write the tables of a run as it is now into a folder that is there, the summary last."""
    board = result.board()
    rows = pa.concat_tables([SCHEMA.empty_table(), *board.batches()]).combine_chunks()
    counts = result.summary()
    found = {}
    kept = counts["trials"] <= MOST_TRIALS
    for name in (STUDIES, TRIALS):
        records = result.records_table(name) if kept or name == STUDIES else no_rows(TRIALS)
        by_customer = _by_customer(records, rows["customer"])
        found[name] = by_customer
        rows = rows.append_column(starts(name), _starts(by_customer, rows["customer"]))
    _save(rows, folder / LEADERBOARD_FILE)
    _save(found[STUDIES], folder / STUDIES_FILE)
    _save(found[TRIALS], folder / TRIALS_FILE)
    _save(_orders(result), folder / ORDERS_FILE)
    summary = {
        "written_by": written_by(),
        "counts": counts,
        "sentences": sentences(result, counts),
        "failures": [_group(each) for each in customers_without(result)],
        "notes": [str(note) for note in result.notes],
        "unfinished": result.unfinished,
        "trials_kept": kept,
        "pictures": _pictures(result, folder) if not result.goes_on else [],
    }
    # The summary is placed last: where it is, all is there.
    (folder / f"{SUMMARY_FILE}.part").write_text(json.dumps(summary, ensure_ascii=False), encoding="utf-8")
    os.replace(folder / f"{SUMMARY_FILE}.part", folder / SUMMARY_FILE)


def _by_customer(records: pa.Table, customers: pa.ChunkedArray) -> pa.Table:
    place = pc.index_in(records["customer"], value_set=customers.combine_chunks())
    keys = [name for name in ("study", "trial") if name in records.column_names and name != "customer"]
    sortable = records.append_column("_place", place)
    order = pc.sort_indices(sortable, sort_keys=[("_place", "ascending"), *((key, "ascending") for key in keys)])
    return sortable.take(order)


def _starts(by_customer: pa.Table, customers: pa.ChunkedArray) -> pa.Array:
    """For each customer, the first of its rows; those of the last one end with the table."""
    places = by_customer["_place"].to_numpy()
    return pa.array(np.searchsorted(places, np.arange(len(customers))), pa.int64())


def _orders(result: RunResult) -> pa.Table:
    row_of = np.empty(len(result), dtype=np.int64)
    row_of[result.board().order] = np.arange(len(result))
    sorts = [name for name in LEADERBOARD if name not in UNSORTED]
    return pa.table({name: pa.array(row_of[result.board(name).order], pa.int32()) for name in sorts})


def _pictures(result: RunResult, folder: Path) -> list[dict[str, str]]:
    """Each picture's file, and what it shows in words."""
    from tuning.reporting.figure import svg  # matplotlib, which the tables of a run that goes on do not need

    blocks = pictures(result, result.some_trials([*optuna_study.NEEDED, "customer"], optuna_study.MOST_TRIALS))
    drawn = [picture for block in blocks if isinstance(block, PictureRow) for picture in block.pictures]
    listed = []
    for number, picture in enumerate(drawn):
        name = f"picture-{number}.svg"
        (folder / name).write_bytes(svg(picture.figure))
        listed.append({"file": name, "alt": picture.alt, "caption": picture.caption})
    return listed


def _group(group: Group) -> dict[str, object]:
    return {"message": str(group.note), "count": group.count, "examples": group.examples, "advice": group.note.advice}


def _save(table: pa.Table, file: Path) -> None:
    pyarrow.feather.write_feather(
        table.drop_columns([c for c in table.column_names if c == "_place"]),
        file,
        compression="uncompressed",
        chunksize=max(1, len(table)),
    )
