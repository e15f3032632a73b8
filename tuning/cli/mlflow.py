"""`tuning mlflow …`."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, NoReturn

import click

from tuning.basics.wording import amount, command
from tuning.cli.program import Command
from tuning.cli.run_argument import run_argument

if TYPE_CHECKING:
    from tuning.storage.run_directory import RunDirectory
    from tuning.tracking.settings import CopyStatus

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
    from tuning.records.ownership import begun_term
    from tuning.serving.release import RELEASES
    from tuning.storage.names import mask
    from tuning.storage.run_directory import RunDirectory
    from tuning.tracking.follow import CopyLoop, RunParts
    from tuning.tracking.settings import handed_settings, settings_of

    handed, began = handed_settings(), time.monotonic()
    directory = RunDirectory(run_dir if handed is None else handed.directory)
    if not following and any(True for _ in directory.list(RELEASES)):  # a folder of champions
        _sync_release(directory, changes, patience, output)
        return
    term = begun_term(directory)
    settings = handed or settings_of(directory, term, **changes)
    tell = _Progress(output == "json" and following)
    ended = threading.Event()
    if following:
        _step_back(ended, told=handed is not None)
    else:
        ended.set()
    with contextlib.redirect_stdout(sys.stderr):  # MLflow prints
        status = CopyLoop(settings, RunParts(directory, term, ended), patience=patience, progress=tell).run()
    tell.end()
    where, seconds = mask(settings.tracking_uri), time.monotonic() - began
    if output == "json":
        report = {"status": asdict(status), "where": where, "seconds": seconds, "complete": status.complete}
        click.echo(json.dumps(report))
    _say(status, where, seconds, run_dir, quiet=output == "json")
    if following:
        _leave(0 if status.complete else EXIT_INCOMPLETE)
    if not status.complete:
        raise SystemExit(EXIT_INCOMPLETE)


def _sync_release(directory: RunDirectory, changes: dict[str, str | None], patience: float, output: str) -> None:
    from tuning.serving.releases import Releases
    from tuning.storage.names import mask
    from tuning.tracking.release_copy import copy_release, release_settings

    releases = Releases.of_folder(directory)
    newest, settings = releases.current(), release_settings(releases, changes["tracking_uri"], changes["experiment"])
    error = copy_release(settings, releases, newest, patience)
    what, where = f"release {newest.number} of {releases.name}", mask(settings.tracking_uri)
    if output == "json":
        click.echo(json.dumps({"release": newest.number, "where": where, "error": error, "complete": not error}))
    elif error:
        why = f"{error}\nRun the command again when that is repaired."
        click.echo(f"incomplete: {what} is not in {where}. {why}", err=True)
    else:
        click.echo(f"complete: {what} is in {where}.")
    if error:
        raise SystemExit(EXIT_INCOMPLETE)


def _say(status: CopyStatus, where: str, seconds: float, run_dir: str, *, quiet: bool) -> None:
    """Say how the copy has ended. quiet: only what is missing."""
    runs = f"{amount(status.trials, 'trial')} and {amount(status.studies, 'study')}"
    if status.note and not quiet:
        click.echo(status.note, err=True)
    if status.complete:
        if not quiet:
            click.echo(
                f"complete: {runs}, {amount(status.models, 'model')} and {amount(status.copied, 'record part')} are in "
                f"{where} ({seconds:.1f} s)."
            )
    elif status.abandoned:
        click.echo(
            f"incomplete: the process of the run died before the run had ended. {runs} were copied to {where}. "
            f"`{command('resume', run_dir)}` goes on with the run and copies the rest; "
            f"`{command('mlflow', 'sync', run_dir)}` copies what is recorded.",
            err=True,
        )
    else:
        click.echo(
            f"incomplete: {status.missing or 'unknown'} are not in {where}. "
            f"{status.error or 'The copy ended without an error.'}\nRun the command again when that is "
            "repaired; what is copied stays.",
            err=True,
        )


def _step_back(ended: threading.Event, *, told: bool) -> None:
    """Leave the cores to the search. told: a line on standard input says that its run has ended."""
    from tuning.tracking.settings import ENDED

    os.nice(NICENESS)
    # Batches are tens of thousands of tuples without a cycle: looking for cycles as often as usual is 5 % of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)

    def listen() -> None:
        if sys.stdin.readline() == ENDED:
            ended.set()

    if told:
        threading.Thread(target=listen, daemon=True).start()


def _leave(code: int) -> NoReturn:
    """End at once: a thread that still waits for a hanging server must not keep the process, for which a run waits."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


class _Progress:
    """Tells how far the copy is: a line of JSON on stdout for every change, or one line on stderr, on a terminal."""

    def __init__(self, json_lines: bool) -> None:
        self._json = sys.stdout if json_lines else None
        self._shown = not json_lines and sys.stderr.isatty()

    def __call__(self, status: CopyStatus) -> None:
        if self._json:
            click.echo(json.dumps({"status": asdict(status)}), file=self._json)
        elif self._shown:
            copied = f"{amount(status.trials, 'trial')}, {amount(status.models, 'model')}"
            text = f"{copied}, {amount(status.pending, 'part')} left"
            if not status.healthy:
                text += f"; waiting: {status.error}"
            click.echo(f"\r\x1b[K{text.splitlines()[0][:100]}", err=True, nl=False)

    def end(self) -> None:
        """Leave the line on a terminal empty."""
        if self._shown:
            click.echo("\r\x1b[K", err=True, nl=False)
