"""Make the demo's sample of taxi trips, `tuning/cli/taxi_trips.csv`, from trip records of the NYC TLC.

python examples/make_taxi_sample.py TRIPS ZONES [--output tuning/cli/taxi_trips.csv]

TRIPS: a CSV or Parquet file of trip records, ZONES: a CSV file with the names of zones, each a path or an address. The
sample that ships is of March 2019, from two files of https://github.com/mwaskom/seaborn-data/tree/master/raw:
taxis.csv (6,500 trips) and taxi_zones.csv. Whole months: https://www.nyc.gov/site/tlc/about/tlc-trip-record-data.page
"""

from __future__ import annotations

import argparse

import pandas as pd

ZONES, MOST_TRIPS = 40, 240  # the zones with the most trips; trips of a zone, so that 300 kB hold all
LONGEST = 120.0  # minutes


def read(place: str) -> pd.DataFrame:
    return pd.read_parquet(place) if place.endswith(".parquet") else pd.read_csv(place)


def sample(trips: pd.DataFrame, zones: pd.DataFrame) -> pd.DataFrame:
    """Return the trips that begin in one of the zones with the most trips, with their duration in minutes."""
    names = zones.rename(columns=str.lower).drop_duplicates("locationid").set_index("locationid")["zone"]
    begin, end = (pd.to_datetime(trips[f"tpep_{side}_datetime"]) for side in ("pickup", "dropoff"))
    found = pd.DataFrame(
        {
            "zone": trips["PULocationID"].map(names),
            "to": trips["DOLocationID"].map(names),
            "weekday": begin.dt.strftime("%a"),
            "hour": begin.dt.hour,
            "miles": trips["trip_distance"],
            "passengers": trips["passenger_count"],
            "minutes": ((end - begin).dt.total_seconds() / 60).round(1),
        }
    )
    found = found[found["minutes"].between(0, LONGEST, inclusive="right")]
    found = found[found["zone"].isin(found["zone"].value_counts().index[:ZONES])]
    mixed = found.sample(frac=1, random_state=0)  # as they come they are by color of the taxi
    return mixed.groupby("zone").head(MOST_TRIPS).sort_values("zone", kind="stable")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trips")
    parser.add_argument("zones")
    parser.add_argument("--output", default="tuning/cli/taxi_trips.csv")
    asked = parser.parse_args()
    made = sample(read(asked.trips), read(asked.zones))
    made.to_csv(asked.output, index=False)
    print(f"{asked.output}: {len(made)} trips from {made['zone'].nunique()} zones")


if __name__ == "__main__":
    main()
