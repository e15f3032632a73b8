"""What tests of data shapes share: a table with keys, and each customer's rows as workers read them."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from tuning.basics.columnar import Columnar
from tuning.data.customers import Customer, find_customers, places_of
from tuning.data.fingerprints import differ, digested, touched
from tuning.data.formats.csv_file import csv_text
from tuning.data.formats.memory_frame import to_arrow
from tuning.data.loading import Loader
from tuning.data.partition import partition
from tuning.data.registry import file_source
from tuning.definition.definition import Definition, define
from tuning.planning.placement import make_batches
from tuning.planning.plan import make_plan
from tuning.storage.run_directory import RunDirectory


def definition(data: Any, **fields: Any) -> Definition:
    return define({"data": data, "target": "y", "slots": 2, "task": "regression", **fields})


def placed(made: Definition, folder: Path) -> list[Customer]:
    directory = RunDirectory(str(folder / "run"))
    directory.create()
    return partition(made, find_customers(made), directory)


def rows_of(made: Definition, folder: Path) -> dict[str, pd.DataFrame]:
    """Each customer's rows, read as workers do: batch by batch."""
    found = placed(made, folder)
    studies = make_plan(made, found).studies
    frames = {}
    for batch in make_batches(studies, 2):
        customers = [studies[position].customer for position in batch]
        loader = Loader(made, customers)
        frames |= {customer.id: loader.read(customer) for customer in customers}
    return frames


def known(made: Definition) -> dict[str, Customer]:
    """The customers with what their rows are known by, by id."""
    return {customer.id: customer for customer in digested(made, find_customers(made))}


def changed_since(made: Definition, before: dict[str, Customer]) -> list[str]:
    """Whose rows are not what they were."""
    now = touched(made, list(before.values()), find_customers(made).take(places_of(list(before), find_customers(made))))
    return now.take(differ(Columnar.of(Customer, [before[one.id] for one in now]), now)).texts("id").to_pylist()


def write_frame(frame: pd.DataFrame, path: object) -> None:
    """Write a frame into a file of the format that its name has; CSV as pandas does."""
    source = file_source(str(path), {})
    if source.title == "CSV":
        frame = pd.read_csv(io.StringIO(csv_text(frame)), dtype=str, keep_default_na=False)
    table = to_arrow(frame)
    with open(str(path), "wb") as stream:
        source.write(stream, [table])


def trips(rows: int = 300, zones: int = 7, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "zone": rng.integers(0, zones, rows),
            "x": rng.normal(size=rows).round(6),
            "color": rng.choice(["yellow", "green"], rows),
            "y": np.arange(rows, dtype=float),
        }
    )


def check(frames: dict[str, pd.DataFrame], table: pd.DataFrame, zones: pd.Series) -> None:
    """Every zone has exactly its rows, in the table's order."""
    assert set(frames) == set(zones)
    for zone, frame in frames.items():
        expected = table[zones.to_numpy() == zone]
        assert frame["y"].tolist() == expected["y"].tolist()
        assert frame["x"].tolist() == expected["x"].tolist()
        assert frame["color"].tolist() == expected["color"].tolist()
