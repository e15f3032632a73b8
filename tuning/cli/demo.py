"""`tuning demo`: customers to try the program on, and the search for their models.

A customer is a taxi zone of New York, a row a trip that began there. The trips are in taxi_trips.csv, which
examples/make_taxi_sample.py has made; taxi_trips.txt says where they come from.
"""

from __future__ import annotations

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import click

from tuning.cli.output import show_finished
from tuning.cli.program import Command
from tuning.cli.shared_options import output_option, progress_option
from tuning.definition.yaml_file import read_definition
from tuning.driver.runner import TuneRunner
from tuning.errors import DefinitionError

TRIPS = Path(__file__).with_name("taxi_trips.csv")
DEFINITION = """\
# Made by `tuning demo`. Change what you like, then: tuning run demo.yaml
name: demo
data: customers/*.csv  # one file per customer: the trips that began in a taxi zone
target: minutes
metric: mae  # the mean error, in minutes; any scikit-learn scorer
trials: 8  # per customer
scheduler: asha
baseline: {baseline}  # compare with this model family at its defaults
pool: auto   # customers may learn from each other's rows; off keeps them apart
storage: runs
"""


@click.command(cls=Command)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default="demo")
@progress_option
@output_option
def demo(folder: Path, progress: str, output: str) -> None:
    """Write 43 customers and their definition to FOLDER (default: demo), and train their models.

    A customer is a taxi zone of New York, a row a trip: how many minutes does it take? FOLDER is new or empty, or one
    that this command has made: then its demo.yaml runs as it is. The exit code is 3, because three of the customers
    are broken and can have no model of their own.
    """
    result = TuneRunner(read_definition(make_demo(folder))).run(progress=progress)
    sys.exit(show_finished(result, output))


def make_demo(folder: Path, zones: int | None = None) -> Path:
    """Return the demo's definition, after writing it and its customers where it is missing.

    zones: that many with the most trips; all by default. Three broken customers come on top.
    """
    definition = folder / "demo.yaml"
    if definition.exists():
        return definition
    try:
        if folder.exists() and any(folder.iterdir()):
            raise DefinitionError(
                f"{str(folder)!r} holds other files and no demo.yaml. Name a new or an empty folder: tuning demo FOLDER"
            )
        _write_customers(folder / "customers", zones)
        baseline = "catboost" if find_spec("catboost") else "xgboost"
        text = DEFINITION.format(baseline=baseline)
        definition.write_text(text, encoding="utf-8")  # last, so that it means that all is there
    except OSError as error:
        raise DefinitionError(f"{str(folder)!r} cannot be written: {error.strerror}. Name another folder.") from error
    return definition


def _write_customers(folder: Path, zones: int | None) -> None:
    import pandas as pd

    folder.mkdir(parents=True, exist_ok=True)
    trips = pd.read_csv(TRIPS)
    for zone in trips["zone"].value_counts().index[:zones]:
        name = re.sub("[^a-z0-9]+", "-", zone.lower())
        trips[trips["zone"] == zone].drop(columns="zone").to_csv(folder / f"{name}.csv", index=False)
    some = trips.drop(columns="zone")
    (folder / "broken-file.csv").write_bytes(b"to,weekday\n\xff\xfe\x00broken\x9d\n" * 5)
    some[:60].assign(minutes=15.0).to_csv(folder / "broken-target.csv", index=False)
    some[:3].to_csv(folder / "broken-three-rows.csv", index=False)
