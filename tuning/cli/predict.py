"""`tuning predict`: models on new rows: of a file, or of many files at once."""

from __future__ import annotations

import io
import sys

import click
import pyarrow as pa

from tuning.basics import exit_codes
from tuning.basics.wording import amount, duration, some_names
from tuning.cli.program import Command
from tuning.cli.run_argument import newest, run_and_customer, run_and_customer_arguments
from tuning.cli.shared_options import allow_code_option, formulas_option, storage_option
from tuning.data.file_access import is_same_file, located
from tuning.data.registry import check_writable
from tuning.errors import DataError
from tuning.models.residuals import PREDICTION
from tuning.notes import EndCode
from tuning.runs.prediction.answers import AnswerCounts, write_rows
from tuning.runs.prediction.files import BatchCounts, predict_files
from tuning.runs.prediction.models import CustomerModels
from tuning.runs.results import RunModels, RunResult
from tuning.serving.models import ReleaseModels
from tuning.storage.names import mask

MOST_NAMED = 20  # customers that got no predictions, on the terminal


@click.command(cls=Command)
@run_and_customer_arguments
@click.option(
    "--data",
    required=True,
    metavar="FILE",
    help="A file with the columns of the training data, in a format that `data` may have; with --release or --run "
    "also a folder, or a pattern such as 'new/*.parquet'.",
)
@click.option(
    "--output",
    metavar="FILE",
    help="File to write, in the format that its name ends in (default: CSV on stdout). With --release or --run the "
    "folder of the answers.",
)
@click.option(
    "--interval", type=float, metavar="SHARE",
    help="Of a regression also an interval, which the targets of this share of new rows lie within, such as 0.8.",
)  # fmt: skip
@click.option("--release", metavar="NAME", help="By the newest release of these champions, many files at once.")
@click.option("--run", metavar="RUN", help="By the models of this run, many files at once.")
@click.option("--pool", is_flag=True, help="By the run's pool alone, without customers' own models.")
@storage_option
@click.option("--processes", type=click.IntRange(min=1), help="With --release or --run: how many (default: the CPUs).")
@formulas_option("keep")
@allow_code_option
def predict(
    names: tuple[str, ...],
    customer: str | None,
    data: str,
    output: str | None,
    interval: float | None,
    release: str | None,
    run: str | None,
    pool: bool,
    storage: str,
    processes: int | None,
    formulas: str,
    allow_code: bool,
) -> None:
    """Predict the rows of FILE with CUSTOMER's model of the run in folder RUN, by default with each row's own one's.

    The answer is the rows with a column `prediction`, and one of probabilities per class where the model has them. With
    --interval there are `prediction_low` and `prediction_high`, too. A column that the rows have already keeps its
    values: the new one is then called `prediction_2`. Without CUSTOMER, the rows have the key columns. A single name is
    RUN where it is the folder of a run, else a customer of the newest run in `runs`.

    With --release or --run, all rows of many files are predicted in one pass by several processes. Each file's answer
    is a file of the same name in the folder --output, with the columns `answer` (own, pool, constant, none) and
    `release` or `run`, too. A repeat leaves alone what is done.
    """
    if release is None and run is None:
        _predict_file(names, customer, data, output, interval, pool, formulas, allow_code)
        return
    if release is not None and pool:
        raise click.UsageError("--pool is of a run; a release has the models that serve.")
    if release is not None and run is not None:
        raise click.UsageError("--release and --run are two sources of models: name one.")
    if names or customer is not None:
        raise click.UsageError("With --release or --run each row has its own customer's model; name no other one.")
    if output is None:
        raise click.UsageError("With --release or --run, --output names the folder of the answers.")
    models: CustomerModels
    if release is not None:
        models = ReleaseModels.current(release, storage, allow_code=allow_code)
    else:
        models = RunModels(RunResult(newest(run)), allow_code, pool)
    _tell(predict_files(models, data, output, processes=processes, interval=interval, formulas=formulas), output)


