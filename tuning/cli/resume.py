"""`tuning resume`: going on with a run."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, cast

import click

from tuning.cli.output import show_finished
from tuning.cli.program import Command
from tuning.cli.run_argument import run_argument
from tuning.cli.shared_options import changes_option, output_option, progress_option, read_changes, strict_option
from tuning.driver.runner import TuneRunner

if TYPE_CHECKING:
    from tuning.definition.keywords import DefinitionKeys


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
