"""Every format of data keeps the promises of `TableSource`: a new one is found by its file and goes through these."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from data_shapes import check, definition, rows_of, trips, write_frame

from tuning.data.column_types import concatenated, to_frame
from tuning.data.file_access import GONE, file_digest, file_stamp
from tuning.data.files import find_files
from tuning.data.formats.memory_frame import FrameSource
from tuning.data.keys import row_keys
from tuning.data.registry import file_formats, file_source, format_of
from tuning.data.table_source import FileSource, TableSource
from tuning.definition.customer_limits import Limits
from tuning.errors import CustomerError

FORMATS = {found.title: found for found in file_formats()}
SOURCES = [*FORMATS, "frame"]
LOOKS: dict[str, Callable[[TableSource], object]] = {
    "columns": lambda source: source.columns(),
    "read": lambda source: source.read(),
    "pieces": lambda source: list(source.pieces()),
}


def written(name: str, frame: pd.DataFrame, folder: Path) -> FileSource:
    path = str(folder / f"table{FORMATS[name].suffixes[0]}")
    write_frame(frame, path)
    return file_source(path, {})


def source_of(name: str, frame: pd.DataFrame, folder: Path) -> TableSource:
    return FrameSource(frame) if name == "frame" else written(name, frame, folder)


def together(pieces: list[pa.Table]) -> pd.DataFrame:
    return to_frame(concatenated(pieces))


def zones(keys: pa.Table) -> list[str | None]:
    codes, found = row_keys(keys, ["zone"])
    return [found[code][0] for code in codes]


@pytest.mark.parametrize("name", FORMATS)
def test_what_a_writer_writes_piece_by_piece_is_read_again(name: str, tmp_path: Path) -> None:
    source = written(name, trips(20), tmp_path)
    (piece,) = source.pieces()
    path = str(tmp_path / f"again{FORMATS[name].suffixes[0]}")
    with open(path, "wb") as stream:
        source.write(stream, (piece.slice(0, 12), piece.slice(12)))
        assert not stream.closed
    pd.testing.assert_frame_equal(file_source(path, {}).read(), source.read())


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_is_found_and_named_by_any_of_its_suffixes(name: str, tmp_path: Path) -> None:
    for number, suffix in enumerate(FORMATS[name].suffixes):
        for path in (tmp_path / f"a{number}{suffix}", tmp_path / f"B{number}{suffix.upper()}"):
            write_frame(trips(20), path)
            assert format_of(str(path)) is FORMATS[name]
            assert format_of(f"s3://bucket/{path.name}?scheme=http") is FORMATS[name]
    (tmp_path / "notes.md").write_text("no data")
    assert len(find_files(str(tmp_path))) == 2 * len(FORMATS[name].suffixes)
    made = definition(str(tmp_path))
    frames = rows_of(made, tmp_path / "elsewhere")
    assert set(frames) == {f"{letter}{number}" for number in range(len(FORMATS[name].suffixes)) for letter in "aB"}
    for frame in frames.values():
        pd.testing.assert_frame_equal(frame, trips(20))


def test_no_suffix_belongs_to_two_formats() -> None:
    suffixes = [suffix for found in FORMATS.values() for suffix in found.suffixes]
    assert len(set(suffixes)) == len(suffixes)


@pytest.mark.parametrize("name", SOURCES)
def test_a_table_is_read_whole_in_its_types(name: str, tmp_path: Path) -> None:
    frame = trips(50).assign(flag=np.arange(50) % 2 == 0, gaps=np.where(np.arange(50) % 5, 1.5, np.nan))
    source = source_of(name, frame, tmp_path)
    assert source.columns() == list(frame.columns)
    pd.testing.assert_frame_equal(source.read(), frame)
    pd.testing.assert_frame_equal(source.read(rows=7), frame[:7])


@pytest.mark.parametrize("name", SOURCES)
def test_a_table_over_a_limit_is_refused_however_little_is_read(name: str, tmp_path: Path) -> None:
    source = source_of(name, trips(50), tmp_path)
    assert len(source.read(limits=Limits(max_rows=50, max_columns=4))) == 50
    assert len(source.read(rows=50, limits=Limits(max_rows=50))) == 50
    for rows in (None, 5):
        with pytest.raises(CustomerError, match=r"more than limits\.max_rows: 49"):
            source.read(rows=rows, limits=Limits(max_rows=49))
        with pytest.raises(CustomerError, match=r"has 4 columns, more than limits\.max_columns: 3;"):
            source.read(rows=rows, limits=Limits(max_columns=3))


@pytest.mark.parametrize("name", SOURCES)
def test_pieces_are_all_rows_in_order(name: str, tmp_path: Path) -> None:
    frame = trips(140_000, zones=40)
    source = source_of(name, frame, tmp_path)
    pieces = list(source.pieces(["zone"]))
    assert name == "frame" or len(pieces) > 1
    assert [zone for piece in pieces for zone in zones(piece)] == frame["zone"].astype(str).tolist()
    found = together(pieces)
    pd.testing.assert_frame_equal(found.astype({"zone": "int64"}), frame)


@pytest.mark.parametrize("name", SOURCES)
def test_pieces_hold_the_columns_that_are_chosen(name: str, tmp_path: Path) -> None:
    frame = trips(50)
    source = source_of(name, frame, tmp_path)
    chosen = list(source.pieces(["zone"], lambda names: [names[0], names[-1]]))
    pd.testing.assert_frame_equal(together(chosen).astype({"zone": "int64"}), frame[["zone", "y"]])
    assert {len(piece.column_names) for piece in source.pieces(choose=lambda _: [])} == {0}


@pytest.mark.parametrize("name", SOURCES)
def test_a_table_without_rows_has_columns_and_an_empty_piece(name: str, tmp_path: Path) -> None:
    source = source_of(name, trips(5)[:0], tmp_path)
    assert source.columns() == ["zone", "x", "color", "y"]
    (piece,) = source.pieces(["zone"])
    assert piece.column_names == ["zone", "x", "color", "y"]
    assert piece.num_rows == len(source.read()) == 0


@pytest.mark.parametrize("name", SOURCES)
def test_a_keyed_table_gives_each_customer_its_own_rows(name: str, tmp_path: Path) -> None:
    table = trips()
    source = source_of(name, table, tmp_path)
    data = source.path if isinstance(source, FileSource) else table
    check(rows_of(definition(data, by="zone"), tmp_path), table, table["zone"].astype(str))


@pytest.mark.parametrize("name", FORMATS)
def test_a_digest_changes_with_a_row_and_with_nothing_else(name: str, tmp_path: Path) -> None:
    source = written(name, trips(50), tmp_path)
    stamp, digest = file_stamp(source.path), file_digest(source.path)
    assert (file_stamp(source.path), file_digest(source.path)) == (stamp, digest)
    os.utime(source.path, (1, 1))
    assert file_stamp(source.path) != stamp
    assert file_digest(source.path) == digest
    write_frame(trips(50).assign(x=lambda rows: rows["x"].where(rows.index != 7, 0.5)), source.path)
    assert file_digest(source.path) != digest
    os.remove(source.path)
    assert file_stamp(source.path) == GONE


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_wrong_with_a_file_is_a_sentence_that_names_it(name: str, look: str, tmp_path: Path) -> None:
    path = tmp_path / f"table{FORMATS[name].suffixes[0]}"

    def message() -> str:
        with pytest.raises(CustomerError) as raised:
            LOOKS[look](file_source(str(path), {}))
        text = str(raised.value)
        assert path.name in text
        assert text.endswith(".")
        return text

    assert "is not there" in message()
    path.mkdir()
    assert "is a folder" in message()
    path.rmdir()
    os.mkfifo(path)
    assert "is a pipe" in message()
    path.unlink()
    path.write_bytes(b"")
    assert "empty" in message() or "cannot be read" in message()
    path.write_bytes(b"\x89\xfe\xff\x00" * 99)
    assert message()


@pytest.mark.parametrize("name", SOURCES)
def test_columns_of_one_name_are_refused(name: str, tmp_path: Path) -> None:
    """A file with such columns is somebody else's: no format here writes one."""
    doubled = pd.DataFrame([[1.0, 2.0, 3.0]] * 9, columns=["x", "x", "y"])
    if name == "CSV":
        doubled.to_csv(tmp_path / "table.csv", index=False)
        source: TableSource = file_source(str(tmp_path / "table.csv"), {})
    elif name == "frame":
        source = FrameSource(doubled)
    else:
        with pytest.raises(CustomerError, match="column 'x' twice; rename one"):
            written(name, doubled, tmp_path)
        return
    for look in (lambda: source.read(), lambda: list(source.pieces())):
        with pytest.raises(CustomerError, match="column 'x' twice; rename one"):
            look()
