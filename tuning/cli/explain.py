"""`tuning explain`: which columns a customer's model looks at, or those of many customers."""

from __future__ import annotations

import json

import click
import pandas as pd

from tuning.cli.output import aligned, say_wait
from tuning.cli.program import Command
from tuning.cli.run_argument import run_and_customer, run_and_customer_arguments
from tuning.cli.shared_options import allow_code_option, output_option
from tuning.data.formats.csv_file import csv_text, guarded_frame
from tuning.runs.results import RunResult

IMPORTANCE = (
    "importance: how much worse {metric} is on the hold-out rows when the column's values are shuffled among them, the "
    "mean of ten times; std: their standard deviation; matters: more than two of these."
)
MATTERS_FOR = (
    "matters_for: customers whose score clearly falls when the column is shuffled; customers: those that have it; "
    "share: its part in all that shuffling costs a customer, the median."
)


@click.command(cls=Command)
@run_and_customer_arguments
@click.option("--column", metavar="COLUMN", help="With CUSTOMER: how the prediction changes with this column.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=50,
    show_default=True,
    metavar="N",
    help="Without CUSTOMER: how many customers are looked at, from all over.",
)
@allow_code_option
@output_option
def explain(
    names: tuple[str, ...], customer: str | None, column: str | None, most: int, allow_code: bool, output: str
) -> None:
    """Tell which columns matter in the run in folder RUN: for CUSTOMER, by default for how many customers.

    A column matters as much as the winner's score on the hold-out rows falls when the column's values are shuffled. The
    winner is fitted again for that, on the rows of the search. A single name is RUN where it is the folder of a run,
    else a customer of the newest run in `runs`.
    """
    run_dir, customer = run_and_customer(names, customer)
    result = RunResult(run_dir)
    say_wait("fitting the winner again, and asking it about the hold-out rows, which may take minutes")
    if column is not None:
        _show(result.customer(customer).partial_dependence(column, allow_code=allow_code), output)
    elif customer is not None or len(result.board()) == 1:
        _show(result.customer(customer).importance(allow_code=allow_code), output)
        click.echo(IMPORTANCE.format(metric=result.board().metric), err=True)
    else:
        table = result.importance(most, allow_code=allow_code)
        _show(table, output)
        click.echo(MATTERS_FOR, err=True)
        for name, reason in table.attrs["left_out"].items():
            click.echo(f"not explained: customer {name!r}: {reason}", err=True)


def _show(table: pd.DataFrame, output: str) -> None:
    if output == "json":
        click.echo(json.dumps(table.to_dict("records"), ensure_ascii=False, default=str))
    elif output == "csv":
        click.echo(csv_text(guarded_frame(table)), nl=False)
    else:
        click.echo("\n".join(aligned(list(table.columns), table.to_numpy(dtype=object).tolist())))
