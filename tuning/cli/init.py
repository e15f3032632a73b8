"""`tuning init`: a definition to start from, with what a plan guesses of the data and why."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from tempfile import gettempdir

import click
import numpy as np
import pandas as pd

from search_spaces.yaml_text import dump_yaml
from tuning.basics.wording import amount, command, name_list
from tuning.cli.csv_dialect import guess_csv
from tuning.cli.output import say_wait
from tuning.cli.program import Command
from tuning.data.customers import find_customers
from tuning.data.files import find_files
from tuning.data.registry import file_source, without_suffix
from tuning.data.sampling import sample_frames
from tuning.definition.definition import define
from tuning.errors import CustomerError, DefinitionError
from tuning.notes import PlanCode
from tuning.notes.note import Shown
from tuning.planning.plan import make_plan
from tuning.planning.run_plan import Plan
from tuning.preprocessing.columns import read_columns
from tuning.preprocessing.roles import read_target
from tuning.preprocessing.telling import tells
from tuning.storage.names import is_uri, slug, without_query
from tuning.study.customer_data import OwnCode

TELLING_ROWS = 20  # with fewer, a column tells the target by chance
LOOKED_AT = 5  # customers
SHOWN = 40  # columns
GUESSES = (PlanCode.BINARY_GUESSED, PlanCode.TASK_GUESSED, PlanCode.POSITIVE_GUESSED, PlanCode.SPLIT_BY_TIME)
# End a line for YAML, and so a comment, or may not be in it.
BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
KEY_NAMES = re.compile(
    r"(^|_)(customer|client|account|tenant|user|patient|store|shop|branch|clinic|hospital|school|zone|region|area|city|"
    r"country|site|station|device|machine|sensor|product|sku|id|key)"
    r"(_?(id|key|name|number|code))?s?$"
)


@click.command(cls=Command)
@click.argument("data", metavar="DATA")
@click.option("--target", metavar="COLUMN", help="The column to predict.")
@click.option("--by", multiple=True, metavar="COLUMN", help="Key column(s) of one table: each value is a customer.")
@click.option("--metric", metavar="NAME", help="What to score by, such as rmse (default: by what the target holds).")
@click.option("--output", type=click.Path(dir_okay=False), help="Write to this file (default: print it).")
@click.option("--force", is_flag=True, help="Replace the file when it is there.")
def init(
    data: str, target: str | None, by: tuple[str, ...], metric: str | None, output: str | None, force: bool
) -> None:
    """Write a commented definition for DATA (a file, folder or pattern), with what a plan guesses and why.

    \b
    tuning init 'customers/*.csv' --target churned > churn.yaml
    tuning plan churn.yaml
    """
    if output is not None and os.path.exists(output) and not force:
        raise DefinitionError(f"{output!r} is there already; choose another --output, or replace it with --force.")
    folder = os.path.dirname(os.path.abspath(output)) if output is not None else os.getcwd()
    say_wait("looking at the data")
    text = starter(data, target, by, folder, metric)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise DefinitionError(f"--output: {output!r} cannot be written: {error.strerror}.") from error
    click.echo(f"{output} is written; next: {command('plan', output)}", err=True)


def starter(data: str, target: str | None, by: Sequence[str], folder: str, metric: str | None = None) -> str:
    """Return the YAML text.

    Args:
        data, target, by: keys of the definition.
        folder: where the text will stand, from which its paths are meant.
        metric: a scorer of scikit-learn; None for the default of the task.
    """
    files = find_files(data)
    csv = guess_csv(files)
    reading: dict[str, object] = {"encoding": csv.pop("encoding")} if "encoding" in csv else {}
    reading |= {"csv": csv} if csv else {}
    definition = {"data": data, "target": target, "by": list(by), "metric": metric, **reading}
    if target is None:
        names = file_source(files[0].path, {"encoding": "utf-8", **reading, **csv}).columns()
        raise DefinitionError(f"--target: which column is to be predicted? There are: {name_list(names)}.")
    made = define(definition)
    customers = find_customers(made)
    plan = make_plan(made, customers, in_process=True, run_dir=gettempdir())
    sampled = islice(sample_frames(made, customers, OwnCode(made).frame), LOOKED_AT)
    frames = [frame for _, frame in sampled if not isinstance(frame, CustomerError) and target in frame]
    why = _reasons(plan)
    guessed = "  # as most of the largest files are written"
    lines = [
        "# Made by `tuning init`. Look before you run it: tuning validate THIS_FILE, then tuning plan THIS_FILE",
        *(f"# {note}" for note in plan.notes if note.code.shown is Shown.PLAN and note.code not in GUESSES),
        f"name: {_scalar(slug(_name(data, target), cased=True))}",
        "",
        f"data: {_scalar(_relative(data, folder))}  # {amount(plan.customers, 'customer')}",
        *([f"by: {_scalar(list(by))}  # each value (combination) is a customer"] if by else []),
        *(_key_columns(frames[0], target) if len(files) == 1 and frames and not by else []),
        *(f"{key}: {_scalar(value)}{guessed}" for key, value in reading.items()),
        "",
        f"target: {_scalar(target)}",
        f"task: {plan.spec.task}  # {why['task']}",
        *([f"positive: {_scalar(plan.spec.positive)}  # {why['positive']}"] if plan.spec.positive is not None else []),
        f"metric: {plan.spec.metric}  # {'as given' if metric else f'the default for {plan.spec.task}'}; any scorer of "
        "scikit-learn, or your own function",
        "",
        *_columns(frames, target, by, str(plan.spec.task)),
        "",
        "split:",
        "  test: 0.2  # of each customer's rows, held out for the final score",
        "  folds: 3  # cross-validation of the search",
        *_time_split(plan, why),
        "",
        "trials: 20  # per customer",
        "algorithm: optuna  # or random, grid, hyperopt, …",
        "scheduler: asha  # stops trials that fall behind; or fifo, median, hyperband, …",
        "pool: auto  # customers may learn from each other's rows; off keeps them apart",
        "# search_space: boosting  # the models tried; the default depends on the task",
        "storage: runs  # where run folders are made",
    ]
    return "\n".join(BREAKS.sub(" ", line) for line in lines) + "\n"


def _reasons(plan: Plan) -> dict[str, object]:
    """Return why the plan has guessed the task, the positive class and the split by time."""
    found = {note.code: note.values for note in plan.notes}
    task = found.get(PlanCode.BINARY_GUESSED) or found.get(PlanCode.TASK_GUESSED) or {}
    positive = found.get(PlanCode.BINARY_GUESSED, {}).get("positive_why")
    split = found.get(PlanCode.SPLIT_BY_TIME, {}).get("why")
    return {"task": task.get("why"), "positive": positive, "split": split}


def _key_columns(frame: pd.DataFrame, target: str) -> list[str]:
    """Return columns of a single table that are called like an id and have repeated values."""
    found = []
    for name in (name for name in frame.columns if name != target):
        distinct = frame[name].nunique()
        spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
        if KEY_NAMES.search(spelled) and 2 <= distinct <= len(frame) / 4:
            found.append(f"# by: {_scalar(str(name))}  # {distinct} different values: is each of them a customer?")
    return found[:3]


def _columns(frames: Sequence[pd.DataFrame], target: str, by: Sequence[str], task: str) -> Iterator[str]:
    """Yield the kind of each column for most of the customers looked at, and those that alone tell the target."""
    kinds: dict[str, Counter[str]] = {}
    unused: dict[str, str] = {}
    names = dict.fromkeys(str(name) for frame in frames for name in frame.columns if name not in (target, *by))
    for frame in frames:
        with contextlib.suppress(CustomerError):
            found = read_columns(frame, [name for name in names if name in frame], np.arange(len(frame)))
            unused |= {note.subject: str(note) for note in found.left_out}
            for column in found.columns:
                kinds.setdefault(column.name, Counter())[column.kind] += 1
    used = f"{amount(len(kinds), 'column')} to predict from (in the {amount(len(frames), 'customer')} looked at)"
    yield f"# {used}; choose with `features: [...]`, leave out with `drop: [...]`:"
    for name in [name for name in names if name in kinds][:SHOWN]:
        ((kind, _),), others = kinds[name].most_common(1), len(frames) - kinds[name].total()
        yield f"#   {name}: {kind}{f', not used by {others} of the customers looked at' if others else ''}"
    if len(kinds) > SHOWN:
        yield f"#   … and {len(kinds) - SHOWN} more"
    yield from [f"#   not used: {unused[name]}" for name in names if name not in kinds][:SHOWN]
    for name in (name for name in kinds if _tells_target(name, target, task, frames)):
        yield f"# drop: {_scalar([name])}  # alone it tells the target of every row looked at: is it a leak?"


def _tells_target(name: str, target: str, task: str, frames: Sequence[pd.DataFrame]) -> bool:
    """Return whether a column alone says the target of every row, for every customer with enough rows."""
    found = []
    for frame in (frame for frame in frames if name in frame):
        with contextlib.suppress(CustomerError):
            values = read_target(frame[target], task)[0]
            known = values.notna()
            if known.sum() >= TELLING_ROWS:
                found.append(tells(frame.loc[known, name], values[known], task))
    return bool(found) and all(found)


def _time_split(plan: Plan, why: Mapping[str, object]) -> list[str]:
    if plan.spec.time_column is not None:
        return [
            f"  type: time  # {why['split']}: the latest are held out",
            f"  column: {_scalar(plan.spec.time_column)}",
        ]
    return ["  # group: COLUMN  # rows with the same value stay together, as those of one person"]


def _scalar(value: object) -> str:
    """Return a value as YAML in one line."""
    text = dump_yaml(value, default_flow_style=True, width=10_000).strip(" \n").removesuffix("\n...").strip(" \n")
    if not BREAKS.search(text):
        return text
    return BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _name(data: str, target: str) -> str:
    """Return a name after the file, or after the folder where the file's name is a pattern alone."""
    for name in reversed(without_query(data).rstrip("/").split("/")[-2:]):
        if re.search(r"\w", name := without_suffix(name)):
            return f"{name}-{target}"
    return target


def _relative(data: str, folder: str) -> str:
    if is_uri(data) or os.path.isabs(os.path.expanduser(data)):
        return data
    return os.path.relpath(os.path.abspath(data), folder)
