"""Options that several commands have, and the definition that they make."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from typing import TypedDict, TypeVar, Unpack

import click

from search_spaces import SpaceError
from search_spaces.yaml_text import parse_yaml
from tuning.cli.run_argument import STORAGE
from tuning.definition.definition import Definition
from tuning.definition.yaml_file import read_definition
from tuning.errors import DefinitionError

C = TypeVar("C", bound=Callable[..., object])


def definition_options(command: C) -> C:
    """Add DEFINITION and the options that override its keys, as `read` takes them."""
    for option in reversed(
        [
            click.argument("definition", type=click.Path(exists=True, dir_okay=False)),
            click.option("--data", metavar="PATH", help="File, folder or glob, instead of the definition's."),
            click.option("--customer", multiple=True, metavar="ID", help="Only this customer (can be repeated)."),
            click.option("--by", multiple=True, metavar="COLUMN", help="Key column(s): each value is a customer."),
            click.option("--slots", type=click.IntRange(min=1), help="Trials at once (default: the CPUs)."),
            changes_option("Override a key (value is YAML; dots reach into mappings)."),
        ]
    ):
        command = option(command)
    return command


def changes_option(help_text: str) -> Callable[[C], C]:
    """Return the option `--set KEY=VALUE`, as `read_changes` takes it."""
    return click.option("--set", "changes", multiple=True, metavar="KEY=VALUE", help=help_text)


def champions_options(command: C) -> C:
    """Add the argument NAME and the option `--storage`."""
    return click.argument("name", metavar="NAME")(storage_option(command))


storage_option = click.option(
    "--storage",
    default=STORAGE,
    show_default=True,
    metavar="FOLDER",
    help="Folder or URI below which champions/NAME lies.",
)


output_option = click.option(
    "--output",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Form of the data.",
)


json_option = click.option("--output", type=click.Choice(["table", "json"]), default="table", show_default=True)


allow_code_option = click.option(
    "--allow-code",
    is_flag=True,
    help="Run code that the run brings and that no run of yours has run here: `prepare`, own models, pickles.",
)


def formulas_option(default: str) -> Callable[[C], C]:
    """Return the option `--formulas`: what becomes of texts that a spreadsheet would run."""
    return click.option(
        "--formulas",
        type=click.Choice(["guard", "keep"]),
        default=default,
        show_default=True,
        help="Of texts that a spreadsheet would run, such as =SUM(A1): put an apostrophe before them in CSV.",
    )


strict_option = click.option(
    "--strict", is_flag=True, help="Exit with 3 also where hold-out rows contradict what the folds promised."
)


progress_option = click.option(
    "--progress",
    type=click.Choice(["line", "jsonl", "none"]),
    default="line",
    show_default=True,
    help="On stderr: a line that moves (one every 30 s in a log), an object per second, or nothing.",
)


def running_options(command: C) -> C:
    """Add the options of a run: `run_dir`, `resume`, `in_process` and `progress`."""
    for option in reversed(
        [
            click.option("--run-dir", metavar="DIR", help="The run's folder (default: <storage>/<name>-<time>)."),
            click.option("--resume", is_flag=True, help="Resume when the folder already holds this run."),
            click.option("--in-process", is_flag=True, help="Without Ray, in this process, for debugging."),
            progress_option,
        ]
    ):
        command = option(command)
    return command


def check_target(path: str, option: str, *given: str | None) -> None:
    """Make the folder of a file that is to be written after hours of work; `DefinitionError` where that cannot be.

    given: files that are read, which nobody means to overwrite.
    """
    if os.path.realpath(path) in {os.path.realpath(name) for name in given if name is not None}:
        raise DefinitionError(f"{option}: {path!r} is read here, and would be overwritten. Write to another file.")
    folder = os.path.dirname(os.path.abspath(path))
    try:
        os.makedirs(folder, exist_ok=True)
        refused = "" if os.access(folder, os.W_OK) else "permission denied"
    except OSError as error:
        refused = str(error.strerror)
    if refused:
        raise DefinitionError(f"{option}: {path!r} cannot be written: {refused}.")


class Overrides(TypedDict):
    """Options of `definition_options`, without the definition's file."""

    data: str | None
    by: tuple[str, ...]
    customer: tuple[str, ...]
    slots: int | None
    changes: tuple[str, ...]


def read(definition: str, **options: Unpack[Overrides]) -> Definition:
    """Read a definition with the command line's overrides."""
    overrides = read_changes(options["changes"])
    if (data := options["data"]) is not None:
        overrides["data"] = data if "://" in data else os.path.abspath(os.path.expanduser(data))
    if options["by"]:
        overrides["by"] = list(options["by"])
    if options["customer"]:
        overrides["customers"] = list(options["customer"])
    if options["slots"] is not None:
        overrides["slots"] = options["slots"]
    return read_definition(definition, overrides)


def read_changes(changes: Iterable[str]) -> dict[str, object]:
    """Return the keys and values of `--set`, nested where a key has dots."""
    overrides: dict[str, object] = {}
    for change in changes:
        _override(overrides, change)
    return overrides


def _override(overrides: dict[str, object], change: str) -> None:
    key, found, value = change.partition("=")
    if not found or not all(key.split(".")):
        raise DefinitionError(f"--set {change!r}: KEY=VALUE is expected, such as --set trials=50.")
    try:
        parsed = parse_yaml(value, "the value")
    except SpaceError as error:
        raise DefinitionError(f"--set {change!r}: {error}.") from error
    *parents, last = key.split(".")
    for parent in parents:
        inner = overrides.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise DefinitionError(f"--set {change!r}: {parent!r} is already {inner!r}, which is not a mapping.")
        overrides = inner
    overrides[last] = parsed


@contextlib.contextmanager
def service_installed() -> Iterator[None]:
    """Around imports of the service: `DefinitionError` where its libraries are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DefinitionError(
            f"the service needs the library {error.name!r}: pip install 'tuning-service[service]'."
        ) from error
