"""The arguments RUN, the folder of a run and by default the newest one's, and CUSTOMER, one of its customers."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar

import click

from tuning.basics.wording import did_you_mean
from tuning.errors import RunError
from tuning.records.ownership import TERMS
from tuning.storage.names import is_uri

C = TypeVar("C", bound=Callable[..., object])
STORAGE = "runs"  # the default of the definition's `storage`


def newest(path: str | None = None) -> str:
    """Return the path, by default that of the newest run in `runs`, which is printed to stderr.

    `RunError` where it is no folder: the run may be called like that in `runs`.
    """
    if path is not None:
        if not is_uri(path) and not Path(path).expanduser().exists():
            _no_run(path)
        return path
    from tuning.runs.listing import runs_in

    for found in runs_in(STORAGE):
        click.echo(f"run: {found.path}, the newest in {STORAGE}", err=True)
        return found.path
    raise RunError(f"there is no run in {STORAGE!r}: name the folder of one, or start one with tuning run.")


def _no_run(path: str) -> NoReturn:
    from tuning.runs.listing import runs_in

    known = [run.path for run in runs_in(STORAGE)]
    inside = f"{STORAGE}/{path.strip('/')}"
    hint = f" Did you mean {inside!r}?" if inside in known else did_you_mean(path, known)
    if re.fullmatch("[0-9a-f]{24}", path):
        hint = " It looks like the id of a server's run, which `tuning status ID`, its page and `TuningClient` know."
    raise RunError(f"there is no folder {path!r}.{hint} `tuning runs` lists the runs in {STORAGE!r}.")


def run_argument(command: C) -> C:
    """Add the argument RUN, as `run_dir`."""

    def given(context: click.Context, _: click.Parameter, value: str | None) -> str | None:
        return value if context.resilient_parsing else newest(value)

    return click.argument("run_dir", metavar="[RUN]", required=False, callback=given)(command)


def run_and_customer_arguments(command: C) -> C:
    """Add RUN and CUSTOMER as `names`, and --customer in place of the second; see `run_and_customer`."""
    option = click.option("--customer", metavar="ID", help="The same as CUSTOMER.")
    return click.argument("names", metavar="[RUN] [CUSTOMER]", nargs=-1)(option(command))


def run_and_customer(names: Sequence[str], customer: str | None) -> tuple[str, str | None]:
    """Return the folder of the run, and the customer where one is named.

    A single name is the run where it is the folder of one or the customer is named by --customer; else it is a customer
    of the newest run.
    """
    if len(names) > 2:
        raise click.UsageError(f"RUN and CUSTOMER are two names, and these are {len(names)}: {' '.join(names)}.")
    if len(names) == 2 and customer is not None:
        raise click.UsageError(f"CUSTOMER is named twice: {names[1]!r} and --customer {customer!r}. Name it once.")
    if len(names) == 2:
        return newest(names[0]), names[1]
    if not names or customer is not None or is_uri(names[0]) or _is_run(names[0]):
        return newest(*names), customer
    return newest(), names[0]


def _is_run(path: str) -> bool:
    return Path(path, TERMS).expanduser().is_dir()
