"""`tuning predict`: a customer's model on new rows."""

from __future__ import annotations

import sys

import click
import pandas as pd

from tuning.basics.wording import amount, without_text
from tuning.cli import exit_codes
from tuning.cli.program import Command
from tuning.cli.run_argument import run_and_customer, run_and_customer_arguments
from tuning.cli.shared_options import allow_code_option, formulas_option
from tuning.data.file_access import is_same_file
from tuning.data.formats.csv_file import csv_text, guarded_frame
from tuning.data.registry import check_writable, format_of
from tuning.errors import DataError
from tuning.models.residuals import PREDICTION
from tuning.runs.prediction import predict_rows
from tuning.runs.results import RunResult
from tuning.storage.names import mask


def _writable(_: click.Context, __: click.Parameter, output: str | None) -> str | None:
    if output is not None:
        try:
            check_writable(output)
        except DataError as error:
            raise DataError(f"--output: {error}") from None
    return output


@click.command(cls=Command)
@run_and_customer_arguments
@click.option(
    "--data",
    required=True,
    metavar="FILE",
    help="A file with the columns of the training data, in a format that `data` may have.",
)
@click.option(
    "--output", metavar="FILE", callback=_writable, is_eager=True,
    help="File to write, in the format that its name ends in (default: CSV on stdout).",
)  # fmt: skip
@click.option(
    "--interval", type=float, metavar="SHARE",
    help="Of a regression also an interval, which the targets of this share of new rows lie within, such as 0.8.",
)  # fmt: skip
@formulas_option("keep")
@allow_code_option
def predict(
    names: tuple[str, ...],
    customer: str | None,
    data: str,
    output: str | None,
    interval: float | None,
    formulas: str,
    allow_code: bool,
) -> None:
    """Predict the rows of FILE with CUSTOMER's model of the run in folder RUN, by default with each row's own one's.

    The answer is the rows with a column `prediction`, and one of probabilities per class where the model has them. With
    --interval there are `prediction_low` and `prediction_high`, too. A column that the rows have already keeps its
    values: the new one is then called `prediction_2`. Without CUSTOMER, the rows have the key columns. A single name is
    RUN where it is the folder of a run, else a customer of the newest run in `runs`.
    """
    if output is not None and is_same_file(output, data):
        raise DataError(f"--output: {mask(output)!r} is the file of --data; name another one.")
    run_dir, customer = run_and_customer(names, customer)
    answer = predict_rows(RunResult(run_dir), data, customer, allow_code=allow_code, interval=interval)
    _write(answer.rows if formulas == "keep" else guarded_frame(answer.rows), output)
    if answer.column != PREDICTION:
        click.echo(f"the predictions are in {answer.column!r}: the rows have a column {PREDICTION!r}", err=True)
    for name, reason in answer.without.items():
        why = reason.removeprefix(without_text(name, "model", ""))
        click.echo(f"no prediction for customer {name!r}: {why}", err=True)
    if answer.held_back:
        said = amount(len(answer.rows), "prediction")
        click.echo(f"{answer.held_back:,} of {said} went beyond `bounds`, and were held there", err=True)
    if output is not None:
        said = f"{int(answer.rows[answer.column].notna().sum()):,} of {amount(len(answer.rows), 'row')}"
        click.echo(f"{said} predicted, in {mask(output)}", err=True)
    if answer.without:
        some = answer.rows[answer.column].notna().any()
        sys.exit(exit_codes.SOME_WITHOUT_MODEL if some else exit_codes.ALL_WITHOUT_MODEL)


def _write(frame: pd.DataFrame, output: str | None) -> None:
    if output is None:
        click.echo(csv_text(frame), nl=False)
        return
    try:
        format_of(output).write(frame, output)
    except (OSError, ValueError) as error:
        raise DataError(f"--output: {mask(output)!r} cannot be written: {error}.") from error
