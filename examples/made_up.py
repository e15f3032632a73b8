"""Small made-up tables with the columns of real ones, for lessons and tests where the real ones are not at hand."""

from __future__ import annotations

import numpy as np
import pandas as pd

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
