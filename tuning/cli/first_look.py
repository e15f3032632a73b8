"""A look at the data before there is a definition: how its files are written, and what its customers' columns hold.

Files and customers are each looked at by themselves, and the majority decides: an odd one changes nothing for all.
"""

from __future__ import annotations

import csv as csv_module
import io
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TypeVar

import numpy as np
import pandas as pd

from tuning.basics.wording import amount, raised
from tuning.data.cells import ReadCsvOptions
from tuning.data.files import File, file_ids
from tuning.data.formats.csv_file import CsvSource
from tuning.data.keys import Key, row_keys
from tuning.data.registry import file_source, format_of
from tuning.data.table_source import FileSource
from tuning.errors import CustomerError, DataError
from tuning.preprocessing.columns import read_columns
from tuning.preprocessing.notations import notations
from tuning.preprocessing.roles import read_target
from tuning.preprocessing.telling import tells

LOOKED_AT = 5  # files or customers
ROWS = 50_000  # of a file
SMALL_BYTES, ROWS_OF_SMALL = 1 << 26, 1_000_000  # a single file up to this size is read as a whole, or nearly
HEAD_BYTES = 1 << 20
TELLING_ROWS = 20  # with fewer, a column tells the target by chance
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Look:
    """What was seen of the largest files.

    Attributes:
        csv: options of `pandas.read_csv` that read them.
        agreeing: how many of how many files are written like that.
        tables: their first rows, by the file's id.
        unreadable: why other ones cannot be read.
        scope: of what their figures are, as in " in the first 50,000 rows"; empty where all rows were read.
        quick: the only file, where it is not read as a whole and tells some figures without that; else None.
    """

    csv: ReadCsvOptions
    agreeing: tuple[int, int]
    tables: Mapping[str, pd.DataFrame]
    unreadable: Sequence[str]
    scope: str = ""
    quick: FileSource | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that any table has."""
        return list(dict.fromkeys(str(name) for table in self.tables.values() for name in table.columns))

    def customers(self, by: Sequence[str]) -> dict[str, pd.DataFrame]:
        """The rows of the largest customers, by id: a table each, or the rows of each value of key columns."""
        if not by:
            return dict(self.tables)
        groups: dict[str, pd.DataFrame] = {}
        for table in (table for table in self.tables.values() if set(by) <= set(table.columns)):
            codes = table.groupby(list(by), dropna=False, sort=False).ngroup().to_numpy()
            for code in np.argsort(-np.bincount(codes), kind="stable")[:LOOKED_AT]:
                rows = table[codes == code]
                groups.setdefault("/".join(str(rows[name].iloc[0]) for name in by), rows)
        largest = sorted(groups, key=lambda name: -len(groups[name]))[:LOOKED_AT]
        return {name: groups[name] for name in largest}

    def values(self, name: str) -> pd.Series:
        """All rows of a column."""
        return pd.concat([table[name] for table in self.tables.values() if name in table.columns], ignore_index=True)

    def missing(self, name: str) -> tuple[int, str]:
        """How many of a column's values are missing, and the scope of that."""
        counted = None if self.quick is None else self.quick.missing(name)
        return (int(self.values(name).isna().sum()), self.scope) if counted is None else (counted, "")

    def distinct(self, names: Sequence[str]) -> tuple[int, str]:
        """How many different combinations columns hold, and the scope of that; at best in a pass of these alone."""
        if self.quick is not None:
            keys = [set(row_keys(piece.keys, names)[1]) for piece in self.quick.pieces(names, lambda _: names)]
            return len(set[Key]().union(*keys)), ""
        tables = [table[[*names]] for table in self.tables.values() if set(names) <= set(table.columns)]
        return len(pd.concat(tables, ignore_index=True).astype(str).drop_duplicates()), self.scope


def look(files: Sequence[File]) -> Look:
    """Read the first rows of the largest files; `DataError` when none can be read."""
    ids = dict(zip([file.path for file in files], file_ids(files), strict=True))
    largest = sorted(files, key=lambda file: -file.size)
    csv, agreeing = _guess_csv([file for file in largest if format_of(file.path) is CsvSource][:LOOKED_AT])
    tables: dict[str, pd.DataFrame] = {}
    unreadable: list[str] = []
    most = ROWS_OF_SMALL if len(files) == 1 and files[0].size <= SMALL_BYTES else ROWS
    for file in largest[: 2 * LOOKED_AT]:
        try:
            tables[ids[file.path]] = file_source(file.path, {"encoding": "utf-8", **csv}).read(rows=most)
        except CustomerError as error:
            unreadable.append(str(error))
        if len(tables) == LOOKED_AT:
            break
    if not tables:
        raise DataError(f"none of the files can be read: {unreadable[0]}")
    whole = len(tables) == len(files) and all(len(table) < most for table in tables.values())
    looked = f"first {amount(most, 'row')}" if len(files) == 1 else f"{amount(len(tables), 'file')} looked at"
    source = file_source(files[0].path, {"encoding": "utf-8", **csv})
    quick = source if len(files) == 1 and not whole and not isinstance(source, CsvSource) else None
    return Look(csv, agreeing, tables, unreadable, "" if whole else f" in the {looked}", quick)


# --- how CSV files are written -------------------------------------------------------------------


