"""Tables larger than memory: what dividing one takes does not grow with it, measured in a process of its own."""

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
csv_file.PIECE_BYTES = {CHUNK * MIB} // 4
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


def write_parquet(path: Path, times: int) -> tuple[int, int]:
    """96 MiB of rows in no order, so many times; (bytes, rows)."""
    rng = np.random.default_rng(0)
    rows = 1 << 20
    words = pa.array(["text" * 19] * rows)  # wide cells: as many bytes as ten numbers, and less work
    schema = pa.schema([("zone", pa.int64()), ("words", pa.string()), ("y", pa.float64())])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(times):
            columns = [pa.array(rng.integers(0, 50, rows)), words, pa.array(rng.random(rows))]
            writer.write_table(pa.table(columns, schema=schema), row_group_size=rows)
    return path.stat().st_size, rows * times


def write_csv(path: Path, times: int) -> tuple[int, int]:
    """64 MiB of text, so many times; (bytes, rows)."""
    rng = np.random.default_rng(0)
    lines = 20_000
    block = "".join(
        f"{zone},{x!r},{'text' * 20},{zone}\n"
        for zone, x in zip(rng.integers(0, 50, lines).tolist(), rng.random(lines).tolist(), strict=True)
    )
    count = times * 64 * MIB // len(block)
    with path.open("w") as file:
        file.write("zone,x,words,y\n")
        for _ in range(count):
            file.write(block)
    return path.stat().st_size, lines * count


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read from Linux's /proc")
@pytest.mark.parametrize("write", [write_parquet, write_csv])
def test_a_table_is_divided_in_memory_that_does_not_grow_with_it(
    write: Callable[[Path, int], tuple[int, int]], tmp_path: Path
) -> None:
    sizes, peaks = [], []
    for times in (1, 3):
        table = tmp_path / f"table{times}.{write.__name__.removeprefix('write_')}"
        size, rows = write(table, times)
        done = subprocess.run(
            [sys.executable, "-c", DIVIDE, str(table), str(tmp_path / f"run{times}")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        grown, customers, kept = map(int, done.stdout.split())
        assert (customers, kept) == (50, rows)
        sizes.append(size // MIB)
        peaks.append(grown)
    more, grown = sizes[1] - sizes[0], peaks[1] - peaks[0]  # what the allocator holds differs by up to 40 MiB
    assert grown < more / 2, f"{peaks[0]} MiB for a table of {sizes[0]}, {peaks[1]} MiB for one of {sizes[1]}"
