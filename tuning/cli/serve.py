"""`tuning serve`: the service."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from tuning.cli.program import Command
from tuning.cli.shared_options import service_installed
from tuning.service.settings import ServiceSettings, read_settings

C = TypeVar("C", bound=Callable[..., object])
OPTIONS = [name for name, field in ServiceSettings.model_fields.items() if field.title]


def settings_options(*names: str) -> Callable[[C], C]:
    """Options for settings of the service, None where they are not given.

    A URL with a password belongs into the variable TUNING_DATABASE.
    """

    def add(command: C) -> C:
        for name in reversed(names):
            field = ServiceSettings.model_fields[name]
            command = click.option(
                f"--{name.replace('_', '-')}",
                metavar=field.title,
                multiple=name == "data",
                envvar="TUNING_DATABASE" if name == "database" else None,
                help=field.description,
            )(command)
        return command

    return add


@click.command(cls=Command)
@settings_options(*OPTIONS)
@click.option(
    "--config", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="YAML with teams and the other keys."
)
def serve(config: str | None, **options: object) -> None:
    """Take definitions over HTTP, queue them for teams, and run them.

    Prints its URL once it answers. Ctrl-C or SIGTERM ends it, and running runs go on: the next server finds them.
    Runs read files below --data alone, and nothing of the service's own (its folders, database, configuration, tokens):
    that is checked as a file is opened, after links are followed.
    """
    with service_installed():
        from tuning.service.serve import serve as serve_on

    given = {name: value for name, value in options.items() if value not in (None, ())}
    settings = read_settings(None if config is None else Path(config), given)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("tuning.service").setLevel(logging.INFO)
    serve_on(settings, lambda text: click.echo(text, err=True), click.echo)
