"""What one customer may cost the others: time, memory, and the size of its data.

A limit of size is a field of `Limits` whose type carries a `SizeLimit`. Whoever learns something of a customer's data
says it as an `Extent`, and all limits that can be told from it are asked.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, TypeAlias

from pydantic import Field

from tuning.definition.fields import MOST_SECONDS
from tuning.definition.options import MOST_GB, Options
from tuning.errors import CustomerError
from tuning.notes import DataCode, Note

if TYPE_CHECKING:
    import numpy as np

Count: TypeAlias = "int | np.ndarray"  # of one customer, or of many at once


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


@dataclass(frozen=True)
class SizeLimit:
    """A limit of the size of a customer's data.

    Attributes:
        unit: what is counted, in the plural.
        measure: how many there are, if an extent tells it.
        way_out: what a customer beyond the limit can do.
    """

    unit: str
    measure: Callable[[Extent], Count | None]
    way_out: str = "raise it, if the machines have the memory"


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
    max_rows: Annotated[int, SizeLimit("rows", lambda extent: extent.rows)] = Field(
        5_000_000, ge=1, description="Most rows of one customer. A customer with more gets a reason instead of a model."
    )
    max_columns: Annotated[int, SizeLimit("columns", lambda extent: extent.columns)] = Field(
        10_000, ge=1, description="Most columns of a table. A customer with more gets a reason instead of a model."
    )

    def check(self, what: str, extent: Extent) -> None:
        """`CustomerError` where a limit of size is exceeded. what: the table that has this extent, for the message."""
        for key, limit, count in self._measured(extent):
            if count > (most := getattr(self, key)):
                code = DataCode.OVER_LIMIT if extent.whole else DataCode.AT_LEAST_OVER_LIMIT
                values = {"count": count, "unit": limit.unit, "most": most, "way_out": limit.way_out}
                raise CustomerError(code(key, what=what, **values))

    def allow_now(self, reason: Note) -> bool:
        """Return whether the limit that once refused a customer is larger here. reason: of `check`."""
        return bool(reason.values["most"] < getattr(self, reason.subject, 0))

    def exceeded(self, extent: Extent) -> Count:
        """Whether a limit of size is exceeded; of an extent of many customers, of which of them."""
        return reduce(or_, (count > getattr(self, key) for key, _, count in self._measured(extent)), False)

    @staticmethod
    def _measured(extent: Extent) -> Iterator[tuple[str, SizeLimit, Count]]:
        for key, limit in SIZE_LIMITS.items():
            if (count := limit.measure(extent)) is not None:
                yield key, limit, count


SIZE_LIMITS = {
    name: each for name, field in Limits.model_fields.items() for each in field.metadata if isinstance(each, SizeLimit)
}
UNLIMITED = Limits(**dict.fromkeys(SIZE_LIMITS, sys.maxsize))
