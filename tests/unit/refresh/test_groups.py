"""What a week of rows makes of each customer, and what is said of bad weeks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tuning.data.customers import find_customers
from tuning.data.row_digests import ROWS, rows_now
from tuning.definition.definition import define
from tuning.refresh.groups import CustomerChange, RowChanges, Served, group_lines, row_changes

SHOPS = [f"shop-{number:02d}" for number in range(20)]


def week(rows: int = 30, shops: list[str] = SHOPS, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    count = rows * len(shops)
    return pd.DataFrame(
        {
            "shop": np.tile(shops, rows),
            "fee": rng.normal(50, 20, count),
            "age": rng.integers(18, 90, count),
            "plan": rng.choice(["basic", "pro"], count),
            "y": rng.normal(size=count),
        }
    )


def looked_at(frame: pd.DataFrame) -> tuple[Any, list[str]]:
    definition = define({"data": frame, "by": "shop", "target": "y"})
    customers = find_customers(definition)
    return rows_now(definition, customers), customers.texts("id").to_pylist()


def after(now: pd.DataFrame, before: pd.DataFrame | None = None, **served: Any) -> RowChanges:
    then, ids = looked_at(week() if before is None else before)
    rows, here = looked_at(now)
    return row_changes(then, rows, here, Served(**{"customers": ids, **served}))


def one_of(changes: RowChanges, customer: str) -> CustomerChange:
    return next(each for each in changes.of() if each.customer == customer)


def test_each_customer_is_in_the_group_of_its_rows() -> None:
    frame = week()
    of = {shop: frame[frame["shop"] == shop] for shop in SHOPS}
    grown = week(5, ["shop-01"], seed=1)
    altered = of["shop-02"].assign(fee=[1.5, 2.5, *of["shop-02"]["fee"][2:]])
    others = [of[shop] for shop in SHOPS[5:]]
    now = pd.concat(
        [of["shop-00"], of["shop-01"], grown, altered, of["shop-03"][:20], *others, week(7, ["new"], seed=2)]
    )
    changes = after(now, modelless=["shop-06"])
    assert changes.counts == {
        "unchanged": 15,
        "grown": 1,
        "changed": 2,
        "new": 1,
        "gone": 1,
        "without a model before": 1,
    }
    assert one_of(changes, "shop-01") == CustomerChange("shop-01", "grown", 30, 35, added=5, missing=0, repeated=0)
    assert one_of(changes, "shop-02") == CustomerChange("shop-02", "changed", 30, 30, added=2, missing=2, repeated=0)
    assert one_of(changes, "shop-03") == CustomerChange("shop-03", "changed", 30, 20, added=0, missing=10, repeated=0)
    assert one_of(changes, "shop-04") == CustomerChange("shop-04", "gone", 30, 0, added=0, missing=30, repeated=0)
    assert one_of(changes, "new") == CustomerChange("new", "new", 0, 7, added=7, missing=0, repeated=0)
    assert [each.customer for each in changes.of("changed")] == ["shop-02", "shop-03"]
    assert one_of(changes, "shop-02").text == "changed: 30 rows before, 30 now, 2 new, 2 missing or altered"
    assert one_of(changes, "shop-04").text == "gone: its 30 rows of last time are not there any more"
    assert one_of(changes, "new").text == "new: 7 rows"
    assert changes.notes == ()
    assert group_lines(changes, Served(SHOPS), {}) == [
        "unchanged: 15 customers (same rows, definition, code and libraries)",
        "grown: 1 customer (5 new rows, and all of last time)",
        "changed: 2 customers (12 rows of last time missing or altered, 2 new)",
        "new: 1 customer (7 rows, no champion yet)",
        "gone: 1 customer (no data any more; each keeps its champion)",
        "without a model before: 1 customer (30 rows; last time no model was found)",
    ]


def test_same_rows_of_another_definition_are_outdated() -> None:
    changes = after(pd.concat([week(), week(1, ["shop-07"], seed=3)]), differs=["definition", "libraries"])
    assert changes.counts == {"grown": 1, "outdated": 19}
    (line,) = [
        line for line in group_lines(changes, Served(SHOPS, (), ["definition", "libraries"]), {}) if "outdated" in line
    ]
    assert line == "outdated: 19 customers (same rows, but the last release was made with other definition, libraries)"


def test_a_champion_of_whose_rows_nothing_is_remembered_is_told_from_a_new_customer() -> None:
    remembered = week().query("shop < 'shop-18'")
    changes = after(week(), before=remembered, customers=SHOPS[:19])
    assert changes.counts == {"unchanged": 18, "new": 1, "not looked at before": 1}
    assert one_of(changes, "shop-18").text == "not looked at before: 30 rows"
    assert one_of(changes, "shop-19").group == "new"


def test_equal_rows_count_as_often_as_they_are_there() -> None:
    before = week(10, ["a"])
    changes = after(pd.concat([before, before[:3], before[:1]]), before)
    assert changes.of() == [CustomerChange("a", "grown", 10, 14, added=4, missing=0, repeated=4)]
    assert changes.of()[0].text.endswith(
        "10 rows before, 14 now, 4 new; 4 of the new ones are copies of rows that were there"
    )
    fewer = after(before, pd.concat([before, before[:3]]))
    assert fewer.of() == [CustomerChange("a", "changed", 13, 10, added=0, missing=3, repeated=0)]


BAD_WEEKS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str, str]] = {
    "a file of last year": (
        lambda now: week(25, seed=9),
        "changed",
        "none is one of last time: this may be a file of an",
    ),
    "half of it missing": (
        lambda now: now[: len(now) // 2 - 20],
        "changed",
        "fewer than half of their rows of last time",
    ),
    "a column renamed": (
        lambda now: now.rename(columns={"fee": "fees"}),
        "changed",
        "the column 'fee' is not there any more, and the column 'fees' is new: a column may have been renamed",
    ),
    "a column gone": (
        lambda now: now.drop(columns="fee"),
        "changed",
        "the column 'fee' is not there any more, and each",
    ),
    "a column more": (lambda now: now.assign(size=1.5), "changed", "the column 'size' is new, and each row"),
    "another type": (
        lambda now: now.assign(fee=[f"{fee:.2f} EUR" for fee in now["fee"]]),
        "changed",
        "the column 'fee' holds text, and held numbers",
    ),
    "another unit": (lambda now: now.assign(fee=now["fee"] * 1000), "changed", "as after another unit"),
    "a target of another unit": (lambda now: now.assign(y=now["y"] * 1000), "changed", "as after another unit"),
    "fewer customers": (lambda now: now[now["shop"] >= "shop-05"], "gone", "5 of 20 customers are not there any more"),
    "delivered twice": (lambda now: pd.concat([now, now]), "grown", "may have been delivered twice"),
    "an id twice": (
        lambda now: pd.concat([now, now[now["shop"] < "shop-05"].assign(shop="shop-19")]),
        "grown",
        "",
    ),
}


@pytest.mark.parametrize(("change", "group", "said"), BAD_WEEKS.values(), ids=BAD_WEEKS.keys())
def test_a_bad_week_has_a_group_and_a_sentence(change: Any, group: str, said: str) -> None:
    changes = after(change(week()))
    assert group in changes.counts
    assert said in "\n".join(changes.notes)
    if said:
        assert changes.notes
    else:
        assert one_of(changes, "shop-19").added == 150


GOOD_WEEKS: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "rows in another order": lambda now: now.sample(frac=1, random_state=3),
    "columns in another order": lambda now: now[now.columns[::-1]],
    "whole numbers as others": lambda now: now.astype({"age": float}),
    "another index": lambda now: now.set_axis(np.arange(len(now)) + 7),
}


@pytest.mark.parametrize("change", GOOD_WEEKS.values(), ids=GOOD_WEEKS.keys())
def test_what_changes_no_row_changes_nothing(change: Any) -> None:
    changes = after(change(week()))
    assert changes.counts == {"unchanged": len(SHOPS)}
    assert changes.notes == ()


def test_a_usual_week_has_no_note() -> None:
    assert after(pd.concat([week(), week(3, seed=4)])).notes == ()
    one_altered = week()
    one_altered.loc[3, "fee"] = 0.25
    assert after(one_altered).notes == ()


def test_a_file_that_cannot_be_read_costs_itself_alone_and_is_looked_at_again(tmp_path: Path) -> None:
    for shop in SHOPS[:3]:
        week(10, [shop]).to_parquet(tmp_path / f"{shop}.parquet", row_group_size=4)
    definition = define({"data": str(tmp_path), "target": "y", "drop": "shop"})

    def look(before: pa.Table | None) -> tuple[pa.Table, RowChanges]:
        customers = find_customers(definition)
        rows = rows_now(definition, customers, before)
        known = ROWS.empty_table() if before is None else before
        return rows, row_changes(known, rows, customers.texts("id").to_pylist(), Served(SHOPS[:3]))

    before, _ = look(None)
    whole = (tmp_path / "shop-01.parquet").read_bytes()
    for content in (b"no table", whole[: len(whole) // 3] + bytes(200) + whole[len(whole) // 3 + 200 :]):
        (tmp_path / "shop-01.parquet").write_bytes(content)
        (tmp_path / "new.parquet").write_bytes(b"no table")
        rows, changes = look(before)
        assert changes.counts == {"unchanged": 2, "broken": 2}
        broken = one_of(changes, "shop-01")
        assert (broken.before, broken.now, broken.added, broken.missing) == (10, 10, 0, 0)
        assert broken.text.startswith("broken: the file shop-01.parquet cannot be read: ")
        assert changes.notes == ()
    (tmp_path / "new.parquet").unlink()
    (tmp_path / "shop-01.parquet").write_bytes(whole)
    again, changes = look(rows)
    assert changes.counts == {"unchanged": 3}
    assert again["reason"].null_count == len(again)
