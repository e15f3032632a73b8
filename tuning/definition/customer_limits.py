"""What one customer may cost the others: time, memory, and the size of its data."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, TypeAlias

from pydantic import Field

from tuning.definition.fields import MOST_SECONDS
from tuning.definition.options import MOST_GB, Options
from tuning.errors import CustomerError
from tuning.notes import DataCode, Note

if TYPE_CHECKING:
    import numpy as np

Count: TypeAlias = "int | np.ndarray"  # of one customer, or of many at once
SIZE_LIMITS = {"max_rows": "rows", "max_columns": "columns"}  # key -> the field of an `Extent` that it limits
WAY_OUT = "raise it, if the machines have the memory"


@dataclass(frozen=True)
class Extent:
    """What is known of the size of a customer's data by now; None for what is not.

    Attributes:
        rows, columns: their numbers, as a header, statistics or the rows themselves tell them.
        whole: whether these are all; else there are as many at least.
    """

    rows: Count | None = None
    columns: Count | None = None
    whole: bool = True


class Limits(Options):
    """What one customer may cost the others."""

    trial_seconds: float | None = Field(
        None,
        gt=0,
        le=MOST_SECONDS,
        description="Time that a trial may train, in seconds. A trial that takes longer fails. By default only a "
        "trial that completes no step for ten minutes is ended, as a hang (docs/reliability.md).",
    )
    study_seconds: float | None = Field(
        None,
        gt=0,
        le=MOST_SECONDS,
        description="Wall time of a customer's study in seconds. A study that takes longer ends with the trials that "
        "it has. By default there is no limit.",
    )
    memory_gb: float | None = Field(
        None,
        ge=0.001,
        le=MOST_GB,
        description="Memory of one worker in GB (2^30 bytes), beyond what it holds at its start. A trial that needs "
        "more fails. By default it is a worker's share of 80 % of the free memory in packed placement, and no limit "
        "where trials are spread.",
    )
    crashes_before_quarantine: int = Field(
        2, ge=1, le=1000, description="After how many crashes of a worker in the same trial its study is given up."
    )
    max_rows: int = Field(
        5_000_000, ge=1, description="Most rows of one customer. A customer with more gets a reason instead of a model."
    )
    max_columns: int = Field(
        10_000, ge=1, description="Most columns of a table. A customer with more gets a reason instead of a model."
    )

    def check(self, what: str, extent: Extent) -> None:
        """Raise `CustomerError` where a limit of size is exceeded. what: the table, for the message."""
        for key, unit, count in _measured(extent):
            if count > (most := getattr(self, key)):
                code = DataCode.OVER_LIMIT if extent.whole else DataCode.AT_LEAST_OVER_LIMIT
                raise CustomerError(code(key, what=what, count=count, unit=unit, most=most, way_out=WAY_OUT))

    def allow_now(self, reason: Note) -> bool:
        """Return whether the limit that once refused a customer is larger here. reason: of `check`."""
        return bool(reason.values["most"] < getattr(self, reason.subject, 0))

    def exceeded(self, extent: Extent) -> Count:
        """Return whether a limit of size is exceeded; an array for an extent of many customers."""
        return reduce(or_, (count > getattr(self, key) for key, _, count in _measured(extent)), False)


def _measured(extent: Extent) -> Iterator[tuple[str, str, Count]]:
    """Yield the key of each limit that an extent can be held against, what it counts, and how many there are."""
    for key, unit in SIZE_LIMITS.items():
        if (count := getattr(extent, unit)) is not None:
            yield key, unit, count


UNLIMITED = Limits(**dict.fromkeys(SIZE_LIMITS, sys.maxsize))
