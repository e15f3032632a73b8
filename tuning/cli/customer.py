"""`tuning show` and `tuning explain`: one customer of a run."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator

import click
import pandas as pd

from tuning.basics.wording import users_lines
from tuning.cli.output import aligned, say_wait, show_pages, window_width
from tuning.cli.program import Command
from tuning.cli.run_argument import run_and_customer, run_and_customer_arguments
from tuning.cli.shared_options import allow_code_option, json_option, output_option
from tuning.data.formats.csv_file import csv_text
from tuning.notes import Note
from tuning.records.schema import as_row
from tuning.runs.customer_result import CustomerResult
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
@json_option
def show(names: tuple[str, ...], customer: str | None, output: str) -> None:
    """Tell everything about CUSTOMER in the run in folder RUN: its model, scores, notes, and every trial.

    A single name is RUN where it is the folder of a run, else a customer of the newest run in `runs`. CUSTOMER may be
    left out where the run has a single one.
    """
    run_dir, customer = run_and_customer(names, customer)
    result = RunResult(run_dir).customer(customer)
    if output == "json":
        told = {
            "customer": result.customer,
            "study": None if result.study is None else as_row(result.study),
            "params": result.params,
            "verdict": result.verdict,
            "reason": result.reason,
            "trials": [as_row(record) for record in result.trial_records],
        }
        click.echo(json.dumps(told, ensure_ascii=False, default=_plain))
        return
    show_pages(_lines(result, window_width()))


def _plain(value: object) -> object:
    return value.to_dict() if isinstance(value, Note) else str(value)


def _lines(result: CustomerResult, width: int | None) -> Iterator[str]:
    yield from _wrapped([str(result)], width)
    for table in (aligned(("", ""), result.facts(), width), aligned(*result.best_trials(), width)):
        lines = list(table)
        yield from ("", *lines) if lines else ()
    for title, texts in (("notes", [str(note) for note in result.notes]), ("raised in", _tracebacks(result))):
        yield from ("", f"{title}:", *_wrapped(texts, width)) if texts else ()


def _wrapped(texts: Iterable[str], width: int | None) -> Iterator[str]:
    """Break texts between words so that they fit the window; lines of code keep their indent."""
    for text in texts:
        for line in text.splitlines():
            indent = line[: len(line) - len(line.lstrip())]
            yield from (
                [line]
                if width is None
                else textwrap.wrap(
                    line, width, subsequent_indent=f"{indent}  ", break_long_words=False, break_on_hyphens=False
                )
                or [""]
            )


def _tracebacks(result: CustomerResult) -> list[str]:
    """Return the lines of the user's own code in recorded tracebacks, each once."""
    records = (*result.trial_records, result.study)
    return list(dict.fromkeys(users_lines(each.error) for each in records if each is not None and each.error))


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
        click.echo(csv_text(table, exact=False), nl=False)
    else:
        click.echo("\n".join(aligned(list(table.columns), table.to_numpy(dtype=object).tolist())))
