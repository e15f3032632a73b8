"""`tuning run` and `tuning resume`: the search."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Unpack, cast

import click

from tuning.cli.output import explain, show_finished
from tuning.cli.program import Command
from tuning.cli.run_argument import run_argument
from tuning.cli.shared_options import (
    Overrides,
    changes_option,
    definition_options,
    output_option,
    progress_option,
    read,
    read_changes,
    running_options,
    strict_option,
)
from tuning.driver.runner import TuneRunner
from tuning.errors import DefinitionError

if TYPE_CHECKING:
    from tuning.definition.keywords import DefinitionKeys


@click.command(cls=Command)
@definition_options
@running_options
@strict_option
@output_option
def run(
    definition: str,
    run_dir: str | None,
    resume: bool,
    in_process: bool,
    strict: bool,
    progress: str,
    output: str,
    **options: Unpack[Overrides],
) -> None:
    """Find the best model for every customer of DEFINITION."""
    if resume and run_dir is None:
        raise DefinitionError("--resume needs --run-dir, the folder of the run to resume.")
    runner = TuneRunner(read(definition, **options))
    result = runner.run(run_dir, progress=progress, in_process=in_process, resume=resume)
    if in_process and options["customer"]:
        explain(result)
    sys.exit(show_finished(result, output, strict=strict))


@click.command(cls=Command)
@run_argument
@changes_option("Change what a resume may change, such as trials=80 or time_budget=2h.")
@click.option("--in-process", is_flag=True, help="Without Ray, in this process, for debugging.")
@strict_option
@progress_option
@output_option
def resume(run_dir: str, changes: tuple[str, ...], in_process: bool, strict: bool, progress: str, output: str) -> None:
    """Resume the run in folder RUN from its records."""
    keys = cast("DefinitionKeys", read_changes(changes))  # which are checked there
    result = TuneRunner.resume(run_dir, progress=progress, in_process=in_process, **keys)
    sys.exit(show_finished(result, output, strict=strict))
