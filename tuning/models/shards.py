"""Where a gang works: its placement group, and the rows as sharded Parquet, which its actors read for themselves.

Shards are named by the digest of what they hold, so that trials, folds and workers of a study write equal rows once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tuning.models.base import Matrix

if TYPE_CHECKING:
    from ray.util.placement_group import PlacementGroup

LABEL, WEIGHT = "y", "weight"


@dataclass(frozen=True)
class Place:
    """Where a gang works.

    Attributes:
        group: the placement group: this process is in its first bundle, the actors are in those behind.
        folder: for shards; all nodes see it under the same path.
    """

    group: PlacementGroup
    folder: str


_PLACES: list[Place] = []


@contextmanager
def gangs_work_in(place: Place | None) -> Iterator[None]:
    """Meanwhile this process trains with gangs; None changes nothing."""
    if place is None:
        yield
        return
    _PLACES.append(place)
    try:
        yield
    finally:
        _PLACES.remove(place)


def place_of_gangs() -> Place | None:
    """Where gangs work now; None where a process trains alone."""
    return _PLACES[-1] if _PLACES else None


def shards_of(rows: Matrix, count: int, folder: str) -> list[str]:
    """The paths of a matrix's shards, written when they are not there yet.

    rows: to be divided: shard k has the rows k, k + count, k + 2 * count, … Their numbers are float32, which is what
    XGBoost makes of them. Columns are `f0`, `f1`, … in order, `y`, and `weight` where rows have one.
    """
    key = ("shards", count, folder)
    if key not in rows.cache:
        named = Path(folder) / f"{_digest(rows)}-{count}"
        if not named.is_dir():
            _write(rows, count, named)
        rows.cache[key] = [str(named / f"{number:05d}.parquet") for number in range(count)]
    return list(rows.cache[key])


def _digest(rows: Matrix) -> str:
    found = hashlib.blake2b(repr((rows.X.shape, rows.weight is None)).encode(), digest_size=16)
    for values in (rows.X, rows.y, rows.weight):
        if values is not None:
            found.update(np.ascontiguousarray(values).view(np.uint8).data)
    return found.hexdigest()


def _write(rows: Matrix, count: int, folder: Path) -> None:
    """Into a folder of its own first: what stands under the final name is whole."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        for number in range(count):
            part = slice(number, None, count)
            columns = {f"f{at}": rows.X[part, at].astype(np.float32) for at in range(rows.X.shape[1])}
            columns[LABEL] = rows.y[part]
            if rows.weight is not None:
                columns[WEIGHT] = rows.weight[part]
            pq.write_table(pa.table(columns), made / f"{number:05d}.parquet")
        os.replace(made, folder)
    except OSError:
        if not folder.is_dir():  # else another worker was faster with the same rows
            raise
    finally:
        shutil.rmtree(made, ignore_errors=True)
