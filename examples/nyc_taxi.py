"""The target of examples/nyc_taxi.yaml: a trip's duration, derived from two columns of the table."""

from __future__ import annotations

import pandas as pd


def trip_duration(trips: pd.DataFrame) -> pd.DataFrame:
    """Add `duration`: dropoff minus pickup, in seconds."""
    pickup = pd.to_datetime(trips["tpep_pickup_datetime"])
    dropoff = pd.to_datetime(trips["tpep_dropoff_datetime"])
    return trips.assign(duration=(dropoff - pickup).dt.total_seconds())
