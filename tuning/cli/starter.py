"""A definition to start from: what the data says, as YAML with a comment on every guess."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Container, Iterator, Mapping, Sequence

import pandas as pd

from search_spaces.yaml_text import dump_yaml
from tuning.basics.wording import amount, did_you_mean
from tuning.cli.first_look import Look, SeenColumn, look, see_column, tells_target
from tuning.data.file_access import file_name
from tuning.data.files import File, file_ids, find_files
from tuning.data.registry import without_suffix
from tuning.errors import CustomerError, DefinitionError
from tuning.evaluation.metrics import is_of_classes, resolve_metric
from tuning.notes import Note
from tuning.preprocessing.classes import guess_positive
from tuning.preprocessing.roles import read_target
from tuning.preprocessing.row_order import RowOrder, date_of, order_text, row_orders
from tuning.preprocessing.task import BINARY, REGRESSION, agreed_task, is_comparable
from tuning.storage.names import is_uri, slug, without_query

RARE = 0.1  # a smaller share than this makes a class rare
SHOWN = 40  # columns
# End a line for YAML, and so a comment, or may not be in it.
BREAKS = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
KEY_NAMES = re.compile(
    r"(^|_)(customer|client|account|tenant|user|patient|store|shop|branch|clinic|hospital|school|zone|region|area|city|"
    r"country|site|station|device|machine|sensor|product|sku|id|key)"
    r"(_?(id|key|name|number|code))?s?$"
)


def starter(data: str, target: str | None, by: Sequence[str], folder: str, metric: str | None = None) -> str:
    """The YAML text. folder: where it will stand, from which its paths are meant. metric: a scorer of scikit-learn;
    None for the default of the task."""
    files = find_files(data)
    seen = look(files)
    names = seen.columns
    if target is None or target not in names:
        hint = did_you_mean(target or "", names)
        said = "--target: which column is to be predicted?" if target is None else f"--target: no column {target!r}."
        raise DefinitionError(
            f"{said}{hint} There are: {', '.join(name[:40] for name in names[:40])}{', …' if len(names) > 40 else ''}."
        )
    if target in by:
        raise DefinitionError(f"--by: {target!r} is the target; name the column that says whose row it is.")
    absent = [name for name in by if name not in names]
    if absent:
        hint = did_you_mean(absent[0], names)
        raise DefinitionError(f"--by: no column {absent[0]!r}.{hint} There are: {', '.join(names[:40])}.")
    customers = seen.customers(by)
    if not any(map(len, seen.tables.values())):
        raise DefinitionError("the files looked at have columns, and no rows to guess from.")
    columns = [see_column(name, customers, seen.values(name)) for name in names if name != target and name not in by]
    targets = {name: frame[target] for name, frame in customers.items() if target in frame.columns}
    targets = {name: values for name, values in targets.items() if is_comparable(values)}
    if not targets:
        raise DefinitionError(f"--target: {target!r} holds lists or the like; a column of numbers or texts is needed.")
    task, why = agreed_task(targets, of_classes=is_of_classes(metric))
    total = seen.distinct(by)[0] if by else len(files)
    some = total > len(customers) or seen.scope
    looked_at = f"in the {amount(len(customers), 'customer')} looked at" if some and (by or len(files) > 1) else ""
    lines = [
        f"# Made by `tuning init` from {_some_files(files, seen)}; every guess says why.",
        "# Look before you run it: tuning validate THIS_FILE, then tuning plan THIS_FILE",
        f"name: {_scalar(slug(_name(data, target), cased=True))}",
        "",
        f"data: {_scalar(_relative(data, folder))}{_yaml_comment(_of_files(files, by, seen))}",
        *_key_lines(files, by, seen, target),
        *_csv_lines(seen),
        "",
        *_target_lines(targets, target, task, why, seen.missing(target), metric),
        "",
        *_column_lines(
            columns,
            {each.name for each in columns if tells_target(each.name, target, task, customers)},
            looked_at,
            seen.scope,
        ),
        "",
        "split:",
        "  test: 0.2  # of each customer's rows, held out for the final score",
        "  folds: 3  # cross-validation of the search",
        *_split_lines(columns, row_orders(customers.values(), target, task)[0]),
        "",
        "trials: 20  # per customer",
        "algorithm: optuna  # or random, grid, hyperopt, …",
        "scheduler: asha  # stops trials that fall behind; or fifo, median, hyperband, …",
        "# search_space: boosting  # the models tried; the default depends on the task",
        "storage: runs  # where run folders are made",
    ]
    return "\n".join(BREAKS.sub(" ", line) for line in lines) + "\n"


def _of_files(files: Sequence[File], by: Sequence[str], seen: Look) -> str:
    what = "one table" if by else "one customer"
    if len(files) > 1 and not by:
        what = f"{amount(len(files), 'file')}, each a customer"
    return what + (f"; of those looked at {len(seen.unreadable)} cannot be read" if seen.unreadable else "")


def _key_lines(files: Sequence[File], by: Sequence[str], seen: Look, target: str) -> list[str]:
    if by:
        count, scope = seen.distinct(by)
        return [f"by: {_scalar(list(by))}  # each value (combination) is a customer: {count:,} of them{scope}"]
    if len(files) > 1:
        return []
    (frame,) = seen.tables.values()
    found = []
    for name in frame.columns:
        distinct = frame[name].nunique()
        spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
        if name != target and KEY_NAMES.search(spelled) and 2 <= distinct <= len(frame) / 4:
            found.append(
                f"# by: {_scalar(str(name))}  # {distinct} different values{seen.scope}: is each of them a customer?"
            )
    return found[:3]


def _csv_lines(seen: Look) -> list[str]:
    alike, all_files = seen.agreeing
    guessed = f"# guessed from {f'{alike} of ' if alike < all_files else ''}the {amount(all_files, 'file')} looked at"
    options = {name: value for name, value in seen.csv.items() if name != "encoding"}
    lines = [f"encoding: {seen.csv['encoding']}  {guessed}"] if "encoding" in seen.csv else []
    return [*lines, f"csv: {_scalar(options)}  {guessed}"] if options else lines


def _target_lines(
    targets: Mapping[str, pd.Series], target: str, task: str, why: Note, missing: tuple[int, str], metric: str | None
) -> list[str]:
    count, scope = missing
    left_out = f"{amount(count, 'row')} without it{scope} {'is' if count == 1 else 'are'} left out" if count else ""
    lines = [
        f"target: {_scalar(target)}{_yaml_comment(left_out)}",
        f"task: {task}  # {why}",
    ]
    usable = list(_cleaned(targets, task))
    guess = guess_positive(usable) if task == BINARY else None
    if guess is not None:
        lines.append(f"positive: {_scalar(guess[0])}  # {guess[1]}")
    told = f"the default for {task}" if metric is None else "as given"
    name = resolve_metric(metric, task)
    lines.append(f"metric: {name}  # {told}; any scorer of scikit-learn, or your own function")
    if task != REGRESSION and usable:
        shares = pd.concat(usable, ignore_index=True).value_counts(normalize=True)
        if shares.min() < RARE:
            rare = f"{str(shares.index[-1])!r} is {100 * shares.min():.1f} % of the rows"
            lines.append(f"# class_weight: balanced  # {rare}; average_precision may say more as a metric, too")
    return lines


def _cleaned(targets: Mapping[str, pd.Series], task: str) -> Iterator[pd.Series]:
    for values in targets.values():
        with contextlib.suppress(CustomerError):
            yield read_target(values, task)[0].dropna()


def _column_lines(columns: Sequence[SeenColumn], telling: Container[str], looked_at: str, scope: str) -> list[str]:
    """looked_at: whose columns they are, scope: of which rows the counts are; empty where of all."""
    used = [column for column in columns if column.kind]
    said = ", ".join(filter(None, (looked_at, f"counted{scope}" if scope else "")))
    lines = [
        f"# {amount(len(used), 'column')} to predict from{f' ({said})' if said else ''}; "
        "choose with `features: [...]`, leave out with `drop: [...]`:"
    ]
    for column in used[:SHOWN]:
        kinds = f"{column.texts:,} different" if column.kind == "text" else ""
        gaps = f"{column.missing:,} missing" if column.missing else ""
        others = f"something else for {column.differing} of the customers looked at" if column.differing else ""
        without = f"not used by {column.not_using} of the customers looked at" if column.not_using else ""
        lines.append(f"#   {column.name}: {', '.join(filter(None, (column.kind, kinds, gaps, others, without)))}")
    if len(used) > SHOWN:
        lines.append(f"#   … and {len(used) - SHOWN} more")
    not_used = f"not used {looked_at}".strip()
    lines += [f"#   {not_used}: {column.unused}" for column in columns if column.unused and not column.kind][:20]
    if not used:
        lines.append("#   none: there is nothing to predict from")
    for column in used:
        if column.name in telling:
            told = f"alone it tells the target of every row {looked_at}".strip()
            lines.append(f"# drop: {_scalar([column.name])}  # {told}: is it a leak?")
    return lines


def _split_lines(columns: Sequence[SeenColumn], orders: Sequence[RowOrder]) -> list[str]:
    if (column := date_of(orders)) is not None:
        return [f"  type: time  # {order_text(orders)}: the latest are held out", f"  column: {_scalar(column)}"]
    if orders:
        by = _scalar(orders[0].column or "COLUMN")
        return [f"  # type: time  # {order_text(orders)}: is there an order of time?", f"  # column: {by}"]
    dates = [column.name for column in columns if column.kind == "date"]
    if not dates:
        return ["  # group: COLUMN  # rows with the same value stay together, as those of one person"]
    name = _scalar(dates[0])
    return [
        f"  # type: time  # is the future predicted from the past? Then the latest rows by {name} are held out:",
        f"  # column: {name}",
    ]


def _scalar(value: object) -> str:
    """A value as YAML in one line."""
    text = dump_yaml(value, default_flow_style=True, width=10_000).strip(" \n").removesuffix("\n...").strip(" \n")
    if not BREAKS.search(text):
        return text
    return BREAKS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))


def _yaml_comment(comment: str) -> str:
    return f"  # {comment}" if comment else ""


def _some_files(files: Sequence[File], seen: Look) -> str:
    """The first one that was read, and how many more there are."""
    first = next(file for file, name in zip(files, file_ids(files), strict=True) if name in seen.tables)
    return file_name(first.path) + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def _name(data: str, target: str) -> str:
    """After the file, or after the folder where the file's name is a pattern alone."""
    for name in reversed(without_query(data).rstrip("/").split("/")[-2:]):
        name = without_suffix(name)
        if re.search(r"\w", name):
            return f"{name}-{target}"
    return target


def _relative(data: str, folder: str) -> str:
    if is_uri(data) or os.path.isabs(os.path.expanduser(data)):
        return data
    return os.path.relpath(os.path.abspath(data), folder)
