"""What each customer's rows are known by, one by one, in tables of any size.

A table is read block by block (row groups of Parquet, other files as a whole), several at once. Of each block is known
whose rows it holds, with the 64 bits of each row (`tuning.preprocessing.row_hashes`). A block whose bytes are those of
last time is not decoded again, and a file with the stamp of last time is not even opened.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from tuning.data.cells import in_plain_notation
from tuning.data.customers import Customers
from tuning.data.file_access import look_at_each
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.keyed_tables import TablePart, find_tables
from tuning.data.keys import customer_id, row_keys
from tuning.data.registry import format_of
from tuning.data.table_source import ColumnChoice, FileSource, Piece, RowBlock
from tuning.definition.cpus import usable_cpus
from tuning.definition.definition import Definition
from tuning.errors import CustomerError
from tuning.preprocessing.row_hashes import row_hashes
from tuning.storage.names import mask

T = TypeVar("T")
V = TypeVar("V")

FORM = 2  # of these tables and of row hashes: rows that were known by another form are read again
BASIS = b"tuning.rows"
#: One row for each customer and block. rows: how many of its rows the block holds; digest: the sum of their hashes,
#: which does not depend on their order; each: their hashes, in the order of the table. columns: names and kinds, as
#: JSON. block_rows, file_rows: how many rows the block and its file hold of all customers, so that it is noticed where
#: somebody's are not remembered. reason: why a customer's own file cannot be read; then its rows are of last time.
#: Rows without a target are left out: they count once it is known.
ROWS = pa.schema(
    [
        ("customer", pa.string()),
        ("file", pa.string()),
        ("stamp", pa.string()),
        ("block", pa.string()),
        ("columns", pa.string()),
        ("block_rows", pa.int64()),
        ("file_rows", pa.int64()),
        ("rows", pa.int64()),
        ("digest", pa.uint64()),
        ("each", pa.list_(pa.uint64())),
        ("reason", pa.string()),
    ]
)
KINDS: tuple[tuple[str, Callable[[pa.DataType], bool]], ...] = (
    ("number", lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)),
    ("date", pa.types.is_temporal),
    ("truth", pa.types.is_boolean),
    ("empty", pa.types.is_null),
)


@dataclass(frozen=True)
class Part:
    """A file, or a frame, and whose rows it holds.

    Attributes:
        file, stamp: its path without secrets and what changes when it is written; empty of a frame.
        customer: None where key columns say it.
        prefix: of ids that these say.
    """

    part: TablePart
    file: str = ""
    stamp: str = ""
    customer: str | None = None
    prefix: str = ""

    def blocks(self) -> list[tuple[Part, RowBlock]]:
        """What can be read alone."""
        source = self.part.source
        return [(self, block) for block in (source.blocks() if isinstance(source, FileSource) else [RowBlock()])]

    def pieces(self, block: RowBlock, choose: ColumnChoice | None = None) -> Iterator[Piece]:
        """The chosen columns of a block's rows, by default those that they are known by, and their keys."""
        if isinstance(self.part.source, FileSource):
            return self.part.block_pieces(block, choose or partial(learned_columns, self.part.definition))
        return self.part.pieces()

    def block_digest(self, block: RowBlock) -> str:
        """What changes with the bytes of a block; empty where nothing tells it."""
        source = self.part.source
        return source.block_digest(block) if isinstance(source, FileSource) else ""


def rows_now(definition: Definition, customers: Customers, remembered: pa.Table | None = None) -> pa.Table:
    """The rows that the customers have now, by `ROWS`; `CustomerError` where a table of several cannot be read.

    remembered: what was found last time; rows of blocks that have not changed are taken from there. It is of no use
    where the definition now reads other columns, or reads them in another way.
    """
    known = Remembered.of(definition, remembered)
    parts = list(parts_of(definition, customers))
    there = [known.of_file(each) for each in parts]
    if parts and all(each is not None for each in there) and known.files == {each.file for each in parts}:
        return known.table
    unread = [part for part, found in zip(parts, there, strict=True) if found is None]
    read = known.read_parts(unread)
    found = [each for each in there if each is not None] + read
    schema = ROWS.with_metadata({BASIS: _basis(definition)})
    return pa.concat_tables([schema.empty_table(), *(each.replace_schema_metadata(schema.metadata) for each in found)])


