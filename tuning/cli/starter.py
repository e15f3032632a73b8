"""A definition to start from: what the data says, as YAML with a comment on every guess."""

from __future__ import annotations

import csv as csv_module
import io
import os
import re
from collections.abc import Sequence

import numpy as np
import pandas as pd

from search_spaces.yaml_text import dump_yaml
from tuning.data.files import File, find_files
from tuning.data.reading import CSV_SUFFIXES, CsvOptions, file_name, is_parquet, located, read_frame, without_query
from tuning.errors import CustomerError, DataError, DefinitionError
from tuning.evaluation.metrics import DEFAULT_METRIC
from tuning.preprocessing.columns import MISSING, read_columns
from tuning.preprocessing.task import REGRESSION, guess_task
from tuning.storage.names import is_uri, slug
from tuning.wording import did_you_mean

LOOKED_AT = 5
ROWS = 50_000
RARE = 0.1  # a smaller share than this makes a class rare
KEY_NAMES = re.compile(
    r"(^|_)(customer|client|account|tenant|store|shop|zone|region|site|device|product|sku|id|key)"
    r"(_?(id|key|name|number|code))?s?$"
)


def starter(data: str, target: str | None, by: Sequence[str], folder: str) -> str:
    """The YAML text. folder: where it will stand, from which its paths are meant."""
    files = find_files(data)
    csv = _guess_csv(files)
    frames, unreadable = _look(files, csv)
    names = list(frames[0].columns)
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
        raise DefinitionError(f"--by: no column {absent[0]!r}. There are: {', '.join(names[:40])}.")
    everything = pd.concat(frames, ignore_index=True)
    lines = [
        f"# Made by `tuning init` from {_some_files(files)}; every guess says why. Check with: tuning plan THIS_FILE",
        f"name: {_scalar(slug(_name(data, target)))}",
        "",
        f"data: {_scalar(_relative(data, folder))}{_said(_of_files(files, by, unreadable))}",
        *_key_lines(files, by, everything, target),
        *_csv_lines(csv),
        "",
        *_target_lines(everything[target], target),
        "",
        *_column_lines(everything, target, by),
        "",
        "split:",
        "  test: 0.2  # of each customer's rows, held out for the final score",
        "  folds: 3  # cross-validation of the search",
        *_split_lines(everything, target),
        "",
        "trials: 20  # per customer",
        "algorithm: optuna  # or random, grid, hyperopt, …",
        "scheduler: asha  # stops trials that fall behind; or fifo, median, hyperband, …",
        "# search_space: boosting  # the models tried; default by task, see docs/models.md",
        "storage: runs  # where run folders are made",
    ]
    return "\n".join(lines) + "\n"


# --- looking ------------------------------------------------------------------------------------


def _guess_csv(files: Sequence[File]) -> CsvOptions:
    """Options of pandas.read_csv that read the first CSV file: its encoding, separator and decimal sign."""
    first = next((file for file in files if not is_parquet(file.path)), None)
    if first is None:
        return {}
    filesystem, inner = located(first.path)
    try:
        compression = "gzip" if without_query(first.path).lower().endswith(".gz") else None
        with filesystem.open_input_stream(inner, compression=compression) as stream:
            head = bytes(stream.read(1 << 20))
    except OSError as error:
        raise DataError(f"{file_name(first.path)} cannot be read: {error}.") from error
    encoding = _guess_encoding(head)
    text = head.decode(encoding, "replace")
    first_line = next(iter(text.splitlines()), "")
    # The header alone decides: csv.Sniffer was wrong for 4 % of 3,000 generated tables, this for none of them.
    counts = {sep: first_line.count(sep) for sep in (",", ";", "\t", "|")}
    sep = max(counts, key=lambda sep: counts[sep])
    if counts[sep] == 0 or counts[","] == counts[sep]:
        sep = ","
    options = {} if encoding == "utf-8" else {"encoding": encoding}
    if sep == ",":
        return options
    rows = list(csv_module.reader(io.StringIO(text), delimiter=sep))[1:50]
    cells = [cell for row in rows for cell in row]
    comma = sum(bool(re.fullmatch(r"-?\d+,\d+", cell)) for cell in cells)
    point = sum(bool(re.fullmatch(r"-?\d+\.\d+", cell)) for cell in cells)
    return {**options, "sep": sep, **({"decimal": ","} if comma > point else {})}


