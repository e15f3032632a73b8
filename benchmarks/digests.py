"""What it costs to know each customer of a table by a digest of its rows: `python -m benchmarks.digests --mb 500`.

A Parquet table of customers in no order, of numbers, text, dates and gaps. seconds_per_gb: of CPU, of bytes on disk;
`plain` is the SHA-256 of the file.
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
from tuning.data.fingerprints import digested
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

        timed("plain", lambda: hashlib.sha256(first.read_bytes()).hexdigest())
        there = timed("customers", lambda: find_customers(definition))
        timed("of_customers", lambda: digested(definition, there))
        figures["rows"], figures["gb"] = count, gigabytes
        figures["most_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    print(json.dumps(figures) if output == "json" else "\n".join(f"{name:35} {x:12.3f}" for name, x in figures.items()))


if __name__ == "__main__":
    main()
