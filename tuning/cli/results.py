"""`tuning leaderboard`, `report`, `runs` and `delete`: what came of runs."""

from __future__ import annotations

import json
import sys

import click

from tuning.basics.wording import command, did_you_mean
from tuning.cli.output import aligned, say_wait, show_leaderboard
from tuning.cli.program import Command
from tuning.cli.run_argument import STORAGE, newest, run_argument
from tuning.cli.shared_options import formulas_option, json_option, output_option
from tuning.errors import PlanError, RunError
from tuning.runs.leaderboard import LEADERBOARD
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult
from tuning.serving.kept_runs import KEPT, delete_unneeded
from tuning.storage.run_directory import RunDirectory

COLUMNS = ("run", "last worked on", "state", "customers", "succeeded", "trials", "wall_seconds", "reason")


def _column(_: click.Context, __: click.Parameter, given: str) -> str:
    if given not in LEADERBOARD:
        hint = did_you_mean(given, LEADERBOARD)
        raise click.BadParameter(f"{given!r} is no column.{hint} There are {', '.join(LEADERBOARD)}.")
    return given


@click.command(cls=Command)
@run_argument
@click.option(
    "--sort",
    default="customer",
    show_default=True,
    metavar="COLUMN",
    callback=_column,
    shell_complete=lambda _, __, begun: [name for name in LEADERBOARD if name.startswith(begun)],
    help="Any column, such as gain, test_score, seconds or model: better values first.",
)
@formulas_option("guard")
@output_option
def leaderboard(run_dir: str, sort: str, formulas: str, output: str) -> None:
    """Print the leaderboard of the run in folder RUN: one row per customer.

    By default the customers with a model come first, in the order of their ids.
    """
    result = RunResult(run_dir)
    if frozen_definition(result.directory).compare is not None:
        raise PlanError(
            f"{result.directory.shown} compares algorithms, so it has no leaderboard of models. "
            f"Its report: {command('compare', '--from-run', result.directory.shown)}"
        )
    show_leaderboard(result, output, sort, formulas=formulas)


@click.command(cls=Command)
@run_argument
@click.option("--customer", metavar="ID", help="Write one customer's report into `reports/` there, and print its path.")
def report(run_dir: str, customer: str | None) -> None:
    """Write the report of the run in folder RUN: one HTML file that opens without a network, `report.html` there.

    It is written at the end of every run, too, unless the definition says `report: false`. Prints where it is. Of one
    customer it shows what was tried, predicted against actual on the hold-out rows, and what matters: the winner is
    fitted again for that.
    """
    from tuning.runs.report.page import write_report

    result = RunResult(run_dir)
    if frozen_definition(result.directory).compare is not None:
        raise PlanError(
            f"{result.directory.shown} compares algorithms, and has a report of its own: "
            f"{command('compare', '--from-run', result.directory.shown)}"
        )
    if customer is None:
        click.echo(write_report(result))
        return
    from tuning.runs.report.customer import write_customer_report

    say_wait("fitting the winner again, to ask it about the hold-out rows")
    click.echo(write_customer_report(result, customer))


@click.command(cls=Command)
@click.argument("storage", metavar="[FOLDER]", default=STORAGE)
@click.option("--most", type=click.IntRange(min=1), default=20, show_default=True, metavar="N", help="How many.")
@json_option
def runs(storage: str, most: int, output: str) -> None:
    """List the runs in FOLDER (default: runs), the newest first, with what came of each."""
    from tuning.runs.listing import runs_in

    found = runs_in(storage)
    shown = [
        {"run": run.path, "last worked on": f"{run.worked:%Y-%m-%d %H:%M}", **run.outcome()} for run in found[:most]
    ]
    if output == "json":
        click.echo(json.dumps(shown, ensure_ascii=False))
        return
    for line in aligned(COLUMNS, [[row.get(name) for name in COLUMNS] for row in shown]):
        click.echo(line)
    if not shown:
        click.echo(f"no run in {storage}", err=True)
    if len(found) > most:
        click.echo(f"… and {len(found) - most} older ones: --most {len(found)}", err=True)


@click.command(cls=Command)
@click.argument("run_dir", metavar="RUN")
@click.option("--yes", is_flag=True, help="Delete without asking, which a script has to say.")
@click.option(
    "--keep",
    type=click.IntRange(min=1),
    default=KEPT,
    show_default=True,
    metavar="N",
    help="Newest releases of champions whose runs are not deleted.",
)
@json_option
def delete(run_dir: str, yes: bool, keep: int, output: str) -> None:
    """Delete the folder RUN with the run in it: records, models and reports.

    A run that somebody works on is refused, and one that champions need. A deletion that was cut off is finished by the
    same command. What was copied to an MLflow elsewhere stays there.
    """
    directory = RunDirectory(newest(run_dir))
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"{directory.shown} would be deleted for good: say --yes, since nobody can be asked here."
            )
        click.confirm(f"Delete {directory.shown} for good?", abort=True, err=True)
    if not delete_unneeded(directory, keep):
        raise RunError(f"{directory.shown} is not a run directory, so nothing was deleted.")
    click.echo(json.dumps({"deleted": directory.shown}) if output == "json" else f"deleted {directory.shown}")
