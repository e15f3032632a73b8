"""Every command with its options, and the exit codes, in docs/commands.md, made from what the commands say.

python docs/command_table.py     # writes them into the page; run it at the top of the repository
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from tuning.basics.exit_codes import CODES
from tuning.cli.program import main

PAGE = "docs/commands.md"
_SEVERAL = 3  # commands from which on an option is described once


def command_tables() -> str:
    """The options of several commands in one list, then a section for each command with its own ones."""
    found = dict(_commands(main, click.Context(main, info_name="tuning")))
    counts = Counter(row for command, context in found.values() for row in _rows(command, context))
    by_name = {_name(row): row for row, _ in reversed(counts.most_common())}
    shared = {row for row in by_name.values() if counts[row] >= _SEVERAL}
    several = "\n".join(sorted(shared))
    sections = [_section(*each, shared) for each in found.values()]
    return "\n\n".join([f"### Options of several commands\n\n{several}", *sections])


def written(text: str) -> str:
    """The page's text with the sections between its markers."""
    return _between(_between(text, "commands", command_tables()), "exit codes", _exit_codes())


def _exit_codes() -> str:
    rows = [f"| {code.number} | `{code.outcome}` | {code.meaning} |" for code in CODES[:-1]]
    rows.append("| 130, 143 | `interrupted` | by Ctrl-C or SIGTERM; can be resumed |")
    return "\n".join(["| exit code | `outcome` | meaning |", "|---|---|---|", *rows])


def _between(text: str, mark: str, content: str) -> str:
    return re.sub(
        rf"(<!-- {mark} -->\n).*?(<!-- /{mark} -->)",
        lambda place: f"{place[1]}{content}\n{place[2]}",
        text,
        flags=re.S,
    )


def _commands(group: click.Group, parent: click.Context) -> Iterator[tuple[str, tuple[click.Command, click.Context]]]:
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        if isinstance(command, click.Group):
            yield from _commands(command, click.Context(command, parent=parent, info_name=name))
        elif command is not None:
            context = click.Context(command, parent=parent, info_name=name)
            yield context.command_path, (command, context)


def _section(command: click.Command, context: click.Context, shared: set[str]) -> str:
    arguments = [param.make_metavar(context) for param in command.params if isinstance(param, click.Argument)]
    call = " ".join([context.command_path, *arguments])
    summary = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    return "\n\n".join([f"### `{call}`", summary, *_options(_rows(command, context), shared)])


def _options(rows: list[str], shared: set[str]) -> list[str]:
    """A list of the command's own options, and the names of those that it shares with others."""
    own = [row for row in rows if row not in shared]
    names = [f"`{_name(row)}`" for row in rows if row in shared]
    listed = ["\n".join(own)] if own else []
    return [
        *listed,
        *([f"{'Also' if own else 'Options:'} {', '.join(names)}."] if names else []),
    ]


def _name(row: str) -> str:
    """The option of a row, without what it takes."""
    return row.removeprefix("- `").split()[0].strip("`:")


def _rows(command: click.Command, context: click.Context) -> list[str]:
    records = [param.get_help_record(context) for param in command.params if isinstance(param, click.Option)]
    return [f"- `{_text(record[0])}`: {_text(record[1], html=True)}" for record in records if record is not None]


def _text(text: str, html: bool = False) -> str:
    line = " ".join(text.split())
    return line.replace("<", "&lt;") if html else line


if __name__ == "__main__":
    page = Path(PAGE)
    page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
