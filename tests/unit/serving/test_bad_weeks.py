"""A bad week has its sentence where it acts, and touches nobody else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd
import pytest
from shop_weeks import NAME, ShopWeeks, rows

from tuning.notes import Note, ServingCode, texts
from tuning.serving.models import ReleaseModels
from tuning.serving.rollback import roll_back

NAMES = ["a", "b", "c", "d"]
SPARE = {"search_every": 99}


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> ShopWeeks:
    return ShopWeeks.begun(tmp_path_factory.mktemp("shops"), NAMES)


@pytest.fixture
def weeks(begun: ShopWeeks, tmp_path: Path) -> ShopWeeks:
    return begun.copied(tmp_path)


def codes(notes: Mapping[str, tuple[Note, ...]]) -> list[str]:
    assert {*notes} <= {"a"}
    return [note.code.id for note in notes.get("a", ())]


def frame_of(text: bytes) -> Callable[[pd.DataFrame], bytes]:
    return lambda _: text


BAD_WEEKS: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame | bytes], list[str], str]] = {
    "a part is missing": (lambda now: now[:38], ["fewer_rows"], "38 rows, were 60: more than a third is missing"),
    "a column is missing": (lambda now: now.drop(columns="z"), ["columns_gone"], "does without 'z'"),
    "a new column": (lambda now: now.assign(paid=now["y"] * 2 + 1), ["columns_new"], "the model looks at 'paid'"),
    "a column is renamed": (
        lambda now: now.rename(columns={"z": "w"}),
        ["columns_gone", "columns_new"],
        "does without 'z', which the one of before looked at; the model looks at 'w'",
    ),
    "another type": (
        lambda now: now.assign(z=["low" if z < 0 else "high" for z in now["z"]]),
        ["other_type"],
        "the column 'z' holds text, and held numbers",
    ),
    "text that is of no use": (
        lambda now: now.assign(z=[f"{z:.2f} EUR" for z in now["z"]]), ["columns_gone"], "does without 'z'",
    ),
    "a constant target": (
        lambda now: now.assign(y=1.0), ["not_fitted"], "not fitted again, so the model of before stays: "
        "the target 'y' is constant",
    ),
    "no target": (
        lambda now: now.rename(columns={"y": "sales"}), ["not_fitted"], "no customer has a column 'y'",
    ),
    "bytes that are no table": (frame_of(b"\xff\xfe\x00broken"), ["not_fitted"], "the model of before stays"),
    "a table without rows": (frame_of(b"day,x,z,y,plan\n"), ["not_fitted"], "the model of before stays"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "expected", "said"), BAD_WEEKS.values(), ids=BAD_WEEKS.keys())
def test_a_bad_week_has_its_sentence_and_touches_nobody_else(
    weeks: ShopWeeks, change: Callable[[pd.DataFrame], pd.DataFrame | bytes], expected: list[str], said: str
) -> None:
    before, bad = weeks.state(), change(rows(0, 66))
    if isinstance(bad, bytes):
        (weeks.data / "a.csv").write_bytes(bad)
    else:
        weeks.write("a", bad)
    done = weeks.refresh(**SPARE)
    assert codes(done.notes) == expected
    assert said in texts(done.notes["a"])
    after = weeks.state()
    assert {name: after[name] for name in NAMES[1:]} == {name: before[name] for name in NAMES[1:]}
    assert ReleaseModels.current(NAME, str(weeks.folder / "runs")).of("a").answer == "own"
    if "not_fitted" in expected:
        assert after["a"].model_sha256 == before["a"].model_sha256
    assert (done.release.number, weeks.refresh(**SPARE).new) == (2, False)
    weeks.write("a", rows(0, 70))
    mended = weeks.refresh(**SPARE)
    assert (list(mended.fitted), weeks.state()["a"].rows) == (["a"], 70)


def test_after_a_bad_week_the_way_back_is_a_rollback_and_another_refresh(weeks: ShopWeeks) -> None:
    before = weeks.state()
    weeks.write("a", rows(0, 30))
    weeks.refresh(**SPARE)
    assert roll_back(weeks.releases)[0].equals == 1
    assert weeks.state() == before
    weeks.write("a", rows(0, 66))
    done = weeks.refresh(**SPARE)
    assert (done.notes, weeks.state()["a"].rows) == ({}, 66)


def test_who_is_gone_keeps_its_champion_until_it_is_retired(weeks: ShopWeeks) -> None:
    before = weeks.state()
    (weeks.data / "a.csv").unlink()
    assert weeks.plan().changes.gone == ("a",)
    assert weeks.refresh(**SPARE).new is False
    weeks.write("b", rows(1, 66))
    weeks.refresh(**SPARE)
    assert weeks.state()["a"] == before["a"]
    weeks.write("a", rows(0, 60))
    assert weeks.plan().changes.unchanged == 4  # it is remembered what it has learned from
    (weeks.data / "a.csv").unlink()
    served = weeks.state()
    assert weeks.refresh(retire=True, **SPARE).release.number == 3
    assert weeks.state() == {name: served[name] for name in NAMES if name != "a"}
    assert weeks.refresh(retire=True, **SPARE).new is False


def damage(weeks: ShopWeeks) -> None:
    file = next((weeks.folder / "runs" / "first" / str(weeks.state()["a"].model_path)).glob("*.skops"))
    file.write_bytes(file.read_bytes()[:-1])


def test_a_champion_that_was_changed_by_hand_learns_again_and_serves(weeks: ShopWeeks) -> None:
    before = weeks.state()
    damage(weeks)
    weeks.write("a", rows(0, 63))
    assert weeks.refresh(**SPARE).notes == {}
    assert ReleaseModels.current(NAME, str(weeks.folder / "runs")).of("a").answer == "own"
    assert weeks.state()["b"] == before["b"]


def test_one_that_cannot_serve_and_cannot_be_fitted_again_gets_the_fallback_and_that_is_said(weeks: ShopWeeks) -> None:
    before = weeks.state()
    weeks.write("a", rows(0, 63).drop(columns="x").assign(y=1.0))
    done = weeks.refresh(**SPARE)
    assert "the model of before cannot serve: it needs the column 'x'" in texts(done.notes["a"])
    after = weeks.state()
    assert (after["a"].answer, after["a"].reason[0].code) == ("constant", ServingCode.CANNOT_SERVE)
    assert ReleaseModels.current(NAME, str(weeks.folder / "runs")).of("a").model.predict(rows(0, 1)).tolist() == [1.0]
    assert after["b"] == before["b"]
    weeks.write("a", rows(0, 90))
    weeks.refresh(search_every=1)
    assert weeks.state()["a"].answer == "own"


def test_one_that_cannot_be_read_and_cannot_be_fitted_again_gets_the_fallback(weeks: ShopWeeks) -> None:
    damage(weeks)
    weeks.write("a", rows(0, 63).assign(y=2.0))
    done = weeks.refresh(**SPARE)
    assert "is damaged: its SHA-256 is not the recorded one" in texts(done.notes["a"])
    assert weeks.state()["a"].answer == "constant"


def test_a_new_customer_that_cannot_be_read_makes_no_release_and_gets_what_others_get(weeks: ShopWeeks) -> None:
    (weeks.data / "new.csv").write_bytes(b"\xff\xfe\x00broken")
    for _ in range(2):
        done = weeks.refresh(**SPARE)
        assert (done.new, [note.code for note in done.notes["new"]]) == (False, [ServingCode.NO_MODEL])
    assert ReleaseModels.current(NAME, str(weeks.folder / "runs")).of("new").answer == "constant"
    weeks.write("new", rows(7, 60))
    weeks.refresh(**SPARE)
    assert weeks.state()["new"].answer == "own"


def test_where_no_customer_can_be_learned_from_it_is_an_error_and_nothing_changes(weeks: ShopWeeks) -> None:
    from tuning.errors import PlanError

    for seed, name in enumerate(NAMES):
        weeks.write(name, rows(seed, 66).rename(columns={"y": "sales"}))
    with pytest.raises(PlanError, match="no customer has a column 'y'"):
        weeks.refresh(**SPARE)
    assert weeks.releases.numbers() == [1]
