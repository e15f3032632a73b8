"""`tuning demo`: customers to try the program on, and the search for their models."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from tuning.cli.output import show_finished
from tuning.cli.program import Command
from tuning.cli.shared_options import output_option, progress_option
from tuning.definition.yaml_file import read_definition
from tuning.driver.runner import TuneRunner
from tuning.errors import DefinitionError

DEFINITION = """\
# Made by `tuning demo`. Change what you like, then: tuning run demo.yaml
name: demo
data: customers/*.csv  # one file per customer: a month of its accounts
target: churned
metric: roc_auc  # any scikit-learn scorer
trials: 12  # per customer
scheduler: asha
storage: runs
"""


@click.command(cls=Command)
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path), default="demo")
@progress_option
@output_option
def demo(folder: Path, progress: str, output: str) -> None:
    """Make 24 customers and their definition in FOLDER (default: demo), and train their models.

    FOLDER is new or empty, or one that this command has made: then its demo.yaml runs as it is. The exit code is 3,
    because three of the customers can have no model.
    """
    result = TuneRunner(read_definition(make_demo(folder))).run(progress=progress)
    sys.exit(show_finished(result, output))


def make_demo(folder: Path) -> Path:
    """Return the demo's definition, after writing it and its customers where it is missing."""
    from tuning.cli.demo_customers import write_customers

    definition = folder / "demo.yaml"
    if definition.exists():
        return definition
    try:
        if folder.exists() and any(folder.iterdir()):
            raise DefinitionError(
                f"{str(folder)!r} holds other files and no demo.yaml. Name a new or an empty folder: tuning demo FOLDER"
            )
        write_customers(folder / "customers")
        definition.write_text(DEFINITION, encoding="utf-8")  # last, so that it means that all is there
    except OSError as error:
        raise DefinitionError(f"{str(folder)!r} cannot be written: {error.strerror}. Name another folder.") from error
    return definition
