"""What the commands of the service share: the option for its database, and what to install for it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import TypeVar

import click

from tuning.errors import DefinitionError

C = TypeVar("C", bound=Callable[..., object])
FOLDER = "service"  # of a server that is not told otherwise


def default_database() -> str:
    """The database of a server that is started in this folder."""
    return f"sqlite:///{os.path.abspath(FOLDER)}/service.db"


def database_option(command: C) -> C:
    """The option `--database`, None where it is not given; a URL with a password belongs into the variable."""
    return click.option(
        "--database",
        metavar="URL",
        envvar="TUNING_DATABASE",
        help="sqlite:///FILE or postgresql://… (default: ./service/service.db); also TUNING_DATABASE.",
    )(command)


@contextlib.contextmanager
def service_installed() -> Iterator[None]:
    """Around imports of the service: `DefinitionError` where its libraries are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise DefinitionError(
            f"the service needs the library {error.name!r}: pip install 'tuning-service[service]'."
        ) from error
