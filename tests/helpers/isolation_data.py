"""A small customer, and what can be wrong with its data: its file, its cells, its table, its columns."""

from __future__ import annotations

import decimal
import gzip
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 24


def apart(columns: Mapping[str, Collection[str]]) -> list[tuple[str, ...]]:
    """Kinds in groups in which none touches a column of another one, which might hide what it does there."""
    groups: list[tuple[set[str], list[str]]] = []
    for kind, touched in columns.items():
        taken, group = next((each for each in groups if each[0].isdisjoint(touched)), (set(), []))
        if not group:
            groups.append((taken, group))
        taken.update(touched)
        group.append(kind)
    return [tuple(group) for _, group in groups]


def touched(change: Callable[[pd.DataFrame], pd.DataFrame]) -> set[str]:
    """The columns that it changes, adds or takes away."""
    before = frame_of("b").astype(object)
    after = change(before)
    both = [name for name in before if name in after]
    return {
        *before.columns.symmetric_difference(after.columns),
        *(n for n in both if repr([*before[n]]) != repr([*after[n]])),
    }


def frame_of(name: str, scale: float = 1.0) -> pd.DataFrame:
    """A customer's rows: numbers, some so small that their squares are 0, truth values, text, days and a target."""
    rng = np.random.default_rng(ord(name[0]))
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=ROWS),
            "n": rng.integers(0, 9, ROWS),
            "s": 1e-200 * rng.normal(size=ROWS),
            "f": rng.random(ROWS) > 0.5,
            "t": rng.choice(["u", "v", "w"], ROWS),
            "d": pd.date_range("2024-01-01", periods=ROWS).strftime("%Y-%m-%d"),
        }
    )
    return frame.assign(y=scale * (frame["a"] + frame["n"] + rng.normal(scale=0.1, size=ROWS)))


# --- files ----------------------------------------------------------------------------------------


def _text(change: Callable[[bytes], bytes], name: str = "b.csv") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / name).write_bytes(change(frame_of("b").to_csv(index=False).encode()))

    return write


def _changed(change: Callable[[pd.DataFrame], pd.DataFrame]) -> Callable[[Path], None]:
    return lambda folder: change(frame_of("b")).to_csv(folder / "b.csv", index=False)


def _parquet(**columns: Any) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        table = pa.Table.from_pandas(frame_of("b"), preserve_index=False)
        for name, values in columns.items():
            column = values if isinstance(values, pa.Array) else pa.array(values)
            position = table.schema.get_field_index(name)
            table = table.append_column(name, column) if position < 0 else table.set_column(position, name, column)
        pq.write_table(table, folder / "b.parquet")

    return write


def _doubled(folder: Path) -> None:
    pq.write_table(pa.table([[1.0] * 9] * 3, names=["a", "a", "y"]), folder / "b.parquet")


def _cut_parquet(folder: Path) -> None:
    frame_of("b").to_parquet(folder / "b.parquet")
    content = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes(content[:-40])


def _corrupt_parquet(folder: Path) -> None:
    frame_of("b").to_parquet(folder / "b.parquet", compression=None)
    content = bytearray((folder / "b.parquet").read_bytes())
    content[4:200] = bytes(196)
    (folder / "b.parquet").write_bytes(bytes(content))


def _strange_name(folder: Path) -> None:
    (folder / os.fsdecode(b"b\xff.csv")).write_bytes(frame_of("b").to_csv(index=False).encode())


