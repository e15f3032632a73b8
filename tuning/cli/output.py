"""What commands print of a run: the leaderboard to stdout, where the rest is to stderr."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import click
import pandas as pd

from tuning.cli import exit_codes
from tuning.runs.plan_file import frozen_definition
from tuning.runs.results import RunResult
from tuning.tracking.settings import how_to_look, tracking_uri_of
from tuning.wording import shorten

if TYPE_CHECKING:
    from tuning.compare.comparison import Comparison

Counts: TypeAlias = Mapping[str, Any]  # `RunResult.summary`


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
        click.echo("\n".join(["", *_outcome(counts), *_where(result, ("records", "models"))]), err=True)
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


def show_leaderboard(result: RunResult, output: str) -> None:
    """Print a leaderboard."""
    board = result.leaderboard()
    if output == "csv":
        click.echo(board.to_csv(index=False), nl=False)
    elif output == "json":
        click.echo(board.to_json(orient="records", force_ascii=False))
    else:
        click.echo(table(board))


def table(board: pd.DataFrame) -> str:
    """A leaderboard for a terminal: one line per customer, with the parameters or the reason why there is no model."""
    shown = board[["customer", "status", "model", "cv_score", "test_score"]].copy()
    shown["default"], shown["gain"], shown["trials"] = board["default_test_score"], board["gain"], board["trials"]
    for name in ("cv_score", "test_score", "default", "gain"):
        shown[name] = shown[name].map(lambda value: "" if value != value or value is None else f"{value:.4g}")
    shown["customer"] = shown["customer"].map(lambda value: _cut(value, 30))
    shown["parameters or reason"] = [
        _cut(params if isinstance(params, str) and params else reason, 70)
        for params, reason in zip(board["params"], board["reason"], strict=True)
    ]
    shown = shown.astype(object).fillna("").astype(str)
    widths = {name: max(len(name), *shown[name].map(len), 0) for name in shown}
    left = {"customer", "status", "model", "parameters or reason"}
    rows = [dict(zip(shown, shown, strict=True)), *shown.to_dict("records")]
    return "\n".join(
        "  ".join(f"{row[name]:{'<' if name in left else '>'}{width}}" for name, width in widths.items()).rstrip()
        for row in rows
    )


def _cut(value: object, width: int) -> str:
    missing = value is None or value != value
    return "" if missing else shorten(" ".join(str(value).split()), width)


def _against_default(counts: Counts) -> list[str]:
    compared, worse = counts["compared_with_default"], counts["worse_than_default"]
    if not compared:
        return []
    if not worse:
        return [f"No winner of {compared} that beat the default in the search scores below it on the hold-out rows."]
    return [
        f"{worse} of the {compared} winners that beat the default in the search ({100 * worse / compared:.0f} %) score "
        "below it on the hold-out rows. More rows, more folds or `winner: one_standard_error` reduce this."
    ]


def _too_good(counts: Counts) -> list[str]:
    found = counts["too_good"]
    if not found:
        return []
    models = "1 model is" if found == 1 else f"{found} models are"
    return [f"{models} perfect on every fold. A column may tell the target: find it, and leave it out with `drop`."]


def _positive(counts: Counts) -> list[str]:
    if counts["positive"] is None:
        return []
    others = counts["other_positive"]
    more = f"; another one for {others} customers (column `positive`)" if others else ""
    return [f"positive     {counts['positive']!r}, the class that probability, precision and recall are about{more}"]


def _outcome(counts: Counts) -> list[str]:
    without = f", {counts['without_model']} without (the reason is in their row)" if counts["without_model"] else ""
    return [
        f"{counts['succeeded']} of {counts['customers']} customers have a model{without}; {counts['trials']} trials.",
        *_against_default(counts),
        *_too_good(counts),
        *_positive(counts),
    ]


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
