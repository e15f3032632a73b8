"""The argument RUN, which most commands have: the folder of a run, by default the newest one's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

C = TypeVar("C", bound=Callable[..., object])
STORAGE = "runs"  # the default of the definition's `storage`


def newest(path: str | None = None) -> str:
    """The path, by default that of the newest run in `runs`, which is said on stderr."""
    if path is not None:
        return path
    from tuning.runs.listing import newest_run

    found = newest_run(STORAGE).path
    click.echo(f"run: {found}, the newest in {STORAGE}", err=True)
    return found


def run_argument(command: C) -> C:
    """The argument itself, as `run_dir`."""

    def given(context: click.Context, _: click.Parameter, value: str | None) -> str | None:
        return value if context.resilient_parsing else newest(value)

    return click.argument("run_dir", metavar="[RUN]", required=False, callback=given)(command)