def _guess_csv(files: Sequence[File]) -> tuple[ReadCsvOptions, tuple[int, int]]:
    """Options of pandas.read_csv that read most of the files: encoding, separator and how numbers are written."""
    heads = [head for head in map(_head, files) if head]
    encodings = [_encoding(head) for head in heads]
    shown = [found for found in encodings if found is not None]
    if shown.count("utf-16") <= encodings.count(None):  # in which what is the same in all others is another text
        shown = [found for found in shown if found != "utf-16"]
    encoding = _most(shown) or "utf-8"
    texts = [head.decode(own or encoding, "replace") for head, own in zip(heads, encodings, strict=True)]
    signs = [_signs(text) for text in texts]
    sep, decimal = _most(each[:2] for each in signs) or (",", ".")
    found = [(own, each[2]) for own, each in zip(encodings, signs, strict=True) if each[:2] == (sep, decimal)]
    alike = sum(own in (None, encoding) for own, _ in found)
    group = _most(group for _, group in found if group)
    options = {"encoding": encoding, "sep": sep, "decimal": decimal, "thousands": group}
    usual = {"encoding": "utf-8", "sep": ",", "decimal": ".", "thousands": None}
    return {name: value for name, value in options.items() if value != usual[name]}, (alike, len(heads))


def _most(found: Iterable[T]) -> T | None:
    """The most frequent one; of equally frequent ones the first, which is that of the largest file."""
    return next((value for value, _ in Counter(found).most_common(1)), None)


def _head(file: File) -> bytes:
    """Nothing where the file cannot be read: `look` says so."""
    try:
        return CsvSource(file.path, {}).head(HEAD_BYTES)
    except CustomerError:
        return b""


def _encoding(head: bytes) -> str | None:
    """The encoding that a file's bytes show; None where they are the same in all but UTF-16."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if head.isascii():
        return None
    try:
        head[: head.rfind(b"\n") + 1 or None].decode("utf-8")
    except UnicodeDecodeError:
        return "cp1252"  # charset-normalizer takes such text for cp1250 or cp775
    return "utf-8"


def _signs(text: str) -> tuple[str, str, str]:
    """(separator, decimal sign, sign between thousands) of a CSV's text; empty where none shows."""
    first_line = next(iter(text.splitlines()), "")
    # The header alone decides: csv.Sniffer was wrong for 4 % of 3,000 generated tables, this for none of them.
    counts = {sep: first_line.count(sep) for sep in (",", ";", "\t", "|")}
    sep = max(counts, key=lambda sep: counts[sep])
    rows = list(csv_module.reader(io.StringIO(text), delimiter=sep))[1:50]
    columns = [[cell for cell in column if cell.strip()] for column in zip_longest(*rows, fillvalue="")]
    points = any(re.fullmatch(r"-?\d+\.(?!\d{3}$)\d+", cell) for column in columns for cell in column)
    # A comma that may be either stands between thousands where fields are separated by commas, or decimals by points.
    meant = -1 if sep == "," or points else 0
    signs = {name: sign for column in columns for name, sign in (notations(column) or [{}])[meant].items()}
    decimal, group = signs.get("decimal", "."), signs.get("thousands", "")
    return sep, decimal, "" if group == decimal or (points and group == ".") else group


# --- what columns hold ---------------------------------------------------------------------------


@dataclass(frozen=True)
class SeenColumn:
    """A column as most rows of those customers have it that can use it.

    Attributes:
        name: its name.
        kind: one of `tuning.preprocessing.kinds`, such as "number"; empty when nobody can use it.
        unused: why not, or why some cannot.
        not_using: how many of the customers cannot use it.
        differing: how many of the others have another kind of column there.
        texts: how many different texts there are.
        missing: how many values are missing.
    """

    name: str
    kind: str
    unused: str
    not_using: int
    differing: int
    texts: int
    missing: int


def see_column(name: str, customers: Mapping[str, pd.DataFrame], values: pd.Series) -> SeenColumn:
    """What a column holds, by the customers that have it. values: of all rows that were read."""
    rows, reasons = Counter[str](), Counter[str]()
    found = []
    for frame in (frame for frame in customers.values() if name in frame.columns):
        try:
            features = read_columns(frame, [name], np.arange(len(frame)))
            kind, unused = features.columns[0].kind if features.columns else "", "".join(map(str, features.left_out))
        except Exception as error:  # a run would give this customer a reason
            kind, unused = "", f"{name}: {raised(error)}"
        found.append(kind)
        (rows if kind else reasons)[kind or unused] += len(frame)
    kind = max(rows, key=lambda each: rows[each], default="")
    unused = max(reasons, key=lambda each: reasons[each], default="")
    not_using = found.count("")
    differing = len(found) - not_using - found.count(kind) if kind else 0
    texts = values.dropna().astype(str).nunique() if kind == "text" else 0
    return SeenColumn(name, kind, unused, not_using, differing, texts, int(values.isna().sum()))


def tells_target(name: str, target: str, task: str, customers: Mapping[str, pd.DataFrame]) -> bool:
    """Whether a column alone says the target of every row, for every customer with enough rows."""
    found = []
    for frame in customers.values():
        if name not in frame.columns or target not in frame.columns:
            continue
        try:
            values = read_target(frame[target], task)[0]
        except CustomerError:
            continue
        known = values.notna()
        if known.sum() >= TELLING_ROWS:
            found.append(tells(frame.loc[known, name], values[known], task))
    return bool(found) and all(found)
