"""Where a group works: its placement group, and the rows as sharded Parquet, which its actors read for themselves.

Shards are named by the digest of what they hold, so that trials, folds and workers of a study write equal rows once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import numpy as np

from tuning.models.base import EncodedRows
from tuning.storage.run_directory import RunDirectory

if TYPE_CHECKING:
    import pyarrow as pa

    from tuning.models.group_training import GroupTraining, TrainingJob
    from tuning.models.worker_group import ActorGroup

LABEL, WEIGHT = "y", "weight"
LARGEST = np.finfo(np.float32).max


class GroupPlace(Protocol):
    """Where a worker group works, and who starts it."""

    @property
    def uri(self) -> str:
        """Of the run directory, which all nodes reach."""

    @property
    def folder(self) -> str:
        """For shards, in the run directory."""

    def train(self, works: Sequence[TrainingJob], worker_group: ActorGroup, family: str) -> GroupTraining:
        """Start a worker group that trains the models of a trial. family: of these models."""


_PLACES: list[GroupPlace] = []


@contextmanager
def groups_work_in(place: GroupPlace | None) -> Iterator[None]:
    """Meanwhile this process trains with worker groups; None changes nothing."""
    if place is None:
        yield
        return
    _PLACES.append(place)
    try:
        yield
    finally:
        _PLACES.remove(place)


def place_of_groups() -> GroupPlace | None:
    """Where worker groups work now; None where a process trains alone."""
    return _PLACES[-1] if _PLACES else None


def shards_of(rows: EncodedRows, count: int, place: GroupPlace) -> list[str]:
    """Return the names of the shards of rows in the run directory, written when they are not there yet.

    rows: to be divided: shard k has the rows k, k + count, k + 2 * count, … Their numbers are float32, which is what
    XGBoost makes of them; larger ones become its largest. Columns are `f0`, `f1`, … in order, `y`, and `weight` where
    rows have one.
    """
    key = ("shards", count, place.uri, place.folder)
    if key not in rows.cache:
        directory, named = RunDirectory(place.uri), f"{place.folder}/{_digest(rows)}-{count}"
        rows.cache[key] = [f"{named}/{number:05d}.parquet" for number in range(count)]
        for number, name in enumerate(rows.cache[key]):
            if not directory.exists(name):
                directory.write(name, _parquet(rows, slice(number, None, count)))
    return list(rows.cache[key])


def read_shards(names: Sequence[str], uri: str) -> pa.Table:
    """Return the rows of shards. uri: of the run directory."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    directory = RunDirectory(uri)
    return pa.concat_tables([pq.read_table(pa.BufferReader(directory.read(name))) for name in names])


def _digest(rows: EncodedRows) -> str:
    found = hashlib.blake2b(repr((rows.X.shape, rows.weight is None)).encode(), digest_size=16)
    for values in (rows.X, rows.y, rows.weight):
        if values is not None:
            found.update(np.ascontiguousarray(values).view(np.uint8).data)
    return found.hexdigest()


def _parquet(rows: EncodedRows, part: slice) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    X = np.clip(rows.X[part], -LARGEST, LARGEST).astype(np.float32)
    columns = {f"f{at}": X[:, at] for at in range(X.shape[1])}
    columns[LABEL] = rows.y[part]
    if rows.weight is not None:
        columns[WEIGHT] = rows.weight[part]
    written = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), written)
    return written.getvalue().to_pybytes()
