"""`tuning run`: the search."""

from __future__ import annotations

import sys
from typing import Unpack

import click

from tuning.cli.output import explain, show_finished
from tuning.cli.program import Command
from tuning.cli.shared_options import Overrides, definition_options, output_option, progress_option, read, strict_option
from tuning.driver.runner import TuneRunner
from tuning.errors import DefinitionError


@click.command(cls=Command)
@definition_options
@click.option("--run-dir", metavar="DIR", help="The run's folder (default: <storage>/<name>-<time>).")
@click.option("--resume", "again", is_flag=True, help="Resume when the folder already holds this run.")
@click.option("--in-process", is_flag=True, help="Without Ray, in this process, for debugging; see --customer.")
@strict_option
@progress_option
@output_option
def run(
    definition: str,
    run_dir: str | None,
    again: bool,
    in_process: bool,
    strict: bool,
    progress: str,
    output: str,
    **options: Unpack[Overrides],
) -> None:
    """Find the best model for every customer of DEFINITION."""
    if again and run_dir is None:
        raise DefinitionError("--resume needs --run-dir, the folder of the run to resume.")
    runner = TuneRunner(read(definition, **options))
    result = runner.run(run_dir, progress=progress, in_process=in_process, resume=again)
    if in_process and options["customer"]:
        explain(result)
    sys.exit(show_finished(result, output, strict=strict))
