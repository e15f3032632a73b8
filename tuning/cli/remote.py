"""`tuning submit`, `status`, `watch`, `stop`, `cancel`: runs of a server."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tuning.cli import exit_codes
from tuning.cli.program import Command
from tuning.cli.service_options import service_installed
from tuning.cli.shared_options import read_changes
from tuning.errors import DefinitionError

if TYPE_CHECKING:
    from tuning.service.client import RemoteRun, TuningClient

UNWATCHED_S = 30.0  # between two lines of progress that nobody watches, as of `tuning run`
START_OF_LINE = "\r\x1b[2K"  # and nothing left in it

server_option = click.option(
    "--server",
    metavar="URL",
    help="Address of the server (default: TUNING_SERVER, else http://127.0.0.1:8420).",
)
json_option = click.option(
    "--output", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Form of the data."
)


def on_one_run(command: Callable[..., object]) -> click.Command:
    """A command that asks a server for something about its run ID."""
    given = click.argument("run", metavar="ID")(server_option(json_option(command)))
    return click.command(cls=Command)(given)


@click.command(cls=Command)
@click.argument("definition", type=click.Path(exists=True, dir_okay=False))
@click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help="Override a key (value is YAML).")
@click.option("--priority", type=int, help="Among the team's runs: the highest is first (default: 0).")
@click.option("--schedule", metavar="CRON", help='Submit again at these times, such as "0 3 * * 1".')
@click.option("--time-zone", metavar="ZONE", help="Of the schedule, such as Europe/Berlin (default: UTC).")
@click.option("--key", metavar="TEXT", help="The same key with the same definition is the same run.")
@click.option("--wait", is_flag=True, help="Show its progress until it has ended; the exit code is that of `run`.")
@server_option
@json_option
def submit(
    definition: str,
    changes: tuple[str, ...],
    priority: int | None,
    schedule: str | None,
    time_zone: str | None,
    key: str | None,
    wait: bool,
    server: str | None,
    output: str,
) -> None:
    """Queue a run of DEFINITION on a server; its data is named below the server's folders.

    The token comes from TUNING_TOKEN, the file that TUNING_TOKEN_FILE names, or what `tuning serve` has kept here.
    """
    given: dict[str, object] = dict(read_changes(changes))
    if priority is not None:
        given["priority"] = priority
    if schedule is not None:
        given["schedule"] = schedule if time_zone is None else {"cron": schedule, "time_zone": time_zone}
    elif time_zone is not None:
        raise DefinitionError("--time-zone is of a schedule: give --schedule, too.")
    with _client(server) as client:
        run = client.submit(definition, key=key, **given)
        if wait:
            _show(run, output, err=True)
            _follow(client, run.id, output)
        _show(run, output)


@click.command(cls=Command)
@click.argument("run", metavar="ID", required=False)
@click.option("--state", help="Only runs in this state, such as running.")
@click.option("--most", type=click.IntRange(min=1), default=20, show_default=True, help="Runs that are listed.")
@server_option
@json_option
def status(run: str | None, state: str | None, most: int, server: str | None, output: str) -> None:
    """Tell where the run ID stands on a server, or list the team's runs, the newest first."""
    with _client(server) as client:
        if run is not None:
            _show(client.run(run), output)
            return
        found = [each for each, _ in zip(client.runs(state=state), range(most), strict=False)]
        if output == "json":
            click.echo(json.dumps([each.to_dict() for each in found]))
        for each in found if output == "text" else ():
            click.echo(f"{each.id}  {each.name}  {each.sentence}")


@on_one_run
def watch(run: str, server: str | None, output: str) -> None:
    """Show the progress of run ID until it has ended; the exit code is that of `tuning run`."""
    with _client(server) as client:
        _follow(client, run, output)


@on_one_run
def stop(run: str, server: str | None, output: str) -> None:
    """End run ID of a server so that it can be resumed. What is recorded is kept."""
    with _client(server) as client:
        _show(client.stop(run), output)


@on_one_run
def cancel(run: str, server: str | None, output: str) -> None:
    """End run ID of a server for good. What is recorded is kept until the run is deleted."""
    with _client(server) as client:
        _show(client.cancel(run), output)


def _client(server: str | None) -> TuningClient:
    with service_installed():
        from tuning.service.client import TuningClient

    return TuningClient(server)


def _show(run: RemoteRun, output: str, *, err: bool = False) -> None:
    click.echo(json.dumps(run.to_dict()) if output == "json" else f"{run.id}  {run.name}  {run.sentence}", err=err)


def _follow(client: TuningClient, run: str, output: str) -> None:
    """Print what a run tells until it has ended, and end with its exit code."""
    progress = _ProgressLine()
    for event in client.events(run):
        if output == "json":
            click.echo(json.dumps({"event": event.kind, **event.data}))
        elif event.kind == "progress":
            progress.show(event.data["line"])
        else:
            progress.end()
            click.echo(f"{event.data['state']} {event.data['reason']}".strip())
    ended = client.run(run)
    if output == "text":
        click.echo(f"more: {client.server}/runs/{run}", err=True)
    sys.exit(_exit_code(ended))


class _ProgressLine:
    """On a terminal one line that changes in its place; elsewhere a line now and then."""

    def __init__(self) -> None:
        self._moves = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._shown, self._at = "", -UNWATCHED_S

    def show(self, line: str) -> None:
        if line == self._shown or (not self._moves and time.monotonic() - self._at < UNWATCHED_S):
            return
        self._shown, self._at = line, time.monotonic()
        if self._moves:
            click.echo(f"{START_OF_LINE}{line[: shutil.get_terminal_size().columns - 1]}", err=True, nl=False)
        else:
            click.echo(line, err=True)

    def end(self) -> None:
        """Make room for another line."""
        if self._moves and self._shown:
            click.echo(START_OF_LINE, err=True, nl=False)
            self._shown = ""


def _exit_code(run: RemoteRun) -> int:
    """As `tuning run` would have ended."""
    counts = run.outcome or {}
    if run.state == "finished":
        return exit_codes.of_models(counts.get("customers", 0), counts.get("succeeded", 0))
    return (
        exit_codes.INTERRUPTED
        if run.state in ("stopped", "cancelled")
        else exit_codes.of_outcome(counts.get("outcome"))
    )
