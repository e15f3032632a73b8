"""`tuning report`: a run as one page."""

from __future__ import annotations

import click

from tuning.basics.wording import command
from tuning.cli.output import say_wait
from tuning.cli.program import Command
from tuning.cli.run_argument import run_argument
from tuning.errors import PlanError
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult


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
