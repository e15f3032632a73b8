"""`tuning token …`: who may use a server."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from tuning.cli.output import aligned
from tuning.cli.program import Command
from tuning.cli.serve import settings_options
from tuning.cli.shared_options import service_installed
from tuning.errors import DefinitionError
from tuning.service.settings import default_database

if TYPE_CHECKING:
    from tuning.service.database.tokens import TokenHolder, Tokens

DAY_S = 86_400.0
MOST_DAYS = 36_500
COLUMNS = ("team", "name", "role", "created", "ends", "state")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def token() -> None:
    """Tokens of a server: who may use it, for which team, and what they may do."""


@token.command("create", cls=Command)
@settings_options("database")
@click.option("--team", required=True, metavar="NAME", help="Whose runs it is for.")
@click.option(
    "--role",
    required=True,
    type=click.Choice(["read", "submit", "admin"]),
    help="read: look and predict. submit: also submit, stop and resume. admin: also delete.",
)
@click.option("--name", required=True, metavar="NAME", help="What it is called, such as its person or program.")
@click.option("--days", type=float, help="After which it ends (default: never).")
def create(database: str | None, team: str, role: str, name: str, days: float | None) -> None:
    """Make a token. It is the last word that is printed, and is shown this once."""
    now = time.time()
    if days is not None and not 0 < days <= MOST_DAYS:
        raise DefinitionError(
            f"--days {days:g}: a number above 0 and at most {MOST_DAYS:,} (a hundred years) is needed; leave it out "
            "for a token that does not end."
        )
    tokens = _tokens(database)
    from tuning.service.database.tokens import Role

    others = any(holder.valid(now) for holder in tokens.all(team))
    made = tokens.create(team, Role(role), name, now, None if days is None else now + days * DAY_S)
    if not others:
        click.echo(f"team {team!r} has no other valid token; `tuning token list` shows all teams", err=True)
    click.echo(f"token {name!r} of team {team!r}, role {role}: {made}")


@token.command("list", cls=Command)
@settings_options("database")
@click.option("--team", metavar="NAME", help="Only this team's.")
@click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def list_command(database: str | None, team: str | None, output: str) -> None:
    """List the tokens; what they are themselves is stored nowhere."""
    now = time.time()
    rows = [_row(holder, now) for holder in _tokens(database).all(team)]
    if output == "json":
        click.echo(json.dumps(rows, ensure_ascii=False))
        return
    for line in aligned(COLUMNS, [[row[name] for name in COLUMNS] for row in rows]):
        click.echo(line)
    if not rows:
        click.echo("no token", err=True)


@token.command("revoke", cls=Command)
@settings_options("database")
@click.option("--team", required=True, metavar="NAME", help="Whose it is.")
@click.option("--name", required=True, metavar="NAME", help="What it is called.")
def revoke(database: str | None, team: str, name: str) -> None:
    """End a token within five seconds, also where somebody has logged in with it."""
    _tokens(database).revoke(team, name, time.time())
    click.echo(f"token {name!r} of team {team!r} is revoked", err=True)


def _tokens(database: str | None) -> Tokens:
    with service_installed():
        from tuning.service.database import schema
        from tuning.service.database.connection import Database
        from tuning.service.database.tokens import Tokens

    opened = Database(database or default_database())
    schema.upgrade(opened)
    return Tokens(opened)


def _row(holder: TokenHolder, now: float) -> dict[str, str | None]:
    state = "valid" if holder.valid(now) else "revoked" if holder.revoked is not None else "ended"
    return {
        "team": holder.team,
        "name": holder.name,
        "role": str(holder.role),
        "created": _day(holder.created),
        "ends": _day(holder.expires),
        "state": state,
    }


def _day(at: float | None) -> str | None:
    return None if at is None else datetime.fromtimestamp(at, UTC).isoformat(timespec="minutes")
