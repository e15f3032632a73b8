"""What SQLite itself takes for the rows of a tier's trials: the least that any writer of MLflow's tables can reach.

    python -m benchmarks.sqlite_floor --customers 1000

A search is run and its records are copied once as always; the statements of that copy are kept, and played again
into the same empty database: nothing is read, decoded or made meanwhile. CPU time per trial; every
variant changes one thing, and all are played in turn, several times.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import click

from benchmarks.workload import ONE_THREAD, TIERS, Scenario, definition, make_workload


@dataclass(frozen=True)
class Insert:
    """One call of `tables.insert`; `None` in a list of these is the beginning of a transaction."""

    table: Any
    rows: Sequence[tuple[Any, ...]]
    replace: Sequence[str]


@dataclass(frozen=True)
class Variant:
    """pragmas: before the first row. transactions: one for so many of the copy's. by_key: rows sorted by their key.

    indexed: whether the tables keep the indexes that are no primary keys.
    """

    pragmas: tuple[str, ...] = ()
    transactions: int = 1
    by_key: bool = False
    indexed: bool = True


VARIANTS = {
    "as it is": Variant(),
    "one transaction": Variant(transactions=10**9),
    "rows sorted by key": Variant(by_key=True),
    "pages of 8 KB": Variant(pragmas=("page_size = 8192",)),
    "pages of 16 KB": Variant(pragmas=("page_size = 16384",)),
    "write-ahead log": Variant(pragmas=("journal_mode = wal",)),
    "only primary keys": Variant(indexed=False),
}


def recorded(folder: Path, tier: str, customers: int, trials: int) -> tuple[Path, list[Insert | None], int, float]:
    """(empty database, the copy's statements, trials, core-seconds of the whole copy) of a search in `folder`."""
    from tuning import TuneRunner
    from tuning.records.ownership import newest_term
    from tuning.records.parts import accepted
    from tuning.storage.run_directory import RunDirectory
    from tuning.tracking.copy.copier import Copier
    from tuning.tracking.identity import TrackedSearch
    from tuning.tracking.selection import Selection
    from tuning.tracking.stores import sql_store
    from tuning.tracking.stores.opening import open_store

    ids = make_workload(folder / "work", TIERS[tier], customers, trials)
    scenario = Scenario(tier, str(folder / "work"), ids, trials)
    wanted = definition(scenario, mlflow=False, save_models=False)
    run = TuneRunner(wanted).run(str(folder / "run"), progress=False).directory.uri
    directory, search = RunDirectory(run), TrackedSearch("floor", "run")
    uri = f"sqlite:///{folder / 'copy.db'}"
    copier = Copier(directory, search, Selection(None), lambda: open_store(uri, search, str(folder / "mlruns")), 0)
    term = newest_term(directory)
    assert term is not None
    for part in sorted(accepted(directory, term), key=lambda part: part.rsplit("-", 2)[1]):  # as they were written
        copier.add(part)
    copier.store()
    shutil.copy(folder / "copy.db", folder / "empty.db")
    kept: list[Insert | None] = []
    insert, write = sql_store.insert, sql_store.BulkStore._write

    def keeping(connection: Any, table: Any, rows: Sequence[Any], replace: Any = ()) -> None:
        kept.append(Insert(table, rows, replace))
        insert(connection, table, rows, replace)

    def beginning(store: Any, connection: Any, runs: Any) -> None:
        kept.append(None)
        write(store, connection, runs)

    before = time.process_time()
    with patch.object(sql_store, "insert", keeping), patch.object(sql_store.BulkStore, "_write", beginning):
        while not copier.idle:
            copier.work()
        copier.finish()
    return folder / "empty.db", kept, copier.progress.trials, time.process_time() - before


def sorted_by_key(statement: Insert) -> Insert:
    """The same rows, in the order of the primary key's index."""
    from tuning.tracking.stores.tables import COLUMNS

    columns = COLUMNS[statement.table.name]
    places = [columns.index(column.name) for column in statement.table.primary_key.columns]
    return replace(statement, rows=sorted(statement.rows, key=lambda row: [row[place] for place in places]))


def play(empty: Path, statements: Sequence[Insert | None], variant: Variant) -> float:
    """Core-seconds for all statements, commits included."""
    from tuning.tracking.stores.database import engine_for
    from tuning.tracking.stores.tables import insert

    path = empty.with_name("played.db")
    shutil.copy(empty, path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as raw:
        for pragma in variant.pragmas:
            raw.execute(f"PRAGMA {pragma}")
        raw.execute("VACUUM")  # a page size holds from then on
        if not variant.indexed:
            for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql > ''").fetchall():
                raw.execute(f"DROP INDEX {name}")
    if variant.by_key:
        statements = [statement and sorted_by_key(statement) for statement in statements]
    engine, begun = engine_for(f"sqlite:///{path}"), 0
    with engine.connect() as connection:
        before = time.process_time()
        for statement in statements:
            if statement is None:
                begun += 1
                if begun % variant.transactions == 0:
                    connection.commit()
                continue
            insert(connection, statement.table, statement.rows, statement.replace)
        connection.commit()
        used = time.process_time() - before
    engine.dispose()
    for file in path.parent.glob("played.db*"):
        file.unlink()
    return used


@click.command()
@click.option("--tier", type=click.Choice(sorted(TIERS)), default="S", show_default=True)
@click.option("--customers", type=click.IntRange(2), default=1000, show_default=True)
@click.option("--trials", type=click.IntRange(2), default=20, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
def main(tier: str, customers: int, trials: int, rounds: int) -> None:
    """Print core-ms per trial of each variant, the medians over the rounds."""
    os.environ.update(ONE_THREAD)
    with tempfile.TemporaryDirectory(prefix="sqlite-floor-") as name:
        empty, statements, count, copied = recorded(Path(name), tier, customers, trials)
        used: dict[str, list[float]] = {title: [] for title in VARIANTS}
        for _ in range(rounds):
            for title, variant in VARIANTS.items():
                used[title].append(play(empty, statements, variant))
    rows = sum(len(statement.rows) for statement in statements if statement is not None)
    print(f"{count} trials, {rows / count:.1f} rows per trial; the whole copy: {1000 * copied / count:.3f} core-ms")
    for title, seconds in used.items():
        print(f"{title:<22}{1000 * median(seconds) / count:.3f} core-ms per trial")


if __name__ == "__main__":
    main()