def _predict_file(
    names: tuple[str, ...],
    customer: str | None,
    data: str,
    output: str | None,
    interval: float | None,
    pool: bool,
    formulas: str,
    allow_code: bool,
) -> None:
    if output is not None:
        try:
            check_writable(output)
        except DataError as error:
            raise DataError(f"--output: {error}") from None
    if output is not None and is_same_file(output, data):
        raise DataError(f"--output: {mask(output)!r} is the file of --data; name another one.")
    run_dir, customer = run_and_customer(names, customer)
    answer = RunResult(run_dir).predicted(data, customer, allow_code=allow_code, interval=interval, pool=pool)
    _write(answer.table, output, formulas)
    if answer.column != PREDICTION:
        click.echo(f"the predictions are in {answer.column!r}: the rows have a column {PREDICTION!r}", err=True)
    _tell_exceptions(answer)
    if output is not None:
        said = f"{answer.predicted:,} of {amount(len(answer.answers), 'row')}"
        click.echo(f"{said} predicted, in {mask(output)}", err=True)
    if answer.without:
        sys.exit(exit_codes.SOME_WITHOUT_MODEL if answer.predicted else exit_codes.ALL_WITHOUT_MODEL)


def _tell(counts: BatchCounts, output: str) -> None:
    """Say what came of a batch, and leave with the exit code of that."""
    if counts.unchanged:
        click.echo(f"{amount(counts.unchanged, 'file')} done by an earlier pass, and left alone", err=True)
    if counts.files:
        said = f"{counts.predicted:,} of {amount(counts.rows, 'row')} predicted"
        click.echo(f"{said} in {amount(counts.files, 'file')}, in {mask(output)}", err=True)
        took = f"{duration(counts.seconds)}: {amount(round(counts.rows / counts.seconds), 'row')} per second"
        click.echo(f"{amount(len(counts.customers), 'customer')} in {took}", err=True)
    for name, reason in counts.broken.items():
        click.echo(f"no answer for the file {name!r}: {reason}", err=True)
    _tell_exceptions(counts)
    if counts.broken or counts.without:
        some = counts.predicted or counts.unchanged
        sys.exit(exit_codes.SOME_WITHOUT_MODEL if some else exit_codes.ALL_WITHOUT_MODEL)


def _tell_exceptions(found: AnswerCounts) -> None:
    """Say who got no predictions, and which predictions are exceptions."""
    for name, reason in list(found.without.items())[:MOST_NAMED]:
        why = reason.values["why"] if reason.code is EndCode.CUSTOMER_LACKS else reason
        click.echo(f"no prediction for customer {name!r}: {why}", err=True)
    if (more := len(found.without) - MOST_NAMED) > 0:
        click.echo(f"and for {amount(more, 'customer')} more", err=True)
    said = amount(found.predicted, "prediction")
    if found.pooled:
        who = f"{amount(len(found.pooled), 'customer')} without an own model"
        unit = "; where fewer than four targets are known, numbers are in the typical customer's unit"
        click.echo(f"the run's pool predicts the rows of {who}: {some_names([*found.pooled])}{unit}", err=True)
    if found.held_back:
        click.echo(f"{found.held_back:,} of {said} went beyond `bounds`, and were held there", err=True)
    if found.without_interval:
        why = "the pool's, a constant's of too few rows, or those of models that were fitted without a search"
        click.echo(f"{found.without_interval:,} of {said} without an interval: {why}", err=True)
    if found.unseen:
        columns = ", ".join(f"{name!r} in {amount(rows, 'row')}" for name, rows in found.unseen.items())
        click.echo(f"texts that no model here was trained with, and so knows nothing of: {columns}", err=True)


def _write(table: pa.Table, output: str | None, formulas: str) -> None:
    if output is None:
        content = io.BytesIO()
        write_rows(content, "answer.csv", [table], formulas=formulas)
        click.echo(content.getvalue(), nl=False)
        return
    try:
        filesystem, inner = located(output)
        with filesystem.open_output_stream(inner, compression=None) as stream:
            write_rows(stream, output, [table], formulas=formulas)
    except (OSError, ValueError) as error:
        raise DataError(f"--output: {mask(output)!r} cannot be written: {error}.") from error
