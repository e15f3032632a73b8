"""`tuning serve`: the service."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from tuning.cli.program import Command
from tuning.cli.service_options import FOLDER, database_option, default_database, service_installed


@click.command(cls=Command)
@database_option
@click.option("--storage", metavar="ROOT", help="Folder or URI for run directories (default: ./service/runs).")
@click.option("--work", metavar="FOLDER", help="What the service keeps of each run (default: ./service/work).")
@click.option(
    "--data", multiple=True, metavar="ROOT", help="Folder or URI that may be read (can be repeated; default: this one)."
)
@click.option("--slots", type=click.IntRange(min=1), help="Trials at once of all runs (default: the CPUs).")
@click.option("--host", help="Address to listen on (default: 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="Port to listen on (default: 8420; 0 for a free one).")
@click.option("--ray-address", metavar="HOST:PORT", help="Ray cluster on which all runs work, with its slots.")
@click.option("--mlflow", metavar="URI", help="MLflow that all runs are copied to, or none; also in --config.")
@click.option("--public-url", metavar="URL", help="How people reach it, behind a reverse proxy.")
@click.option(
    "--config", metavar="FILE", type=click.Path(exists=True, dir_okay=False), help="YAML with teams and the other keys."
)
def serve(config: str | None, data: tuple[str, ...], **options: object) -> None:
    """Take definitions over HTTP, queue them for teams, and run them.

    Prints its URL once it answers. Ctrl-C or SIGTERM ends it, and running runs go on: the next server finds them.
    Runs read files below --data alone, and nothing of the service's own (its folders, database, configuration, tokens):
    that is checked as a file is opened, after links are followed.
    """
    with service_installed():
        from tuning.service.serve import serve as serve_on
        from tuning.service.settings import read_settings

    given: dict[str, object] = {name: value for name, value in options.items() if value is not None}
    if data:
        given["data"] = data
    defaults = {
        "database": default_database(),
        "storage": os.path.abspath(f"{FOLDER}/runs"),
        "work": os.path.abspath(f"{FOLDER}/work"),
        "data": (os.getcwd(),),
    }
    settings = read_settings(None if config is None else Path(config), given, defaults)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("tuning.service").setLevel(logging.INFO)
    serve_on(settings, lambda text: click.echo(text, err=True), click.echo)