class Remembered:
    """What was found last time, by file and by block. Rows of a block are next to each other there."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._of_file = _runs(table, ("file", "stamp"), "file_rows")
        self._of_block = {block: place for (block,), place in _runs(table, ("block",), "block_rows").items() if block}
        self.files = {file for file, _ in self._of_file}

    @classmethod
    def of(cls, definition: Definition, table: pa.Table | None) -> Remembered:
        """What a table is worth to a definition."""
        same = table is not None and _basis_of(table) == _basis(definition)
        return cls(table if same else ROWS.empty_table())

    def other_blocks(self, part: Part) -> list[RowBlock]:
        """The blocks of a file that are not those of last time."""
        if self.of_file(part) is not None:
            return []
        return [block for _, block in part.blocks() if part.block_digest(block) not in self._of_block]

    def of_file(self, part: Part) -> pa.Table | None:
        """The rows of a file that nobody has written since."""
        place = self._of_file.get((part.file, part.stamp)) if part.stamp else None
        return None if place is None else self.table[place]

    def read_parts(self, parts: Sequence[Part]) -> list[pa.Table]:
        """The rows of files that were written since; of a customer's own that cannot be read, those of last time."""
        blocks = in_parallel(_blocks_or_reason, parts)
        tables = iter(in_parallel(self._read_or_reason, [each for found in blocks for each in _blocks_of(found)]))
        found: list[pa.Table] = []
        for part, of_part in zip(parts, blocks, strict=True):
            mine = [of_part] if isinstance(of_part, str) else [next(tables) for _ in of_part]
            whole = [each for each in mine if not isinstance(each, str)]
            if reason := next((each for each in mine if isinstance(each, str)), None):
                found.append(self.unreadable(part, reason))
                continue
            total = sum(pc.sum(each["rows"], min_count=0).as_py() for each in whole)
            found += [_with_value(each, "file_rows", total) for each in whole]
        return found

    def _read_or_reason(self, of_part: tuple[Part, RowBlock]) -> pa.Table | str:
        try:
            return self.read(of_part)
        except CustomerError as error:
            if of_part[0].customer is None:
                raise
            return str(error)

    def unreadable(self, part: Part, reason: str) -> pa.Table:
        """What is remembered of a customer whose file cannot be read, without a stamp: it is looked at again."""
        own = pc.and_(pc.equal(self.table["customer"], part.customer), pc.equal(self.table["file"], part.file))
        found = self.table.filter(own)
        if not len(found):
            empty = dict.fromkeys(ROWS.names, "") | dict.fromkeys(("block_rows", "file_rows", "rows", "digest"), 0)
            row: dict[str, object] = {
                **empty,
                "customer": part.customer,
                "file": part.file,
                "columns": "{}",
                "each": [],
            }
            found = pa.Table.from_pylist([row], ROWS)
        return _with_value(_with_value(found, "stamp", ""), "reason", reason)

    def read(self, of_part: tuple[Part, RowBlock]) -> pa.Table:
        """The rows of a block: those of last time where its bytes are."""
        part, block = of_part
        digest = part.block_digest(block)
        if (place := self._of_block.get(digest)) is None:
            return read_block(part, block, digest)
        found = self.table[place]
        if part.customer is not None and len(found) == 1:
            found = _with_value(found, "customer", part.customer)
        of_now = {"file": part.file, "stamp": part.stamp, "reason": None}
        for name, value in of_now.items():
            found = _with_value(found, name, value)
        return found