FILES: dict[str, Callable[[Path], object]] = {
    "nothing": _text(lambda _: b""),
    "blank lines": _text(lambda _: b"\n\n\n"),
    "header only": _text(lambda text: text[: text.index(b"\n")]),
    "a picture": _text(lambda _: b"\x89PNG\r\n\x1a\n\x00\x00" + bytes(range(256)) * 9),
    "zeros": _text(lambda _: bytes(4000)),
    "a cut archive": _text(lambda text: gzip.compress(text)[:200], "b.csv.gz"),
    "no archive": _text(lambda text: text, "b.csv.gz"),
    "another archive": _text(lambda text: gzip.compress(text), "b.csv.zst"),
    "a quote without end": _text(lambda text: text + b'1,2,"'),
    "a long row": _text(lambda text: text + b"1,2,3,4,5,6,7,8,9\n"),
    "only long rows": _text(lambda text: text.replace(b"\n", b",1,2\n").replace(b",1,2\n", b"\n", 1)),
    "latin-1": _text(lambda text: text.replace(b"u", b"\xfc")),
    "utf-16": _text(lambda text: text.decode().encode("utf-16")),
    "another separator": _text(lambda text: text.replace(b",", b";")),
    "a doubled column": _text(lambda text: text.replace(b"a,n", b"a,a", 1)),
    "a column without a name": _text(lambda text: text.replace(b"a,n", b"a,", 1)),
    "too many columns": _changed(
        lambda frame: pd.concat([frame] + [frame["a"].rename(f"x{n}") for n in range(120)], axis=1)
    ),
    "too many rows": _changed(lambda frame: pd.concat([frame] * 30)),
    "three rows": _changed(lambda frame: frame[:3]),
    "no target": _changed(lambda frame: frame.drop(columns="y")),
    "an empty target": _changed(lambda frame: frame.assign(y=None)),
    "a target of text": _changed(lambda frame: frame.assign(y="high")),
    "an infinite target": _changed(lambda frame: frame.assign(y=np.inf)),
    "a constant target": _changed(lambda frame: frame.assign(y=1)),
    "a constant target in many rows": _changed(lambda frame: pd.concat([frame.assign(y=0)] * 15)),
    "a bad cell in the target": _changed(lambda frame: frame.assign(y=["?", *frame["y"][1:]])),
    "features of nothing": _changed(lambda frame: frame[["y"]].assign(a=1)),
    "a cut Parquet file": _cut_parquet,
    "a damaged Parquet file": _corrupt_parquet,
    "text as Parquet": _text(lambda text: text, "b.parquet"),
    "doubled columns of Parquet": _doubled,
    "lists as target": _parquet(y=[[1.0]] * ROWS),
    "structs as target": _parquet(y=[{"v": 1.0}] * ROWS),
    "maps as feature": _parquet(a=pa.array([[("k", 1)]] * ROWS, pa.map_(pa.string(), pa.int64()))),
    "bytes as target": _parquet(y=[b"\xff\xfe"] * ROWS),
    "bytes as feature": _parquet(a=[b"\xff\xfe", b"\xfe"] * (ROWS // 2)),
    "decimals as target": _parquet(y=pa.array([decimal.Decimal(n) for n in range(ROWS)], pa.decimal128(9, 2))),
    "dates as target": _parquet(y=pa.array(range(ROWS), pa.timestamp("s"))),
    "durations as target": _parquet(y=pa.array(range(ROWS), pa.duration("s"))),
    "moments beyond pandas": _parquet(a=pa.array([2**62] * ROWS, pa.timestamp("us"))),
    "days without end": _changed(lambda frame: pd.concat([frame.assign(d="9999-12-31")] * 3)),
    "a column's name of two lines": _text(lambda text: text.replace(b"a,n", b'"a\nb: [\xe2\x80\xa8c",n', 1)),
    "a link to nowhere": lambda folder: (folder / "b.csv").symlink_to(folder / "gone.csv"),
    "a pipe": lambda folder: os.mkfifo(folder / "b.csv"),
    "a name that is no text": _strange_name,
}

# --- cells ----------------------------------------------------------------------------------------


def _cell(**cells: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Some cells of the first rows."""

    def change(frame: pd.DataFrame) -> pd.DataFrame:
        frame = frame.copy()
        for name, value in cells.items():
            frame.at[frame.index[2], name] = value
        return frame

    return change


def _all(**columns: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    return lambda frame: frame.assign(**{name: [value] * len(frame) for name, value in columns.items()}).astype(object)


CELLS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "text among numbers": _cell(a="n.a.?"),
    "text among whole numbers": _cell(n="many"),
    "text among truth values": _cell(f="maybe"),
    "a number among truth values": _cell(f=7),
    "a fraction among whole numbers": _cell(n=0.5),
    "a date that is none": _cell(d="soon"),
    "a date of another notation": _cell(d="31.12.2024"),
    "gaps": _cell(a=None, n=None, f=None, t=None, d=None, y=None),
    "text in the target": _cell(y="?"),
    "only text in the target": _all(y="?"),
    "a number too large": _cell(a=1e308, n=10**30),
    "infinity": _cell(a=np.inf, y=-np.inf),
    "columns of nothing": _all(a=None, n=None, f=None, t=None, d=None),
    "numbers in the text": _all(t=5),
    "a long text": _cell(t="x" * 100_000),
    "signs in the text": _cell(t='"a",\n\t;\0'),
    "leading zeros": _all(n="007"),
}

# --- tables ---------------------------------------------------------------------------------------


def write_columns(folder: Path, kinds: Sequence[str], good: pd.DataFrame, bad: Sequence[pd.DataFrame]) -> None:
    """One file, in the order of customers. kinds: of `TABLE_COLUMNS`; each of the bad customers has one of them."""
    parts = [_table(good, kinds, None), *(_table(frame, kinds, kind) for frame, kind in zip(bad, kinds, strict=False))]
    pq.write_table(pa.concat_tables(parts), folder / "t.parquet", row_group_size=ROWS)


def _table(frame: pd.DataFrame, kinds: Sequence[str], own: str | None) -> pa.Table:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for kind in kinds:
        name, good, bad = TABLE_COLUMNS[kind]
        values = (bad if kind == own else good).take(pa.array(np.arange(table.num_rows) % 6))
        position = table.schema.get_field_index(name)
        table = table.append_column(name, values) if position < 0 else table.set_column(position, name, values)
    return table


def write_other_files(folder: Path, kinds: Sequence[str], good: pd.DataFrame, bad: Sequence[pd.DataFrame]) -> None:
    """A file of the good customers, and of each bad one a file. kinds: theirs, of `OTHER_FILES`."""
    good.to_parquet(folder / "0.parquet", index=False)
    for number, (frame, kind) in enumerate(zip(bad, kinds, strict=False), start=1):
        OTHER_FILES[kind](frame).to_parquet(folder / f"{number}.parquet", index=False)


_whole, _text6 = pa.array([1, 2, 3, 4, 5, 6]), pa.array(["u", "v", "w", "u", "v", "w"])
#: A column, and what is in it of good customers and of the bad one.
TABLE_COLUMNS: dict[str, tuple[str, pa.Array, pa.Array]] = {
    "gaps among whole numbers": ("n", _whole, pa.array([1, None, 3, None, 5, 6])),
    "gaps among truth values": ("f", pa.array([True, False] * 3), pa.array([True, None, False] * 2)),
    "only gaps": ("a", _whole.cast(pa.float64()), pa.nulls(6, pa.float64())),
    "infinite numbers": ("a", _whole.cast(pa.float64()), pa.array([np.inf, -np.inf, np.nan, 1.0, 2.0, 3.0])),
    "bytes that are no text": ("t", _text6.cast(pa.binary()), pa.array([b"\xff", b"\xfe", b"a"] * 2)),
    "categories": ("t", _text6.dictionary_encode(), pa.array(["x", "y", "z"] * 2).dictionary_encode()),
    "lists": ("odd", pa.array([[1]] * 6), pa.array([[1, 2], None, []] * 2)),
    "decimals too large": (
        "odd",
        _whole.cast(pa.decimal128(38, 0)),
        pa.array([decimal.Decimal(10**37)] * 6, pa.decimal128(38, 0)),
    ),
}
OTHER_FILES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "text for numbers in another file": lambda frame: frame.assign(a="many", n="few"),
    "a fraction for whole numbers in another file": lambda frame: frame.assign(n=0.5),
    "a column less in another file": lambda frame: frame.drop(columns=["t", "y"]),
    "a column more in another file": lambda frame: frame.assign(more=1.0),
    "other columns of the same name in another file": lambda frame: frame.assign(
        t=[[1]] * len(frame), d=pd.Timestamp(0)
    ),
}

# --- columns of a frame ---------------------------------------------------------------------------


class Speechless:
    """Cannot even say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


COLUMNS: dict[str, Callable[[], Any]] = {
    "intervals": lambda: pd.cut(np.arange(float(ROWS)), 5),
    "periods": lambda: pd.period_range("2024-01", periods=ROWS, freq="M"),
    "sparse": lambda: pd.arrays.SparseArray(np.arange(ROWS) % 3),
    "whole numbers from 2^63": lambda: [2**63 + number for number in range(ROWS)],
    "whole numbers from 2^70": lambda: [2**70 + number for number in range(ROWS)],
    "complex": lambda: np.arange(ROWS) * 1j,
    "lists": lambda: [[number] for number in range(ROWS)],
    "dicts without keys": lambda: [{} for _ in range(ROWS)],
    "anything": lambda: [[1], "a", None, 3] * (ROWS // 4),
    "surrogates": lambda: pd.Series(["\ud800", "ok"] * (ROWS // 2), dtype=object),
    "objects": lambda: [Speechless() for _ in range(ROWS)],
    "frames": lambda: [pd.DataFrame({"x": [1]})] * ROWS,
    "decimals": lambda: [decimal.Decimal(f"{number}.5") for number in range(ROWS)],
    "moments and text": lambda: [pd.Timestamp("2024-01-01"), "soon"] * (ROWS // 2),
    "two time zones": lambda: [pd.Timestamp(0, tz="UTC"), pd.Timestamp(0, tz="Asia/Tokyo")] * (ROWS // 2),
    "bytes": lambda: [b"\xff", b"\xfe"] * (ROWS // 2),
    "not a number": lambda: [np.nan] * ROWS,
}
