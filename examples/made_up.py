"""Small made-up tables with the columns of real ones, for lessons and tests where the real ones are not at hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

PLANS = np.array(["basic", "plus", "business"])
REGIONS = np.array(["north", "south", "east", "west", "islands"])
PLACES = {"<1H OCEAN": 60_000, "INLAND": 0, "NEAR BAY": 80_000, "NEAR OCEAN": 70_000}  # what living there costs more


def housing(rows: int = 1000, seed: int = 0) -> pd.DataFrame:
    """Districts with the columns of California housing; one in a hundred has no `total_bedrooms`."""
    rng = np.random.default_rng(seed)
    place = rng.choice(list(PLACES), rows, p=[0.45, 0.3, 0.1, 0.15])
    latitude = rng.uniform(32.5, 42, rows)
    households = rng.lognormal(6, 0.5, rows).round()
    rooms = (households * rng.normal(5.3, 1, rows).clip(2)).round()
    income = rng.lognormal(1.25, 0.4, rows).round(4)
    crowd = rng.normal(3, 0.6, rows).clip(1.5)  # people per household
    value = 40_000 * income + pd.Series(place).map(PLACES) - 30_000 * (crowd - 3) * income.clip(0, 4)
    value = (value + rng.normal(0, 25_000, rows)).clip(15_000, 500_001)
    bedrooms = pd.Series((rooms / 5).round()).mask(rng.random(rows) < 0.01)
    return pd.DataFrame(
        {
            "longitude": (-119.5 - 1.1 * (latitude - 36) + rng.normal(0, 0.8, rows)).round(2),
            "latitude": latitude.round(2),
            "housing_median_age": rng.integers(1, 53, rows).astype(float),
            "total_rooms": rooms,
            "total_bedrooms": bedrooms,
            "population": (households * crowd).round(),
            "households": households,
            "median_income": income,
            "median_house_value": value.round(-2),
            "ocean_proximity": place,
        }
    )


def trips(month: int = 3, zones: int = 4, rows: int = 12, seed: int = 0) -> pd.DataFrame:
    """A month of taxi trips with the TLC's column names, `rows` from each of some zones and 3 from the last.

    Zones are numbered along a street, so a trip takes as long as their numbers differ: from one of its ends that is a
    line, from its middle it is not.
    """
    rng = np.random.default_rng([seed, month])
    start = np.repeat(np.linspace(1, 200, zones).astype(int), [*[rows] * (zones - 1), 3])
    end = rng.integers(1, 201, len(start))
    pickup = pd.Timestamp(2019, month, 1) + pd.to_timedelta(rng.integers(0, 28 * 86400, len(start)), unit="s")
    seconds = 120 + 8 * np.abs(end - start) + rng.exponential(90, len(start)).astype(int)
    return pd.DataFrame(
        {
            "tpep_pickup_datetime": pickup,
            "tpep_dropoff_datetime": pickup + pd.to_timedelta(seconds, unit="s"),
            "PULocationID": start,
            "DOLocationID": end,
        }
    )


def make_customer(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Return a month of one customer's accounts: did the account churn (yes/no)?

    Customers share the way churn comes about, but differ in how much each cause matters, in size and in noise.
    Missing values and text columns are everywhere.
    """
    plan = rng.choice(PLANS, rows, p=[0.5, 0.3, 0.2])
    tenure = rng.gamma(2.0, 10.0, rows).round(1)
    price = rng.normal(40, 12, rows).clip(5).round(2)
    tickets = rng.poisson(1.2, rows)
    usage = rng.lognormal(2.0, 0.6, rows).round(2)
    weights = rng.normal([-0.06, 0.03, 0.6, -0.05], [0.02, 0.01, 0.2, 0.02])
    effect = weights[0] * tenure + weights[1] * price + weights[2] * tickets + weights[3] * usage
    # What a linear model misses, a lot for some customers and hardly at all for others.
    effect += rng.uniform(0, 3) * (np.where((plan == "basic") == (tickets > 1), 0.7, -0.7) - np.abs(np.log(usage) - 2))
    effect += rng.normal(0, rng.uniform(0.3, 1.2), rows)
    churned = effect > np.quantile(effect, rng.uniform(0.6, 0.8))
    frame = pd.DataFrame(
        {
            "plan": plan,
            "region": rng.choice(REGIONS, rows),
            "tenure_months": tenure,
            "monthly_price": price,
            "tickets": tickets,
            "usage_hours": usage,
            "churned": np.where(churned, "yes", "no"),
        }
    )
    for column in ("tenure_months", "usage_hours", "region"):
        frame.loc[rng.random(rows) < 0.08, column] = None
    return frame


def write_customers(folder: Path, customers: int = 24, seed: int = 7) -> None:
    """Write customers (4 or more) as CSV files; of the last three one is no text, one has one class, one 3 rows."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for number in range(1, customers - 2):
        rows = int(rng.integers(200, 900))
        make_customer(rng, rows).to_csv(folder / f"customer-{number:02d}.csv", index=False)
    (folder / "customer-broken.csv").write_bytes(b"plan,region\n\xff\xfe\x00broken\x9d\n" * 5)
    make_customer(rng, 150).assign(churned="no").to_csv(folder / "customer-loyal.csv", index=False)
    make_customer(rng, 3).to_csv(folder / "customer-tiny.csv", index=False)
