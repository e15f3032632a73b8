"""Tables larger than memory: dividing one takes a part of its size, measured in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

MIB = 1 << 20
BUFFER, CHUNK = 16, 4  # MiB

# Prints by how many MiB the peak of resident memory grew, and what became of the rows.
DIVIDE = f"""
import sys
import pandas, pyarrow.dataset, pyarrow.parquet
from tuning.data import partition
from tuning.data.customers import find_customers
from tuning.data.formats import csv_file, parquet_file
from tuning.definition.definition import define
from tuning.storage.run_directory import RunDirectory

def peak():
    with open("/proc/self/status") as status:  # ru_maxrss would begin with that of the process that started this one
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))

partition.BUFFER_BYTES = {BUFFER * MIB}
csv_file.AT_ONCE = {CHUNK * MIB}
csv_file.PIECE_BYTES = {CHUNK * MIB} // 4  # the share of AT_ONCE that it is
parquet_file.STREAM_BYTES = {CHUNK * MIB}
partition.ROWS_AT_ONCE = 1 << 15
made = define({{"data": sys.argv[1], "by": "zone", "target": "y", "task": "regression", "slots": 2}})
directory = RunDirectory(sys.argv[2])
directory.create()
before = peak()
customers = partition.partition(made, find_customers(made), directory)
grown = peak() - before
files = {{file for customer in customers for file in customer.files}}
rows = sum(pyarrow.parquet.read_metadata(file).num_rows for file in files)
print(grown, len(customers), rows)
"""


def write_parquet(path: Path) -> int:
    """288 MiB of rows in no order; their number."""
    rng = np.random.default_rng(0)
    rows, times = 1 << 19, 3
    words = pa.array(["text" * 42] * rows)  # wide cells: as many bytes as many numbers, and less work
    schema = pa.schema([("zone", pa.int64()), ("words", pa.string()), ("y", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(times):
            columns = [pa.array(rng.integers(0, 50, rows)), words, pa.array(rng.random(rows))]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=rows)
    return rows * times


def write_csv(path: Path) -> int:
    """192 MiB of text; the number of its rows."""
    rng = np.random.default_rng(0)
    lines = 20_000
    block = "".join(
        f"{zone},{x!r},{'text' * 60},{zone}\n"
        for zone, x in zip(rng.integers(0, 50, lines).tolist(), rng.random(lines).tolist(), strict=True)
    )
    count = 192 * MIB // len(block)
    with path.open("w") as file:
        file.write("zone,x,words,y\n")
        for _ in range(count):
            file.write(block)
    return lines * count


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize("write", [write_parquet, write_csv])
def test_a_table_is_divided_in_memory_that_does_not_grow_with_it(write: Callable[[Path], int], tmp_path: Path) -> None:
    table = tmp_path / f"table.{write.__name__.removeprefix('write_')}"
    rows = write(table)
    done = subprocess.run(
        [sys.executable, "-c", DIVIDE, str(table), str(tmp_path / "run")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    grown, customers, kept = map(int, done.stdout.split())
    assert (customers, kept) == (50, rows)
    size = table.stat().st_size // MIB  # the buffers and what the allocator holds are 60 to 140 MiB, for any size
    assert grown < 2 / 3 * size, f"{grown} MiB for a table of {size}"
