"""Whether a run holds every customer and every trial once, and what it takes on the disk."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Recorded:
    """What the parts that count hold. studies, trials: rows. lost: studies or trials that are not there. twice: rows
    that are there already. forgotten: parts from before the kill that do not count any more. damaged: parts whose
    content is not what was written.
    """

    studies: int
    trials: int
    lost: int
    twice: int
    forgotten: int
    damaged: int


def parts_of(run: Path) -> set[str]:
    """Names of all record parts that are there, whoever wrote them."""
    return {str(part.relative_to(run)) for part in (run / "records").rglob("*.parquet")}


def recorded(run: Path, customers: int, trials: int, before: set[str]) -> Recorded:
    """Read all parts that count. before: those that were there when the run was killed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from tuning.records.ownership import begun_term
    from tuning.records.parts import STUDIES, TRIALS, accepted, intact, of_kind
    from tuning.storage.run_directory import RunDirectory

    directory = RunDirectory(run)
    counted = accepted(directory, begun_term(directory))
    damaged = 0
    tables: dict[str, list[pa.Table]] = {STUDIES: [], TRIALS: []}
    for kind, columns in ((STUDIES, ["study"]), (TRIALS, ["study", "trial"])):
        for name in of_kind(counted, kind):
            try:
                tables[kind].append(pq.read_table(pa.BufferReader(intact(directory, name)), columns=columns))
            except (OSError, ValueError):
                damaged += 1
    studies, rows = (_joined(found) for found in tables.values())
    pairs = 0 if rows.num_rows == 0 else rows.group_by(["study", "trial"]).aggregate([]).num_rows
    ended = 0 if studies.num_rows == 0 else studies.group_by("study").aggregate([]).num_rows
    return Recorded(
        studies=studies.num_rows,
        trials=rows.num_rows,
        lost=customers - ended + customers * trials - pairs,
        twice=studies.num_rows - ended + rows.num_rows - pairs,
        forgotten=len(before - set(counted)),
        damaged=damaged,
    )


def _joined(tables: list[pa.Table]) -> pa.Table:
    import pyarrow as pa

    return pa.concat_tables(tables) if tables else pa.table({"study": [], "trial": []})


def leaderboard(path: Path) -> tuple[int, int, int]:
    """(rows, different customers, customers with a model) of a leaderboard as CSV."""
    import pyarrow as pa
    from pyarrow import compute, csv

    wanted = csv.ConvertOptions(include_columns=["customer", "status"], column_types={"customer": pa.string()})
    parse = csv.ParseOptions(newlines_in_values=True)
    table = csv.read_csv(path, convert_options=wanted, parse_options=parse)
    fine = compute.sum(compute.equal(table["status"], "ok")).as_py() or 0
    return table.num_rows, len(table["customer"].unique()), fine


def _files(folder: Path) -> Iterator[os.stat_result]:
    for entry in os.scandir(folder):
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        else:
            yield entry.stat(follow_symlinks=False)


def on_disk(folder: Path) -> tuple[int, float]:
    """(files, MB that they take on the disk)."""
    found = [stat.st_blocks for stat in _files(folder)]
    return len(found), sum(found) * 512 / 1e6


def disk_by_folder(run: Path) -> dict[str, tuple[int, float]]:
    """The same for what is directly in a run directory; its files together are ""."""
    folders = [entry for entry in sorted(run.iterdir()) if entry.is_dir()]
    found = {folder.name: on_disk(folder) for folder in folders}
    single = [path.stat().st_blocks * 512 / 1e6 for path in run.iterdir() if path.is_file()]
    return {"": (len(single), sum(single)), **found}


@dataclass(frozen=True)
class Tracked:
    """The copy in MLflow's database. runs: by kind, trials as "trial". size: bytes of the file. by_table: bytes of the
    largest tables with their indexes, where SQLite can tell.
    """

    runs: dict[str, int]
    size: int
    by_table: dict[str, int]


def tracked(database: Path) -> Tracked:
    """Read a SQLite database of MLflow."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    kinds = "SELECT value, count(*) FROM tags WHERE key = 'tuning.kind' GROUP BY value"
    runs = dict(connection.execute(kinds).fetchall())
    everything = connection.execute("SELECT count(*) FROM runs").fetchone()[0]
    runs["trial"] = everything - sum(runs.values())
    pages = "SELECT m.tbl_name, sum(s.pgsize) FROM dbstat s JOIN sqlite_master m ON m.name = s.name"
    sizes = f"{pages} GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
    try:
        by_table = dict(connection.execute(sizes).fetchall())
    except sqlite3.OperationalError:  # this SQLite was built without it
        by_table = {}
    connection.close()
    written = (Path(f"{database}{suffix}") for suffix in ("", "-wal"))
    return Tracked(runs, sum(path.stat().st_size for path in written if path.exists()), by_table)
