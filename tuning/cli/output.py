"""What commands print of a run: the leaderboard to stdout, where the rest is to stderr."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from tuning.cli import exit_codes
from tuning.runs.leaderboard import LEADERBOARD, Row
from tuning.runs.outcome import sentences
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult
from tuning.tracking.settings import how_to_look, tracking_uri_of
from tuning.wording import shorten

if TYPE_CHECKING:
    from tuning.compare.comparison import Comparison


def show_finished(result: RunResult, output: str) -> int:
    """Print what came of a run: the report of a comparison, else its leaderboard or counts; the exit code."""
    if frozen_definition(result.directory).compare is not None:
        from tuning.compare.on_data import keep

        return show_comparison(keep(result), output, result)
    counts = result.summary()
    if output == "json":
        click.echo(json.dumps(counts))
    else:
        show_leaderboard(result, output)
        click.echo("\n".join(["", *sentences(result, counts), *_where(result, ("records", "models"))]), err=True)
    return exit_codes.of_models(counts["customers"], counts["succeeded"])


def show_comparison(found: Comparison, output: str, result: RunResult | None = None) -> int:
    """Print a comparison and, if it was just run, where all is; the exit code."""
    if output == "json":
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False, allow_nan=False))
    elif output == "csv":
        click.echo(found.table().to_csv(), nl=False)
    else:
        click.echo(found.text())
        if result is not None:
            from tuning.compare.on_data import CURVES, PAGE

            click.echo("\n".join(["", *_where(result, (PAGE, CURVES, "records"))]), err=True)
    return exit_codes.of_searches(0 if found.unfinished is None else found.unfinished.searches)


def explain(result: RunResult) -> None:
    """The tracebacks that the records keep, each once: what somebody who debugs a customer wants to see."""
    reasons = {
        (record.customer, record.reason): record.error
        for records in (result.study_records, result.trial_records)
        for record in records
        if record.error
    }
    for (customer, reason), error in reasons.items():
        click.echo(f"customer {customer!r}: {reason}\n{error}", err=True)


def show_leaderboard(result: RunResult, output: str, sort: str = "customer") -> None:
    """Print a leaderboard. sort: as of `RunResult.leaderboard`."""
    if output == "csv":
        for piece in result.board(sort).csv:
            click.echo(piece, nl=False)
    elif output == "json":
        rows = [{name: _plain(value) for name, value in row.items()} for row in result.rows(sort)]
        click.echo(json.dumps(rows, ensure_ascii=False))
    else:
        click.echo(table(result.rows(sort), _window()))


LAST = "parameters or reason"
LEFT = {"customer", "status", "model", "baseline", LAST}
LAST_WIDTH, LAST_LEAST = 70, 20
#: What a narrow window does without, in this order.
SPARED = ("trials", "baseline", "baseline_score", "status", "model")


def table(rows: Sequence[Row], width: int | None = None) -> str:
    """A leaderboard for a terminal: the metric, then a line per customer with its parameters, or why it has no model.

    rows: `RunResult.rows`. width: characters that fit into a line; None is no limit.
    """
    lines = [_line(row) for row in rows]
    names = [*_line(dict.fromkeys(LEADERBOARD))]
    widths = {name: max(len(name), *(len(line[name]) for line in lines), 0) for name in names}
    if width is None:
        widths[LAST] = min(widths[LAST], LAST_WIDTH)
    else:
        spared = iter(SPARED)
        while sum(widths[name] + 2 for name in names if name != LAST) + LAST_LEAST > width:
            if (name := next(spared, None)) is None:
                break
            names.remove(name)
        others = sum(widths[name] + 2 for name in names if name != LAST)
        widths[LAST] = min(widths[LAST], max(LAST_LEAST, width - others))
    text = [
        "  ".join(
            f"{shorten(line[name], widths[name]):{'<' if name in LEFT else '>'}{widths[name]}}" for name in names
        ).rstrip()
        for line in [{name: name for name in names}, *lines]
    ]
    heading = f"{rows[0]['metric']}, {_BETTER[str(rows[0]['mode'])]} is better{_positive(rows)}" if rows else ""
    return "\n".join(line if width is None else shorten(line, width) for line in [heading, *text])


_BETTER = {"max": "larger", "min": "smaller"}


def _positive(rows: Sequence[Row]) -> str:
    """The positive class of most customers, which is what probability, precision and recall are about."""
    found = Counter(str(row["positive"]) for row in rows if row["positive"] is not None)
    if not found:
        return ""
    ((most, times),) = found.most_common(1)
    others = f", another one for {found.total() - times} customers" if len(found) > 1 else ""
    return f", positive class {most!r}{others}"


def _line(row: Row) -> dict[str, str]:
    """What a line of the table shows, by column."""
    params = row["params"]
    return {
        **{name: shorten(_one_line(row[name]), 30) for name in ("customer", "status", "model")},
        **{name: _figure(row[name]) for name in ("cv_score", "test_score")},
        "baseline": shorten(_one_line(row["baseline"]), 30),
        "baseline_score": _figure(row["baseline_test_score"]),
        "gain": _figure(row["gain"]),
        "trials": _one_line(row["trials"]),
        LAST: params_text(params) if isinstance(params, dict) and params else _one_line(row["reason"]),
    }


def params_text(params: Mapping[str, object]) -> str:
    """A configuration as a short line, its numbers rounded."""
    values = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in params.items()}
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _figure(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) and math.isfinite(value) else ""


def _one_line(value: object) -> str:
    return "" if value is None else " ".join(str(value).split())


def _plain(value: object) -> object:
    """A value as JSON knows it, which has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _window() -> int | None:
    """Characters in a line of the terminal; None where nobody looks, such as in a pipe."""
    return shutil.get_terminal_size((0, 0)).columns or None


def _where(result: RunResult, names: Iterable[str]) -> list[str]:
    """Where these files and folders of a run are, if they are there, and how to look at it otherwise."""
    lines = [
        f"{name.partition('.')[0]:<11}  {result.directory.display(name)}"
        for name in names
        if result.directory.exists(name)
    ]
    definition = frozen_definition(result.directory)
    if definition.compare is None:
        lines.append(f"leaderboard  tuning leaderboard {result.directory.shown}")
    if definition.mlflow.enabled:
        uri = tracking_uri_of(result.directory, definition.mlflow.tracking_uri)
        lines.append(f"mlflow       {how_to_look(uri, definition.mlflow.experiment or definition.name)}")
    return lines
