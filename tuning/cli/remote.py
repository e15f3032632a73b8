"""`tuning submit`, `status`, `watch`, `stop`, `cancel`, `schedule`: runs of a server."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import click

from tuning.basics import exit_codes
from tuning.cli.program import Command
from tuning.cli.shared_options import read_changes, service_installed
from tuning.errors import DefinitionError

if TYPE_CHECKING:
    from tuning.basics.documents import Json
    from tuning.service.client import RemoteRun, TuningClient

MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\d(?:\.\d+)?Z")
RUN_COLUMNS = {"run": "id", "name": "name", "submitted (UTC)": "submitted", "state": "state", "reason": "reason"}
SCHEDULE_COLUMNS = {
    "schedule": "id",
    "name": "name",
    "cron": "cron",
    "time zone": "time_zone",
    "next (UTC)": "next",
    "last (UTC)": "last",
    "problem": "problem",
}
UNWATCHED_S = 30.0  # between two lines of progress that nobody watches, as of `tuning run`

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
        if run.schedule is not None and output == "text":
            again = next((each for each in client.schedules() if each["id"] == run.schedule), None)
            if again is not None:
                click.echo(f"again: {_times(again)} (schedule {again['id']})", err=True)
        if wait:
            _show(run, output, err=True)
            _follow(client, run, output)
        _show(run, output)


@click.command(cls=Command)
@click.argument("run", metavar="[ID]", required=False)
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
        _list([each.to_dict() for each in found], RUN_COLUMNS, output)
        if not found:
            click.echo(f"no run{' is ' + state if state else ''}; `tuning submit DEFINITION` queues one", err=True)


@on_one_run
def watch(run: str, server: str | None, output: str) -> None:
    """Show the progress of run ID until it has ended; the exit code is that of `tuning run`."""
    with _client(server) as client:
        _follow(client, client.run(run), output)


@on_one_run
def stop(run: str, server: str | None, output: str) -> None:
    """End run ID of a server so that it can be resumed. What is recorded is kept."""
    with _client(server) as client:
        _show(client.run(run).stop(), output)


@on_one_run
def cancel(run: str, server: str | None, output: str) -> None:
    """End run ID of a server for good. What is recorded is kept until the run is deleted."""
    with _client(server) as client:
        _show(client.run(run).cancel(), output)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def schedule() -> None:
    """What a server submits again and again; `tuning submit --schedule` begins it."""


@schedule.command("list", cls=Command)
@server_option
@json_option
def list_schedules(server: str | None, output: str) -> None:
    """List the team's schedules by name: when each submits next, and why its last time made no run."""
    with _client(server) as client:
        found = client.schedules()
    _list(found, SCHEDULE_COLUMNS, output)
    if not found:
        click.echo("no schedule; `tuning submit DEFINITION --schedule CRON` begins one", err=True)


@schedule.command("end", cls=Command)
@click.argument("schedule", metavar="ID")
@server_option
def end_schedule(schedule: str, server: str | None) -> None:
    """Submit no more at the times of schedule ID; the runs that there are stay."""
    with _client(server) as client:
        client.end_schedule(schedule)
    click.echo(f"schedule {schedule} has ended", err=True)


def _client(server: str | None) -> TuningClient:
    with service_installed():
        from tuning.service.client import TuningClient

    return TuningClient(server, say=lambda text: click.echo(text, err=True))


def _list(found: list[Json], columns: Mapping[str, str], output: str) -> None:
    """A line for each; columns: of the table, each with its key."""
    if output == "json":
        click.echo(json.dumps(found))
        return
    from tuning.cli.output import aligned

    for line in aligned(list(columns), [[_cell(each[key]) for key in columns.values()] for each in found]):
        click.echo(line)


def _cell(value: object) -> object:
    """Of times the minute, UTC."""
    return MOMENT.sub(r"\1 \2", value) if isinstance(value, str) else value


def _times(schedule: Json) -> str:
    return f"{_cell(schedule['next'])} UTC, then by {schedule['cron']!r} in {schedule['time_zone']}"


def _show(run: RemoteRun, output: str, *, err: bool = False) -> None:
    click.echo(json.dumps(run.to_dict()) if output == "json" else f"{run.id}  {run.name}  {run.sentence}", err=err)


def _follow(client: TuningClient, run: RemoteRun, output: str) -> None:
    """Print what a run tells until it has ended, and end with its exit code.

    Progress is a line that moves on a terminal, a line now and then elsewhere.
    """
    from tqdm import tqdm

    told_s = -UNWATCHED_S
    with tqdm(bar_format="{desc}", leave=False, disable=True if output == "json" else None) as line:
        for event in run.events():
            if output == "json":
                click.echo(json.dumps({"event": event.kind, **event.data}))
            elif event.kind == "state":
                line.clear()
                click.echo(f"{event.data['state']} {event.data['reason']}".strip())
            elif not line.disable:
                line.set_description_str(event.data["line"][: shutil.get_terminal_size().columns - 1])
            elif time.monotonic() - told_s >= UNWATCHED_S:
                told_s = time.monotonic()
                click.echo(event.data["line"], err=True)
    if output == "text":
        click.echo(f"more: {client.server}/runs/{run.id}", err=True)
    sys.exit(_exit_code(client.run(run.id)))


def _exit_code(run: RemoteRun) -> int:
    """As `tuning run` would have ended."""
    if run.state in ("stopped", "cancelled"):
        return exit_codes.INTERRUPTED
    return int((run.outcome or {}).get("exit_code", exit_codes.ERROR))
