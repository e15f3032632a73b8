"""Whether a command that a page names is there, with its options: looked up, not run."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import click
from packaging.requirements import Requirement
from paths import ROOT

from tuning.cli.program import COMMANDS, main

MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
# Options of pip that a page may name.
PIP = {"-c", "-w", "-e", "-r", "--no-deps", "--upgrade"}


def unknown(words: Sequence[str]) -> list[str]:
    """What a command names and does not exist: subcommands, options, values of choices, make targets, extras, files."""
    program, arguments = Path(words[0]).name, list(words[1:])
    if program in ("python", "python3"):
        return list(_of_python(arguments))
    if program == "curl":
        return [body for name, body in pairwise(arguments) if name == "-d" and not _is_json(body)]
    if program in ("make", "pip", "tuning", "mlflow", "ray"):
        return list({"make": _of_make, "pip": _of_pip}.get(program, _of_click)(program, arguments))
    return []


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@cache
def options() -> frozenset[str]:
    """All options of `tuning`."""
    return frozenset(option for command in _leaves(main) for option in _options(command))


def _leaves(command: click.Command) -> Iterator[click.Command]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from _leaves(command.get_command(context, name) or command)
    else:
        yield command


def _options(command: click.Command) -> dict[str, click.Parameter]:
    return {name: each for each in command.params for name in (*each.opts, *each.secondary_opts) if name[0] == "-"}


def _of_click(program: str, arguments: list[str]) -> Iterator[str]:
    command = _group(program)
    while isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        name, *arguments = arguments
        found = command.get_command(click.Context(command), name)
        if found is None:
            yield f"{program} {name}"
            return
        command = found
    known = {**_options(command), "--help": None, "-h": None, "--version": None}
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if not word.startswith("-") or name == "-":
            continue
        if name not in known:
            yield name
        elif isinstance(option := known[name], click.Option) and isinstance(option.type, click.Choice):
            chosen = value if equals else next(iter(arguments[place + 1 :]), "")
            if chosen not in option.type.choices:
                yield f"{name} {chosen}"


def _group(program: str) -> click.Command:
    if program == "mlflow":
        from mlflow.cli import cli as found
    elif program == "ray":
        from ray.scripts.scripts import cli as found
    else:
        found = main
    return found


def _of_make(program: str, arguments: list[str]) -> Iterator[str]:
    for target in arguments:
        if not re.search(rf"^{re.escape(target)}:", MAKEFILE, flags=re.M):
            yield f"make {target}"


def tuning_of_make(target: str) -> list[str]:
    """The `tuning` commands that a make target runs."""
    recipe = re.search(rf"^{re.escape(target)}:[^\n]*\n((?:\t[^\n]*\n)*)", MAKEFILE, flags=re.M)
    return re.findall(r"\$\(BIN\)/(tuning [^;&|\n]*)", recipe[1]) if recipe else []


def _of_pip(program: str, arguments: list[str]) -> Iterator[str]:
    words = iter(arguments[1:])
    for word in words:
        if word.startswith("-"):
            if word not in PIP:
                yield word
            if word in ("-c", "-r") and not (ROOT / (file := next(words, ""))).is_file():
                yield file
            if word == "-w":
                next(words, None)
            continue
        ours = re.fullmatch(r"(?:\.|tuning-service)(?:\[(.*)\])?", word)
        if ours:
            yield from (f"extra {each}" for each in (ours[1] or "").split(",") if each and each not in EXTRAS)
        elif "/" not in word:
            Requirement(word)


def _of_python(arguments: list[str]) -> Iterator[str]:
    """A module of this repository, or a file of it, and options that its own source declares."""
    source = _source(arguments)
    if source is None or not source.is_file():
        yield " ".join(["python", *arguments[:2]])
        return
    known = declared(["python", *arguments])
    yield from (word for word in arguments if word.startswith("--") and word.partition("=")[0] not in known)


def declared(words: Sequence[str]) -> set[str]:
    """The options that the source of a Python program declares; none of another program."""
    source = _source(words[1:]) if words[0] == "python" else None
    tree = ast.parse(source.read_text(encoding="utf-8") if source and source.is_file() else "")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    asked = [call for call in calls if getattr(call.func, "attr", "") in ("option", "add_argument")]
    return {str(each.value) for call in asked for each in call.args if isinstance(each, ast.Constant)} | {"--help"}


def _source(arguments: Sequence[str]) -> Path | None:
    if not arguments:
        return None
    if arguments[0] != "-m":
        return ROOT / arguments[0]
    place = ROOT / arguments[1].replace(".", "/")
    return place / "__main__.py" if place.is_dir() else place.with_suffix(".py")


def words_of(code: str) -> list[str]:
    """The words of a command within a text, without where its output goes."""
    words = shlex.split(code)
    return words[: next((place for place, word in enumerate(words) if word in (">", "|", "&&")), None)]


def is_command(code: str) -> bool:
    """Whether code within a text is a command, not a name or a key."""
    first, _, rest = code.partition(" ")
    return first in ("make", "pip", "tuning", "mlflow", "ray", "python") and bool(rest)


def without_program(code: str) -> bool:
    """Whether it is one without the program's name: `--slots`, `run --output json`, `… --quick`."""
    first, _, rest = code.removeprefix("… ").partition(" ")
    return first.startswith("--") or (first in COMMANDS and rest.startswith("--"))
