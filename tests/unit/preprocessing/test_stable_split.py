"""A stable split: rows that come later move no row that is there, however the rows are stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from data_shapes import placed

from tuning.data.loading import Loader
from tuning.definition.definition import define
from tuning.errors import CustomerError, DefinitionError
from tuning.evaluation.study_data import StudyData, study_data
from tuning.notes import DataCode
from tuning.preprocessing.row_hashes import row_hashes
from tuning.preprocessing.splitting import STABLE, Split, split_rows


def rows(count: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, count),
            "fee": rng.normal(50, 20, count).round(2),
            "plan": rng.choice(["basic", "pro", "007"], count),
            "day": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 400, count), "D"),
            "order": np.arange(count) // 3,
            "y": rng.choice(["no", "yes"], count, p=[0.8, 0.2]),
        }
    )


def made(frame: pd.DataFrame, **split: Any) -> StudyData:
    definition = define({"data": frame, "target": "y", "split": {"type": "stable", **split}})
    return study_data(frame, definition, "binary", seed=1)


def part_of_each(frame: pd.DataFrame, **split: Any) -> list[str]:
    """What each row is for: the hold-out, or its fold."""
    found = made(frame, **split).split
    parts = np.full(len(frame), "lost", dtype=object)
    parts[found.test] = "hold-out"
    for number, (train, valid) in enumerate(found.folds):
        parts[found.search[valid]] = f"fold {number}"
        assert sorted([*train, *valid]) == list(range(len(found.search)))
    return list(parts)


@pytest.mark.parametrize("split", [{}, {"by": "order"}, {"by": ["order", "plan"], "folds": 5, "test": 0.3}])
def test_rows_that_come_later_move_none_that_are_there(split: dict[str, Any]) -> None:
    everything = rows(400)
    last = part_of_each(everything, **split)
    for count in (90, 150, 151, 399):
        assert part_of_each(everything[:count], **split) == last[:count]
    order = np.random.default_rng(1).permutation(len(everything))
    assert part_of_each(everything.iloc[order].reset_index(drop=True), **split) == [last[row] for row in order]


STORED_OTHERWISE = {
    "columns in another order": lambda frame: frame[frame.columns[::-1]],
    "a whole number among gaps": lambda frame: frame.astype({"age": float}),
    "nullable types": lambda frame: frame.convert_dtypes(),
    "types of Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "categories": lambda frame: frame.astype({"plan": "category", "y": "category"}),
    "numbers as text, as in a column with an odd cell": lambda frame: frame.astype({"age": str, "fee": str}),
    "objects": lambda frame: frame.astype(object),
    "another unit of time": lambda frame: frame.astype({"day": "datetime64[s]"}),
    "a column without values": lambda frame: frame.assign(empty=np.nan),
}


@pytest.mark.parametrize("change", STORED_OTHERWISE.values(), ids=STORED_OTHERWISE.keys())
def test_how_a_row_is_stored_moves_it_nowhere(change: Any) -> None:
    frame = rows(200)
    assert (row_hashes(change(frame)) == row_hashes(frame)).all()


def test_a_row_of_an_arrow_table_and_of_its_chunks_is_that_of_a_frame() -> None:
    frame = rows(200)
    table = pa.Table.from_pandas(frame)
    pieces = pa.concat_tables([table[:70], table[70:71], table[71:]])
    assert (row_hashes(table) == row_hashes(frame)).all()
    assert (row_hashes(pieces) == row_hashes(frame)).all()


def test_each_value_each_name_and_each_gap_counts() -> None:
    frame = rows(50)
    before = row_hashes(frame)
    swapped = frame.rename(columns={"age": "order", "order": "age"})
    others = [frame.assign(**{name: frame[name].shift(1)}) for name in frame]
    for other in (frame.rename(columns={"fee": "fees"}), swapped, frame.assign(fee=frame.fee * 1000), *others):
        assert (row_hashes(other) != before).mean() > 0.1
    assert len(set(before.tolist())) == len(frame)
    gaps = pd.DataFrame({"age": [0, None], "on": [False, None], "since": pd.to_datetime(["1970-01-01", None])})
    assert all(len(set(row_hashes(gaps[[name]]).tolist())) == 2 for name in gaps)


def test_what_is_told_of_a_row_stays_the_same_in_later_versions() -> None:
    frame = pd.DataFrame(
        {"a": [1, -0.5], "b": ["x", "7"], "c": [True, None], "d": pd.to_datetime(["2026-01-01", None])}
    )
    assert [f"{value:016x}" for value in row_hashes(frame).tolist()] == GOLDEN


GOLDEN = ["f905ad43fc131268", "baf235343690076f"]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_each_form_of_data_gives_the_same_parts(suffix: str, tmp_path: Path) -> None:
    frame = rows(150).drop(columns="day").assign(shop="a")
    expected = part_of_each(frame.drop(columns="shop"))
    sources: dict[str, tuple[Any, dict[str, Any]]] = {
        "frame": (frame, {"by": "shop"}),
        "own file": (str(tmp_path / f"own.{suffix}"), {"drop": "shop"}),
        "keyed": (str(tmp_path / f"keyed.{suffix}"), {"by": "shop"}),
    }
    both = pd.concat([frame, frame.assign(shop="b", age="unknown")])
    for name, table in (("own", frame), ("keyed", both)):
        path = tmp_path / f"{name}.{suffix}"
        table.to_csv(path, index=False) if suffix == "csv" else table.astype({"age": str}).to_parquet(path)
    for data, fields in sources.values():
        definition = define({"data": data, "target": "y", "split": "stable", **fields})
        if isinstance(data, str):
            (tmp_path / Path(data).stem).mkdir()
            found = placed(definition, tmp_path / Path(data).stem)
            read = Loader(definition, found).read(found[0])
        else:
            read = data
        parts = study_data(read, definition, "binary", seed=7).split
        assert parts.test.tolist() == [row for row, part in enumerate(expected) if part == "hold-out"]


def test_the_shares_are_right_on_average_and_equal_rows_stay_together() -> None:
    held = [len(made(rows(60, seed)).split.test) / 60 for seed in range(25)]
    assert np.mean(held) == pytest.approx(0.2, abs=0.03)
    twice = pd.concat([rows(100), rows(100)], ignore_index=True)
    parts = part_of_each(twice)
    assert parts[:100] == parts[100:]


def of_hashes(y: list[int], hashes: np.ndarray, test: float = 0.2) -> Split:
    return split_rows(
        np.array(y), classification=True, test_size=test, folds=3, seed=0, kind=STABLE, along=hashes.astype(np.uint64)
    )


def test_small_customers_get_what_the_evaluation_needs_and_a_note_says_so() -> None:
    rng = np.random.default_rng(0)
    noted = 0
    for _ in range(300):
        count = int(rng.integers(0, 9))
        y = np.r_[0, 0, 0, 1, 1, 1, rng.integers(0, 2, count)]
        found = of_hashes(y.tolist(), rng.integers(0, 2**63, len(y)))
        assert len(found.test) >= 1
        assert len(found.folds) >= 2
        assert sorted([*found.search, *found.test]) == list(range(len(y)))
        assert all(np.bincount(y[found.search[train]], minlength=2).min() > 0 for train, _ in found.folds)
        noted += any(note.code is DataCode.STABLE_MOVED for note in found.notes)
    assert 0 < noted < 200


def test_a_hold_out_of_far_fewer_rows_than_its_share_is_noted() -> None:
    found = [made(rows(30, seed).assign(y=["no", "yes", "no"] * 10), test=0.1) for seed in range(20)]
    few = [data for data in found if len(data.split.test) < 2]
    assert few
    assert all(DataCode.STABLE_SHARE in [note.code for note in data.notes] for data in few)
    usual = next(data for data in found if len(data.split.test) == 3)
    assert DataCode.STABLE_SHARE not in [note.code for note in usual.notes]


def test_too_few_different_rows_are_refused() -> None:
    with pytest.raises(CustomerError, match="2 different rows"):
        of_hashes([0, 1, 0, 1], np.array([1, 2, 1, 2]))
    with pytest.raises(CustomerError, match="a class has a single row in the search"):
        of_hashes([0] * 30 + [1], np.arange(31))


@pytest.mark.parametrize(
    ("split", "said"),
    [
        ({"type": "stable", "group": "order"}, "takes neither `group` nor `column`"),
        ({"type": "time", "column": "day", "by": "order"}, "cannot be combined with `by`"),
        ({"by": "y"}, "cannot be under `split.by` too"),
    ],
)
def test_options_that_do_not_go_together_are_refused(split: dict[str, Any], said: str) -> None:
    with pytest.raises(DefinitionError, match=said):
        define({"data": rows(30), "target": "y", "split": split})


def test_a_key_of_the_split_is_no_feature() -> None:
    data = made(rows(60), by="order")
    assert "order" not in [column.name for column in data.columns]
    with pytest.raises(CustomerError, match="the split column 'parcel' is not among the columns"):
        made(rows(60), by="parcel")
