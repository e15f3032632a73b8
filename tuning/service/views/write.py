"""A run's tables for its pages, which a child process writes.

Arrow files without compression, so that the server maps them: a page of them costs what it shows. The rows of the
leaderboard are in the order of the column `customer`; for every other column one more holds the rows' numbers in its
order.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather

from tuning.records.parts import STUDIES, TRIALS
from tuning.records.tables import no_rows
from tuning.reporting.html import PictureRow
from tuning.runs.leaderboard import LEADERBOARD, SCHEMA
from tuning.runs.note_groups import Group
from tuning.runs.outcome import sentences
from tuning.runs.report.page import customers_without, pictures
from tuning.runs.report.tiles import run_tiles
from tuning.runs.results import RunResult
from tuning.service.views.tables import (
    LEADERBOARD_FILE,
    STUDIES_FILE,
    SUMMARY_FILE,
    TRIALS_FILE,
    UNSORTED,
    order_of,
    written_by,
)

MOST_TRIALS = 3_000_000  # beyond, one customer's are read when they are asked for


def write(run: str, folder: str) -> None:
    """Write the tables of a run as it is now into a folder that is there, the summary last."""
    result, place = RunResult(run), Path(folder)
    counts = result.summary()
    kept = counts["trials"] <= MOST_TRIALS
    _save(_leaderboard(result), place / LEADERBOARD_FILE)
    _save(result.records_table(STUDIES), place / STUDIES_FILE)
    _save(result.records_table(TRIALS) if kept else no_rows(TRIALS), place / TRIALS_FILE)
    summary = {
        "written_by": written_by(),
        "counts": counts,
        "tiles": [asdict(tile) for tile in run_tiles(result, counts)],
        "sentences": sentences(result, counts),
        "failures": [_group(each) for each in customers_without(result)],
        "notes": [str(note) for note in result.notes],
        "unfinished": result.unfinished,
        "trials_kept": kept,
        "pictures": _pictures(result, place) if not result.goes_on else [],
    }
    # The summary is placed last: where it is, all is there.
    (place / f"{SUMMARY_FILE}.part").write_text(json.dumps(summary, ensure_ascii=False), encoding="utf-8")
    os.replace(place / f"{SUMMARY_FILE}.part", place / SUMMARY_FILE)


def _leaderboard(result: RunResult) -> pa.Table:
    rows = pa.concat_tables([SCHEMA.empty_table(), *result.board().batches()])
    row_of = np.empty(len(result), dtype=np.int32)
    row_of[result.board().order] = np.arange(len(result))
    for name in LEADERBOARD:
        if name not in UNSORTED:
            rows = rows.append_column(order_of(name), pa.array(row_of[result.board(name).order]))
    return rows


def _pictures(result: RunResult, folder: Path) -> list[dict[str, str]]:
    """Each picture's file, and what it shows in words."""
    from tuning.reporting.figure import svg  # matplotlib, which the tables of a run that goes on do not need

    drawn = [picture for block in pictures(result) if isinstance(block, PictureRow) for picture in block.pictures]
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
        table.combine_chunks(), file, compression="uncompressed", chunksize=max(1, len(table))
    )