def _guess_encoding(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    try:
        head[: head.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"  # charset-normalizer takes such text for cp1250 or cp775
    return "utf-8"


def _look(files: Sequence[File], csv: CsvOptions) -> tuple[list[pd.DataFrame], list[str]]:
    """The first rows of the largest files, and what could not be read."""
    frames: list[pd.DataFrame] = []
    unreadable: list[str] = []
    for file in sorted(files, key=lambda file: -file.size)[: 2 * LOOKED_AT]:
        try:
            frames.append(read_frame(file.path, {"encoding": "utf-8", **csv}, rows=ROWS))
        except CustomerError as error:
            unreadable.append(str(error))
        if len(frames) == LOOKED_AT:
            break
    if not frames:
        raise DataError(f"none of the files can be read: {unreadable[0]}")
    return frames, unreadable


# --- saying -------------------------------------------------------------------------------------


def _of_files(files: Sequence[File], by: Sequence[str], unreadable: Sequence[str]) -> str:
    what = (
        f"{len(files)} files, each a customer" if len(files) > 1 and not by else "one table" if by else "one customer"
    )
    return what + (f"; of those looked at {len(unreadable)} cannot be read" if unreadable else "")


def _key_lines(files: Sequence[File], by: Sequence[str], frame: pd.DataFrame, target: str) -> list[str]:
    if by:
        return [f"by: {_scalar(list(by))}  # each value (combination) is a customer"]
    if len(files) > 1:
        return []
    found = []
    for name in frame.columns:
        distinct = frame[name].nunique()
        spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
        if name != target and KEY_NAMES.search(spelled) and 2 <= distinct <= len(frame) / 4:
            found.append(f"# by: {_scalar(str(name))}  # {distinct} different values: is each of them a customer?")
    return found[:3]


def _csv_lines(csv: CsvOptions) -> list[str]:
    lines = []
    if "encoding" in csv:
        lines.append(f"encoding: {csv['encoding']}  # the first file is not UTF-8; guessed")
    options = {name: value for name, value in csv.items() if name != "encoding"}
    if options:
        lines.append(f"csv: {_scalar(options)}  # guessed from the first file")
    return lines


def _target_lines(values: pd.Series, target: str) -> list[str]:
    task, why = guess_task(values)
    missing = int(values.isna().sum())
    gaps = f"; {missing} rows without it are left out" if missing else ""
    lines = [
        f"target: {_scalar(target)}{_said(gaps.removeprefix('; '))}",
        f"task: {task}  # {why}",
        f"metric: {DEFAULT_METRIC[task]}  # the default for {task}; any scorer of scikit-learn, or your own function",
    ]
    if task != REGRESSION:
        shares = values.value_counts(normalize=True)
        if shares.min() < RARE:
            rare = f"{str(shares.index[-1])!r} is {100 * shares.min():.1f} % of the rows"
            lines.append(f"# class_weight: balanced  # {rare}; average_precision may say more as a metric, too")
    return lines


def _column_lines(frame: pd.DataFrame, target: str, by: Sequence[str]) -> list[str]:
    names = [name for name in frame.columns if name != target and name not in by]
    found = read_columns(frame, names, np.arange(len(frame)))
    columns, left_out = found.columns, found.left_out
    lines = [f"# {len(columns)} columns to predict from; choose with `features: [...]`, leave out with `drop: [...]`:"]
    texts = iter(found.raw.categories)
    for column in columns[:40]:
        gaps = int(frame[column.name].isna().sum())
        kinds = len([text for text in next(texts) if text != MISSING]) if column.kind == "text" else 0
        more = f", {kinds} different" if kinds else ""
        lines.append(f"#   {column.name}: {column.kind}{more}{f', {gaps} missing' if gaps else ''}")
    if len(columns) > 40:
        lines.append(f"#   … and {len(columns) - 40} more")
    lines += [f"#   not used: {text}" for text in left_out[:20]]
    if not columns:
        lines.append("#   none: there is nothing to predict from")
    return lines


def _split_lines(frame: pd.DataFrame, target: str) -> list[str]:
    names = [name for name in frame.columns if name != target]
    found = read_columns(frame, names, np.arange(len(frame)))
    dates = [column.name for column in found.columns if column.kind == "date"]
    if not dates:
        return ["  # group: COLUMN  # rows with the same value stay together, as those of one person"]
    name = _scalar(dates[0])
    return [
        f"  # type: time  # is the future predicted from the past? Then the latest rows by {name} are held out:",
        f"  # column: {name}",
    ]


def _scalar(value: object) -> str:
    """A value as YAML in one line."""
    text = dump_yaml(value, default_flow_style=True, width=10_000).strip()
    return text.removesuffix("\n...").strip()


def _said(comment: str) -> str:
    return f"  # {comment}" if comment else ""


def _some_files(files: Sequence[File]) -> str:
    return file_name(files[0].path) + (f" and {len(files) - 1} more" if len(files) > 1 else "")


def _name(data: str, target: str) -> str:
    stem = os.path.basename(without_query(data).rstrip("/"))
    for suffix in (*CSV_SUFFIXES, ".parquet", ".pq"):
        stem = stem.removesuffix(suffix)
    return f"{stem}-{target}" if re.search(r"\w", stem) else target


def _relative(data: str, folder: str) -> str:
    if is_uri(data) or os.path.isabs(os.path.expanduser(data)):
        return data
    return os.path.relpath(os.path.abspath(data), folder)
