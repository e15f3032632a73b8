"""The argument RUN, which most commands have: the folder of a run, by default the newest one's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from tuning.errors import RunError
from tuning.storage.names import is_uri
from tuning.wording import did_you_mean

C = TypeVar("C", bound=Callable[..., object])
STORAGE = "runs"  # the default of the definition's `storage`


def newest(path: str | None = None) -> str:
    """The path, by default that of the newest run in `runs`, which is said on stderr.

    `RunError` where it is no folder: the run may be called like that in `runs`.
    """
    if path is not None:
        if not is_uri(path) and not Path(path).expanduser().exists():
            _no_run(path)
        return path
    from tuning.runs.listing import newest_run

    found = newest_run(STORAGE).path
    click.echo(f"run: {found}, the newest in {STORAGE}", err=True)
    return found


def _no_run(path: str) -> NoReturn:
    from tuning.runs.listing import runs_in

    known = [run.path for run in runs_in(STORAGE)]
    inside = f"{STORAGE}/{path.strip('/')}"
    hint = f" Did you mean {inside!r}?" if inside in known else did_you_mean(path, known)
    raise RunError(f"there is no folder {path!r}.{hint} `tuning runs` lists the runs in {STORAGE!r}.")


def run_argument(command: C) -> C:
    """The argument itself, as `run_dir`."""

    def given(context: click.Context, _: click.Parameter, value: str | None) -> str | None:
        return value if context.resilient_parsing else newest(value)

    return click.argument("run_dir", metavar="[RUN]", required=False, callback=given)(command)