def _runs(table: pa.Table, names: Sequence[str], whole: str) -> dict[tuple[str, ...], slice]:
    """Where the rows with the same texts are, next to each other; only where they are all.

    whole: the column that says how many rows they stand for.
    """
    if not table.num_rows:
        return {}
    codes = np.zeros(table.num_rows, dtype=np.int64)
    for name in names:
        encoded = table.column(name).combine_chunks().dictionary_encode()
        codes = codes * (len(encoded.dictionary) + 1) + encoded.indices.to_numpy()
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    ends = np.r_[starts[1:], len(codes)]
    texts = zip(*(table.column(name).take(pa.array(starts)).to_pylist() for name in names), strict=True)
    there = np.add.reduceat(table.column("rows").to_numpy(), starts) == table.column(whole).to_numpy()[starts]
    places = zip(texts, starts.tolist(), ends.tolist(), there.tolist(), strict=True)
    return {text: slice(start, end) for text, start, end, complete in places if complete}


def _blocks_or_reason(part: Part) -> list[tuple[Part, RowBlock]] | str:
    try:
        return part.blocks()
    except CustomerError as error:
        if part.customer is None:
            raise
        return str(error)


def _blocks_of(found: list[tuple[Part, RowBlock]] | str) -> list[tuple[Part, RowBlock]]:
    return [] if isinstance(found, str) else found


def _with_value(table: pa.Table, name: str, value: str | int | None) -> pa.Table:
    place, kind = table.schema.get_field_index(name), table.schema.field(name)
    return table.set_column(place, kind, _repeated(value, len(table)).cast(kind.type))


def _repeated(value: str | int | None, times: int) -> pa.Array:
    return pa.array([value]).take(pa.array(np.zeros(times, dtype=np.int64)))


def parts_of(definition: Definition, customers: Customers) -> Iterator[Part]:
    data = definition.data
    if definition.by or isinstance(data, pd.DataFrame):
        tables = find_tables(data, definition.by)
        stamp_of = _stamps(file.path for table in tables for file in table.files)
        for table in tables:
            for number, part in enumerate(table.parts(definition)):
                file = table.files[number].path if table.files else ""
                customer = None if definition.by else definition.name
                yield Part(part, mask(file), stamp_of.get(file, ""), customer, table.prefix)
        return
    stamp_of = _stamps(file for files in customers.shared("files").distinct for file in files)
    for each in customers:
        if each.files:
            file = each.files[0]
            yield Part(TablePart.of_file(file, definition), mask(file), stamp_of[file], each.id)
        elif isinstance(data, Mapping):
            yield Part(TablePart(FrameSource(data[each.id]), definition, {}), customer=each.id)


def _stamps(files: Iterable[str]) -> dict[str, str]:
    return look_at_each(lambda path: format_of(path).stamp(path), files)


def in_parallel(action: Callable[[T], V], values: Sequence[T]) -> list[V]:
    """What an action makes of each value, in their order, as many at once as there are CPUs."""
    if len(values) < 2:
        return [action(each) for each in values]
    with ThreadPoolExecutor(usable_cpus()) as pool:
        return list(pool.map(action, values))


@dataclass(frozen=True)
class HashedRows:
    """What rows of a piece are known by.

    Attributes:
        own: (n,) of which customer each is, as a position in `ids`.
        hashes: (n,) of each.
        known: (n,) whether it has a target, as far as the table says it.
        columns: names and kinds, as JSON.
    """

    own: np.ndarray
    ids: Sequence[str]
    hashes: np.ndarray
    known: np.ndarray
    columns: str

    @classmethod
    def of(cls, part: Part, piece: Piece) -> HashedRows:
        """Of a piece with at least the columns that rows are known by."""
        definition, rows = part.part.definition, piece.rows
        left_out = {*definition.by, *_index_columns(rows.schema)}
        rows = rows.select([name for name in learned_columns(definition, rows.column_names) if name not in left_out])
        hashes = row_hashes(_in_notation(rows, definition))
        if part.customer is None:
            own, keys = row_keys(piece.keys, definition.by)
            ids = [part.prefix + customer_id(key) for key in keys]
        else:
            own, ids = np.zeros(len(hashes), dtype=np.int64), [part.customer]
        return cls(own, ids, hashes, _with_target(piece.rows, definition), _columns(rows.schema))


