"""Every command with its options in docs/commands.md, made from what `--help` says.

python -m tuning.cli.command_table     # writes them into the page; run it at the top of the repository
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from tuning.cli.program import main

PAGE = "docs/commands.md"


def command_tables() -> str:
    """A section for each command: how it is called, what it does, and a table of its options."""
    return "\n\n".join(_sections(main, click.Context(main, info_name="tuning")))


def written(text: str) -> str:
    """The page's text with the sections between its markers."""
    return re.sub(
        r"(<!-- commands -->\n).*?(<!-- /commands -->)",
        lambda place: f"{place[1]}{command_tables()}\n{place[2]}",
        text,
        flags=re.S,
    )


def _sections(group: click.Group, parent: click.Context) -> Iterator[str]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if isinstance(command, click.Group):
            yield from _sections(command, click.Context(command, parent=parent, info_name=name))
        elif command is not None:
            yield _section(command, click.Context(command, parent=parent, info_name=name))


def _section(command: click.Command, context: click.Context) -> str:
    arguments = [param.make_metavar(context) for param in command.params if isinstance(param, click.Argument)]
    call = " ".join([context.command_path, *arguments])
    said = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    return f"### `{call}`\n\n{said}\n\n{_options(command, context)}"


def _options(command: click.Command, context: click.Context) -> str:
    records = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    rows = [f"| `{_cell(record[0])}` | {_cell(record[1])} |" for record in records if record is not None]
    return "\n".join(["| option | what |", "|---|---|", *rows]) if rows else "It has no options."


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
