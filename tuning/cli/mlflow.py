"""`tuning mlflow …`."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

import click

from tuning.basics.wording import amount, command
from tuning.cli.program import Command
from tuning.cli.run_argument import run_argument

if TYPE_CHECKING:
    from tuning.storage.run_directory import RunDirectory
    from tuning.tracking.copy.sync import SyncReport
    from tuning.tracking.settings import CopyStatus, TrackingSettings

EXIT_INCOMPLETE = 1
NICENESS = 10  # when all cores are busy with fits, a copy that follows a run waits


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def mlflow() -> None:
    """The copy of a run's records, and of releases, in MLflow."""


@mlflow.command("sync", cls=Command)
@run_argument
@click.option("--tracking-uri", metavar="URI", help="Another store than the definition's.")
@click.option("--experiment", metavar="NAME", help="Another experiment than the definition's.")
@click.option("--record-trials", metavar="WHICH", help="auto, all, top:K (the best K of each study) or none.")
@click.option(
    "--models",
    "record_models",
    type=click.Choice(["auto", "all", "none"]),
    help="Which winners to log as MLflow models.",
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait for a store that does not answer.",
)
@click.option("--follow", "following", is_flag=True, help="Go on until the run has ended, copying what it records.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def sync_command(run_dir: str, patience: float, following: bool, output: str, **changes: str | None) -> None:
    """Complete the copy of the run in folder RUN, from its records. Doing it twice changes nothing.

    RUN may also be a folder of champions, such as runs/champions/churn: then it is the copy of their newest release.
    Exit code 0 when nothing is missing, else 1. With `--follow --output json`, a line {"status": …} tells every change.
    """
    from tuning.storage.run_directory import RunDirectory
    from tuning.tracking.copy.live import handed_settings
    from tuning.tracking.copy.sync import sync_run
    from tuning.tracking.release_copy import is_champions

    settings = None if following else handed_settings()
    directory = RunDirectory(run_dir if settings is None else settings.directory)
    if not following and is_champions(directory):
        _sync_release(settings, directory, changes, patience, output)
        return
    show = _JsonLines() if output == "json" and following else _Line()
    with contextlib.redirect_stdout(sys.stderr):  # MLflow prints
        if following:
            report = _follow(run_dir, patience, show, changes)
        else:
            report = sync_run(run_dir, patience=patience, progress=show, **changes)
    show.end()
    _tell(report, output, run_dir)
    if following:
        _leave(0 if report.complete else EXIT_INCOMPLETE)
    if not report.complete:
        raise SystemExit(EXIT_INCOMPLETE)


def _sync_release(
    settings: TrackingSettings | None,
    directory: RunDirectory,
    changes: dict[str, str | None],
    patience: float,
    output: str,
) -> None:
    from tuning.serving.releases import Releases
    from tuning.tracking.release_copy import copy_releases, release_settings

    releases = Releases.of_folder(directory)
    settings = settings or release_settings(releases, changes["tracking_uri"], changes["experiment"])
    with contextlib.redirect_stdout(sys.stderr):  # MLflow prints
        report = copy_releases(settings, patience)
    if output == "json":
        click.echo(json.dumps({"report": asdict(report), "complete": not report.error}))
    elif not report.error:
        click.echo(
            f"complete: release {report.release} of {releases.name} is in {report.where} ({report.seconds:.1f} s)."
        )
    else:
        click.echo(
            f"incomplete: release {report.release} of {releases.name} is not in {report.where}. {report.error}\n"
            "Run the command again when that is repaired.",
            err=True,
        )
    if report.error:
        raise SystemExit(EXIT_INCOMPLETE)


def _follow(
    run_dir: str, patience: float, show: Callable[[CopyStatus], None], changes: dict[str, str | None]
) -> SyncReport:
    from tuning.records.ownership import begun_term
    from tuning.storage.run_directory import RunDirectory
    from tuning.tracking.copy.live import handed_settings
    from tuning.tracking.copy.sync import follow
    from tuning.tracking.settings import settings_of

    settings = handed_settings()
    directory = RunDirectory(run_dir if settings is None else settings.directory)
    term = begun_term(directory)
    settings = settings or settings_of(directory, term, **changes)
    ending = _step_back_until_told()
    return follow(settings, term, ending=ending, patience=patience, progress=show, nice=True)


def _tell(report: SyncReport, output: str, run_dir: str) -> None:
    status = report.status
    if output == "json":
        click.echo(json.dumps({**asdict(report), "complete": report.complete}))
    elif status.note:
        click.echo(status.note, err=True)
    if output != "json" and report.complete:
        click.echo(
            f"complete: {amount(status.trials, 'trial')}, {amount(status.studies, 'study')} and "
            f"{amount(status.models, 'model')} of "
            f"{amount(report.parts, 'record part')} are in {report.where} ({report.seconds:.1f} s)."
        )
    if report.abandoned:
        click.echo(
            f"incomplete: the process of the run died before the run had ended. "
            f"{amount(status.trials, 'trial')} and "
            f"{amount(status.studies, 'study')} were copied to {report.where}. "
            f"`{command('resume', run_dir)}` goes on with the run "
            f"and copies the rest; `{command('mlflow', 'sync', run_dir)}` copies what is recorded.",
            err=True,
        )
    elif not report.complete:
        click.echo(
            f"incomplete: {status.missing or 'unknown'} are not in {report.where}. "
            f"{status.error or 'The copy ended without an error.'}\nRun the command again when that is "
            "repaired; what is copied stays.",
            err=True,
        )


def _step_back_until_told() -> threading.Event:
    """Leave the cores to the search; the event is set by SIGTERM, with which a run's owner says that it has ended."""
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})  # blocked so far by the owner that started this
    os.nice(NICENESS)
    # Batches are tens of thousands of tuples without a cycle: looking for cycles as often as usual is 5 % of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    return ending


def _leave(code: int) -> NoReturn:
    """End at once: a thread that still waits for a hanging server must not keep the process, for which a run waits."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


class _Line:
    """One line on stderr that tells how far the copy is, on a terminal only."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()

    def __call__(self, status: CopyStatus) -> None:
        if self.shown:
            copied = f"{amount(status.trials, 'trial')}, {amount(status.models, 'model')}"
            text = f"{copied}, {amount(status.pending, 'part')} left"
            if not status.healthy:
                text += f"; waiting: {status.error}"
            click.echo(f"\r\x1b[K{text.splitlines()[0][:100]}", err=True, nl=False)

    def end(self) -> None:
        if self.shown:
            click.echo("\r\x1b[K", err=True, nl=False)


class _JsonLines:
    """One line of JSON on stdout for every change."""

    def __init__(self) -> None:
        self.stream = sys.stdout

    def __call__(self, status: CopyStatus) -> None:
        click.echo(json.dumps({"status": asdict(status)}), file=self.stream)

    def end(self) -> None:
        """Nothing is left on the screen."""