def read_block(part: Part, block: RowBlock, digest: str = "") -> pa.Table:
    """A block's rows, by `ROWS`."""
    hashes, codes, numbers, columns = [], [], dict[str, int](), ""
    for piece in part.pieces(block):
        each = HashedRows.of(part, piece)
        columns = columns or each.columns
        place = np.array([numbers.setdefault(name, len(numbers)) for name in each.ids], dtype=np.int64)[each.own]
        hashes.append(each.hashes[each.known])
        codes.append(place[each.known])
    found, of_row = (np.concatenate(each) if each else np.zeros(0, dtype=np.int64) for each in (hashes, codes))
    order = np.argsort(of_row, kind="stable")
    rows_of = np.bincount(of_row, minlength=len(numbers))
    ends = np.cumsum(rows_of)
    found = found[order].astype(np.uint64, copy=False)
    total = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(found, dtype=np.uint64)])
    return pa.table(
        [
            pa.array(list(numbers), pa.string()),
            *(_repeated(text, len(numbers)) for text in (part.file, part.stamp, digest, columns)),
            *(_repeated(len(found), len(numbers)) for _ in ("block_rows", "file_rows")),
            pa.array(rows_of, pa.int64()),
            pa.array(total[ends] - total[ends - rows_of]),
            pa.ListArray.from_arrays(pa.array(np.r_[0, ends], pa.int32()), pa.array(found)),
            pa.nulls(len(numbers), pa.string()),
        ],
        schema=ROWS,
    )


def learned_columns(definition: Definition, names: Sequence[str]) -> list[str]:
    """Those of a table's columns that a row is known by, and the keys."""
    wanted = definition.needed_of(names)
    looked_at = definition.prepare is not None or definition.objective is not None
    left_out = () if looked_at else {*definition.drop, definition.baseline_column} - {*definition.by}
    return [name for name in (names if wanted is None else wanted) if name not in left_out]


def _index_columns(schema: pa.Schema) -> list[str]:
    """Columns that are a frame's index, as pandas has noted it, and no feature."""
    noted = (schema.pandas_metadata or {}).get("index_columns", [])
    return [name for name in noted if isinstance(name, str)]


def _with_target(rows: pa.Table, definition: Definition) -> np.ndarray:
    """(n,) which rows have a target, as far as the table says it."""
    plain = definition.prepare is None and definition.objective is None
    if not plain or definition.target not in rows.column_names:
        return np.ones(rows.num_rows, dtype=bool)
    return ~pc.is_null(rows.column(definition.target), nan_is_null=True).to_numpy()


def _in_notation(rows: pa.Table, definition: Definition) -> pa.Table:
    """The rows with numbers as Python writes them, also where a CSV has a decimal comma and an odd cell in a column."""
    for place, field in enumerate(rows.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            rows = rows.set_column(place, field, in_plain_notation(rows.column(place), definition.csv_options))
    return rows


def _columns(schema: pa.Schema) -> str:
    """The names and kinds of columns, in the order of names, as JSON."""
    kinds = {field.name: _kind(field.type) for field in schema}
    return json.dumps(kinds, sort_keys=True, ensure_ascii=False)


def _kind(kind: pa.DataType) -> str:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return next((said for said, fits in KINDS if fits(kind)), "text")


def _basis(definition: Definition) -> bytes:
    """What rows are known by depends on these, beside the rows."""
    own_code = (bool(definition.prepare), bool(definition.objective))
    columns = {key: tuple(names) for key, names in definition.named_columns.items() if key != "baseline.column"}
    said = (
        FORM,
        own_code,
        sorted(columns.items()),
        definition.features is None,
        sorted(definition.csv_options.items()),
    )
    return hashlib.sha256(repr(said).encode()).hexdigest().encode()


def _basis_of(table: pa.Table) -> bytes | None:
    return (table.schema.metadata or {}).get(BASIS)
