"""The job: one Parquet table in the order of its integer key, 10 rows × 2 numbers per customer, and a definition."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

KEY, TARGET, ROWS = "customer", "y", 10
BATCH = 6_000  # customers whose rows are made at once, and a row group of the table
TABLE, DEFINITION, RUN = "customers.parquet", "million.yaml", "run"

_TEXT = """\
name: million
data: {folder}/{table}
by: [{key}]
target: {target}
task: regression
metric: neg_root_mean_squared_error
search_space:
  parameters:
    model: {{type: constant, value: ridge}}
    alpha: {{type: float, low: 1.0e-4, high: 1.0e+3, log: true, default: 1.0}}
trials: {trials}
algorithm: random
scheduler: fifo
portfolio: none     # the trials are the searcher's own, as in tier T of benchmarks.throughput
ensemble: none
split: {{test: 0.2, folds: 3}}
slots: {slots}
"""


def write_job(folder: Path, customers: int, trials: int, slots: int, seed: int = 11) -> None:
    """Write table and definition; the same rows for the same seed."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    batches = (_rows(first, min(BATCH, customers - first), seed) for first in range(0, customers, BATCH))
    head = next(batches)
    with pq.ParquetWriter(folder / TABLE, head.schema) as writer:
        writer.write_table(head)
        for batch in batches:
            writer.write_table(batch)
    text = _TEXT.format(folder=folder.resolve(), table=TABLE, key=KEY, target=TARGET, trials=trials, slots=slots)
    (folder / DEFINITION).write_text(text)


def _rows(first: int, customers: int, seed: int) -> pa.Table:
    """The rows of some customers: a linear signal of their own, and noise of about the same size."""
    import numpy as np
    import pyarrow as pa

    rng = np.random.default_rng([seed, first])
    X = rng.normal(rng.normal(0, 3, (customers, 1, 2)), rng.uniform(0.5, 20, (customers, 1, 2)), (customers, ROWS, 2))
    standard = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    signal = (standard * rng.normal(size=(customers, 1, 2))).sum(axis=2)
    y = signal + rng.normal(0, rng.uniform(0.5, 2.0, (customers, 1)), (customers, ROWS))
    keys = np.repeat(np.arange(first, first + customers, dtype=np.int64), ROWS)
    return pa.table({KEY: keys, "x0": X[:, :, 0].ravel(), "x1": X[:, :, 1].ravel(), TARGET: y.ravel()})
