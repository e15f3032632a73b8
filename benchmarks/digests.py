"""What it costs to know each customer's rows one by one: a table as it was, one with rows appended, one written anew.

    python -m benchmarks.digests --mb 500                   a minute
    python -m benchmarks.digests --mb 500 --output json

A Parquet table of customers in no order, of numbers, text, dates and gaps. seconds_per_gb: of CPU, of bytes on disk;
`plain` is the SHA-256 of the file. One per cent of the rows is appended twice: as a file of its own in the folder, and
in the file itself, whose last row group is then another one.
"""

from __future__ import annotations

import hashlib
import json
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tuning.data.customers import find_customers
from tuning.data.keyed_tables import find_tables
from tuning.data.ordered_digests import digests_in_order
from tuning.data.row_digests import rows_now
from tuning.definition.definition import define

T = TypeVar("T")
GROUP_ROWS = 200_000
BYTES_PER_ROW = 80  # on disk


def rows(count: int, customers: int, seed: int) -> pd.DataFrame:
    """Rows of customers in no order."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "customer": rng.integers(0, customers, count),
            "fee": rng.normal(50, 20, count).round(2),
            "age": rng.integers(18, 90, count),
            "usage": np.where(rng.random(count) < 0.1, np.nan, rng.exponential(3, count)),
            "score": rng.normal(size=count),
            "change": rng.normal(size=count),
            "plan": rng.choice(["basic", "pro", "extra"], count),
            "reference": rng.integers(0, 1 << 50, count).astype(str),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2000, count), "D"),
            "load": rng.normal(size=count),
            "y": rng.normal(size=count),
        }
    )


def write(path: Path, frame: pd.DataFrame) -> None:
    """A table in row groups of the same size."""
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), path, row_group_size=GROUP_ROWS)


@click.command()
@click.option("--mb", default=200, help="About the size of the table on disk.")
@click.option("--customers", default=10_000)
@click.option("--output", type=click.Choice(["text", "json"]), default="text")
def main(mb: int, customers: int, output: str) -> None:
    """Print CPU seconds per GB of each kind of change."""
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table"
        table.mkdir()
        first, count = table / "a.parquet", mb * 1_000_000 // BYTES_PER_ROW
        frame = rows(count, customers, 0)
        write(first, frame)
        gigabytes = first.stat().st_size / 1e9
        definition = define({"data": str(table), "by": "customer", "target": "y"})

        def timed(name: str, action: Callable[[], T]) -> T:
            began, wall = time.process_time(), time.monotonic()
            found = action()
            figures[f"{name}_seconds_per_gb"] = (time.process_time() - began) / gigabytes
            figures[f"{name}_wall_seconds"] = time.monotonic() - wall
            return found

        def look(before: pa.Table | None) -> pa.Table:
            return rows_now(definition, find_customers(definition), before)

        timed("plain", lambda: hashlib.sha256(first.read_bytes()).hexdigest())
        (one,) = find_tables(definition.data, definition.by)
        timed("in_order", lambda: digests_in_order(one, definition))
        timed("customers", lambda: find_customers(definition))
        before = timed("anew", lambda: look(None))
        figures["rows"], figures["gb"] = count, gigabytes
        figures["remembered_gb"] = before.nbytes / 1e9
        figures["most_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
        assert timed("as_it_was", lambda: look(before)) is before
        more = rows(count // 100, customers, 1)
        write(table / "b.parquet", more)
        timed("appended_as_a_file", lambda: look(before))
        (table / "b.parquet").unlink()
        write(first, pd.concat([frame, more], ignore_index=True))
        timed("appended_in_the_file", lambda: look(before))
        write(first, frame.sort_values("customer"))
        timed("in_another_order", lambda: look(before))
    print(json.dumps(figures) if output == "json" else "\n".join(f"{name:35} {x:12.3f}" for name, x in figures.items()))


if __name__ == "__main__":
    main()
