"""`tuning mlflow …`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import click

EXIT_INCOMPLETE = 1


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def mlflow() -> None:
    """The copy of a run's records in MLflow."""


@mlflow.command("sync")
@click.argument("run_dir", metavar="RUN")
@click.option("--tracking-uri", metavar="URI", help="Another store than the definition's.")
@click.option("--experiment", metavar="NAME", help="Another experiment than the definition's.")
@click.option("--record-trials", metavar="WHICH", help="all, top:K (the best K of each study) or none.")
@click.option("--models", type=click.Choice(["auto", "all", "none"]), help="Which winners to log as MLflow models.")
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a store that does not answer.",
)
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def sync_command(run_dir: str, patience: float, output: str, **changes: Any) -> None:
    """Complete the copy of the run in folder RUN, from its records. Doing it twice changes nothing.

    Exit code 0 when nothing is missing, else 1.
    """
    from tuning.tracking.copy.sync import sync_run

    line = _Line()
    report = sync_run(
        run_dir,
        tracking_uri=changes["tracking_uri"],
        experiment=changes["experiment"],
        record_trials=changes["record_trials"],
        record_models=changes["models"],
        patience=patience,
        progress=line.show,
    )
    line.end()
    status = report.status
    if output == "json":
        click.echo(json.dumps({**asdict(report), "complete": report.complete}))
    elif report.complete:
        click.echo(
            f"complete: {status.trials} trials, {status.studies} studies and {status.models} models of "
            f"{report.parts} record parts are in {report.where} ({report.seconds:.1f} s)."
        )
    if not report.complete:
        click.echo(
            f"incomplete: {status.missing or 'unknown'} are not in {report.where}. "
            f"{status.error or 'The writer ended without an error.'}\nRun the command again when that is "
            "repaired; what is copied stays.",
            err=True,
        )
        raise SystemExit(EXIT_INCOMPLETE)


class _Line:
    """One line on stderr that tells how far the copy is, on a terminal only."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def show(self, status: Any) -> None:
        if self.shown:
            text = f"{status.trials} trials, {status.models} models, {status.pending} parts left"
            if not status.healthy:
                text += f"; waiting: {status.error}"
            click.echo(f"\r\x1b[K{text.splitlines()[0][:100]}", err=True, nl=False)

    def end(self) -> None:
        if self.shown:
            click.echo("\r\x1b[K", err=True, nl=False)
