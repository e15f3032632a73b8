"""`tuning show`: everything about one customer."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator

import click

from tuning.basics.wording import users_lines
from tuning.cli.output import aligned, show_pages, window_width
from tuning.cli.program import Command
from tuning.cli.run_argument import run_and_customer, run_and_customer_arguments
from tuning.cli.shared_options import json_option
from tuning.notes import Note
from tuning.records.schema import as_row
from tuning.runs.customer_result import CustomerResult
from tuning.runs.results import RunResult


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
    """Texts whose lines fit the window, broken between words; lines of code keep their indent."""
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
    """The lines of the user's own code in those that the records keep, each once."""
    records = (*result.trial_records, result.study)
    return list(dict.fromkeys(users_lines(each.error) for each in records if each is not None and each.error))
