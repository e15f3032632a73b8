"""Bad weeks of one customer, through whole refreshes: each has its sentence, and nobody else is touched."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import tuning
from shop_weeks import FLAT, ShopWeeks, rows

from tuning.champions.drift import LossSoFar
from tuning.champions.models import ReleaseModels
from tuning.champions.rollback import roll_back

NAMES = ("a", "b", "c", "d", "e", "f")
SPARE = {"grown": 99.0, "search_every": 99}  # nobody is tuned for his age


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> ShopWeeks:
    """A first release; to be copied."""
    return ShopWeeks.begun(tmp_path_factory.mktemp("shops"), NAMES)


@pytest.fixture
def weeks(first: ShopWeeks, tmp_path: Path) -> ShopWeeks:
    return first.copied(tmp_path)


def later(frame: pd.DataFrame) -> pd.DataFrame:
    """Six new rows, whose clock is a year ahead."""
    days = pd.date_range(pd.Timestamp.now().normalize() + pd.Timedelta(days=365), periods=6)
    return pd.concat([frame[:60], frame[60:].assign(day=days.strftime("%Y-%m-%d"))])


NUMBERS = ["x", "z", "y"]
BAD_WEEKS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], str]] = {
    "a file of last year": (lambda now: rows(77, 55, "2019-01-01"), "this may be a file of another time"),
    "half of it missing": (lambda now: now[31:60], "a part of the data may be missing"),
    "a column renamed": (
        lambda now: now[:60].rename(columns={"z": "w"}),
        "'a': 60 of its 60 rows of last time are missing or altered, so no model was judged by its 60 new ones; the "
        "champion cannot serve",
    ),
    "another type": (lambda now: now[:60].assign(z=[f"{z:.2f} EUR" for z in now["z"][:60]]), "of another type"),
    "a constant target": (lambda now: now.assign(y=1.0), "60 of its 60 rows of last time are missing or altered"),
    "a target that leaks": (lambda now: now[:60].assign(paid=now["y"] * 2 + 1), "the column 'paid' is new"),
    "another unit": (lambda now: now[:60].assign(**now[NUMBERS] * 1000), "as after another unit"),
    "an id twice": (lambda now: pd.concat([now[:60], rows(1, 60)]), "two customers may have one id"),
    "delivered twice": (lambda now: pd.concat([now, now]), "may have been delivered twice"),
    "a clock a year ahead": (later, "look at the clock that wrote them"),
}


@pytest.mark.parametrize(("change", "said"), BAD_WEEKS.values(), ids=BAD_WEEKS.keys())
def test_a_bad_week_has_its_sentence_and_touches_nobody_else(
    weeks: ShopWeeks, change: Callable[[pd.DataFrame], pd.DataFrame], said: str
) -> None:
    before, known = weeks.state()[0], weeks.known(NAMES[1:])
    weeks.write("a", change(rows(0, 66)))
    plan = weeks.plan(**SPARE)
    done = weeks.refresh(**SPARE)
    assert said in "\n".join([*plan.changes.notes, *(f"{name!r}: {note}" for name, note in done.notes.items())])
    assert {*done.notes} <= {"a"}
    after = weeks.state()[0]
    assert {name: after[name] for name in NAMES[1:]} == {name: before[name] for name in NAMES[1:]}
    assert weeks.known(NAMES[1:]) == known
    assert ReleaseModels.current("shops", str(weeks.folder / "runs")).of("a").answer == "own"
    assert (done.release.number, weeks.refresh(**SPARE).new) == (2, False)


def test_rows_in_another_order_change_nothing(weeks: ShopWeeks) -> None:
    weeks.write("a", rows(0, 60).sample(frac=1, random_state=3))
    done = weeks.refresh(**SPARE)
    assert (done.new, done.notes, weeks.plan().changes.notes) == (False, {}, ())


def test_who_is_gone_keeps_its_champion_until_it_is_retired(weeks: ShopWeeks) -> None:
    before, rest = weeks.state()[0], [name for name in NAMES if name != "a"]
    (weeks.data / "a.csv").unlink()
    assert weeks.plan().changes.notes == (
        "1 of 6 customers is not there any more ('a'): a part of the data may be missing",
    )
    assert weeks.refresh(**SPARE).new is False
    weeks.write("b", rows(1, 66))
    weeks.refresh(**SPARE)
    assert weeks.state()[0]["a"] == before["a"]
    weeks.write("a", rows(0, 60))
    assert weeks.plan().changes.counts == {"unchanged": 6}  # it is remembered what it has learned from
    (weeks.data / "a.csv").unlink()
    served = weeks.state()[0]
    assert weeks.refresh(retire=True, **SPARE).release.number == 3
    assert weeks.state()[0] == {name: served[name] for name in rest}
    assert weeks.refresh(retire=True, **SPARE).new is False


def test_who_cannot_be_read_keeps_its_champion_with_a_note_while_others_learn(weeks: ShopWeeks) -> None:
    before = weeks.state()[0]
    (weeks.data / "a.csv").write_bytes(b"\xff\xfe\x00broken")
    (weeks.data / "c.csv").write_text("day,x,z,y,plan\n")
    said = weeks.refresh(**SPARE)
    assert (said.new, list(said.notes)) == (False, ["a", "c"])
    assert said.notes["a"].startswith("broken: ")
    weeks.write("b", rows(1, 66))
    done, after = weeks.refresh(**SPARE), weeks.state()[0]
    assert (done.fitted, list(done.notes)) == (1, ["a", "c"])
    assert {name: after[name] for name in NAMES if name != "b"} == {n: before[n] for n in NAMES if n != "b"}
    assert after["b"].rows == 66


def test_rows_without_the_target_replace_nobody_and_stop_nobody(weeks: ShopWeeks) -> None:
    """The target is not needed to serve, so that a champion can, and its challenger has proven nothing."""
    weeks.promote("other", models=FLAT)
    before, standing = weeks.state()
    weeks.write("a", rows(0, 66).rename(columns={"y": "sales"}))
    weeks.write("b", rows(1, 66))
    (weeks.data / "c.csv").unlink()
    done = weeks.refresh(**SPARE)
    assert (done.fitted, done.outcomes["promoted"]) == (1, 0)
    assert "its new rows tell nothing of its models: the target 'y' is not among their columns" in done.notes["a"]
    after = weeks.state()
    assert {name: each["a"] for name, each in zip("cs", after, strict=True)} == {"c": before["a"], "s": standing["a"]}
    weeks.write("a", rows(0, 70).rename(columns={"y": "sales"}))  # this week nobody else has new rows
    alone = weeks.refresh(retire=True, **SPARE)
    assert "nothing was fitted or searched for" in alone.notes["a"]
    assert "no customer has a column 'y'" in alone.notes["a"]
    assert [*weeks.state()[0]] == [name for name in NAMES if name != "c"]
    weeks.write("a", rows(0, 70))
    assert (weeks.refresh(**SPARE).fitted, weeks.state()[0]["a"].rows) == (1, 70)


def test_whose_columns_are_others_is_said_to_be_replaced(weeks: ShopWeeks) -> None:
    weeks.promote("other", models=FLAT)  # which looks at the same columns, so it cannot serve either
    weeks.write("a", rows(0, 66).rename(columns={"z": "w"}))
    done = weeks.refresh(**SPARE)
    assert done.to_dict()["promoted"] == ["a"]
    (said,) = [each for each in done.decisions if each.customer == "a"]
    assert said.reason.endswith("was fitted with them; the winner of a search took its place")
    assert weeks.state()[0]["a"].reason == said.reason
    assert "a" not in weeks.state()[1]
    shown = ["champions", "shops", "--storage", str(weeks.folder / "runs"), "--decisions", "--output", "json"]
    assert [row["customer"] for row in json.loads(tuning(*shown).stdout) if row["outcome"] == "promoted"] == ["a"]
    (path,) = tuning(*shown[:4], "--report").stdout.splitlines()
    page = Path(path).read_text(encoding="utf-8")
    assert "Promoted, proposed or beaten by the newest refresh" in page
    assert "the winner of a search took its place" in page
    assert f"tuning rollback shops --storage {weeks.folder / 'runs'}" in page
    roll_back(weeks.releases)
    assert json.loads(tuning(*shown).stdout) == []  # none of it is in force
    assert "took its place" not in Path(tuning(*shown[:4], "--report").stdout.strip()).read_text(encoding="utf-8")


@pytest.mark.parametrize("same_week", [True, False])
def test_rows_that_are_delivered_twice_are_evidence_once(weeks: ShopWeeks, same_week: bool) -> None:
    new = rows(0, 66)
    weeks.write("a", pd.concat([new, new[60:]]) if same_week else new)
    weeks.refresh(**SPARE)
    if not same_week:
        weeks.write("a", pd.concat([new, new[60:]]))
        weeks.refresh(**SPARE)
        weeks.write("a", new[:63])
        weeks.refresh(**SPARE)
        weeks.write("a", new)  # these three were known before
        weeks.refresh(**SPARE)
    assert LossSoFar.of_json(weeks.state()[0]["a"].drift).rows == 6
    assert weeks.releases.numbers() == ([1, 2] if same_week else [1, 2, 3, 4, 5])


def test_where_copies_are_usual_an_equal_row_is_another_one() -> None:
    from tuning.refresh.known_rows import new_positions

    few = np.array([1, 1, 1, 2], np.uint64)
    assert new_positions(few, np.array([1, 2, 1, 1, 1, 3, 3], np.uint64)).tolist() == [4, 5, 6]
    alone = np.array([1, 2, 4, 5], np.uint64)
    assert new_positions(alone, np.array([1, 2, 1, 1, 1, 3, 3], np.uint64)).tolist() == [5]


def test_which_column_has_moved_is_said_beside_a_drift(weeks: ShopWeeks) -> None:
    now = rows(0, 460)
    weeks.write("a", pd.concat([now[:60], now[60:].assign(x=now["x"] + 9.0)]))
    done = weeks.refresh(**SPARE)
    (drift,) = done.drift
    assert drift.moved.startswith("'x' has moved most: its mean is 8.98, and was 0.0773 ")
    decisions = weeks.releases.table(done.release, "decisions")
    assert decisions is not None
    (row,) = decisions.to_pylist()
    assert (row["customer"], row["outcome"]) == ("a", "drifts")
    assert drift.moved in row["reason"]
    assert "its hold-out promised" in row["reason"]
