"""The encoding inside a fold: scikit-learn's figures, nothing learned from rows that are predicted, and it travels."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from tuning.definition.definition import define
from tuning.errors import CustomerError, DefinitionError
from tuning.models.registry import family
from tuning.notes import DataCode
from tuning.preprocessing.columns import read_columns, to_raw
from tuning.preprocessing.encoding import MAX_CATEGORIES, Encoder
from tuning.preprocessing.kinds import DATE, DURATION, NUMBER, TEXT, Column
from tuning.preprocessing.roles import read_moments


def messy(rows: int = 200, seed: int = 0, texts: int = 5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "a": rng.normal(1e6, 3.0, rows),
            "b": rng.lognormal(size=rows),
            "gone": np.nan,
            "flat": 7.0,
            "t": rng.choice([f"text {number}" for number in range(texts)], rows),
            "u": rng.choice(["x", "y"], rows),
        }
    )
    for name in ("a", "b", "t"):
        frame.loc[rng.random(rows) < 0.2, name] = None
    return frame


def raw_of(frame: pd.DataFrame, names: list[str]) -> tuple[tuple[Column, ...], object]:
    found = read_columns(frame, names, np.arange(len(frame)))
    return found.columns, found.raw


@pytest.mark.parametrize("scale", [True, False])
def test_filling_scaling_and_indicators_are_scikit_learns(scale: bool) -> None:
    frame = messy()
    columns, raw = raw_of(frame, list(frame.columns))
    assert [column.name for column in columns] == ["a", "b", "t", "u"]
    train, other = np.arange(120), np.arange(120, 200)
    encoder = Encoder("onehot", scale).fit(raw.rows(train))
    numbers = frame[["a", "b"]].to_numpy()
    imputer = SimpleImputer(strategy="median").fit(numbers[train])
    scaler = StandardScaler(with_mean=scale, with_std=scale).fit(imputer.transform(numbers[train]))
    texts = frame[["t", "u"]].astype(object).fillna("(missing)").to_numpy()
    indicators = OneHotEncoder(sparse_output=False, handle_unknown="ignore").fit(texts[train])
    for rows in (train, other):
        expected = np.hstack([scaler.transform(imputer.transform(numbers[rows])), indicators.transform(texts[rows])])
        np.testing.assert_allclose(encoder.transform(raw.rows(rows)), expected, rtol=1e-9, atol=1e-9)


def test_codes_are_scikit_learns_and_missing_numbers_stay_missing() -> None:
    frame = messy()
    _, raw = raw_of(frame, list(frame.columns))
    train, other = np.arange(120), np.arange(120, 200)
    encoder = Encoder("ordinal", False).fit(raw.rows(train))
    texts = frame[["t", "u"]].astype(object).fillna("(missing)").to_numpy()
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=np.nan).fit(texts[train])
    expected = np.hstack([frame[["a", "b"]].to_numpy()[other], codes.transform(texts[other])])
    np.testing.assert_array_equal(encoder.transform(raw.rows(other)), expected)
    assert encoder.categorical(raw) == (2, 3)


def test_rare_texts_share_a_column_as_in_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    weights = np.arange(40, 0, -1.0) ** 3  # so that no two texts are equally frequent where the limit falls
    texts = rng.choice([f"{number:02d}" for number in range(40)], 5000, p=weights / weights.sum())
    frame = pd.DataFrame({"t": texts})
    _, raw = raw_of(frame, ["t"])
    encoder = Encoder("onehot", False).fit(raw)
    theirs = OneHotEncoder(
        sparse_output=False, handle_unknown="infrequent_if_exist", max_categories=MAX_CATEGORIES
    ).fit(texts[:, None])
    new = pd.DataFrame({"t": ["00", "39", "never seen"]})
    np.testing.assert_array_equal(encoder.transform(raw), theirs.transform(texts[:, None]))
    np.testing.assert_array_equal(
        encoder.transform(to_raw(new, [Column("t", TEXT)])), theirs.transform(new[["t"]].to_numpy())
    )


def test_nothing_is_learned_from_the_rows_that_are_predicted() -> None:
    frame = messy()
    frame["y"] = np.arange(len(frame), dtype=float)
    first = prepare_data(frame, target="y", task="regression", seed=3)
    changed = frame.copy()
    changed.loc[first.split.test, ["a", "b"]] = 1e12
    changed.loc[first.split.test, "t"] = "only in the hold-out"
    second = prepare_data(changed, target="y", task="regression", seed=3)
    for name in ("ridge", "xgboost"):
        for (train, _), (again, _) in zip(first.folds(family(name)), second.folds(family(name)), strict=True):
            np.testing.assert_array_equal(train.X, again.X)
        np.testing.assert_array_equal(first.whole(family(name))[1].X, second.whole(family(name))[1].X)
    _, valid = first.split.folds[0]
    changed = frame.copy()
    changed.loc[first.split.search[valid], ["a", "b"]] = 1e12
    third = prepare_data(changed, target="y", task="regression", seed=3)
    np.testing.assert_array_equal(first.folds(family("ridge"))[0][0].X, third.folds(family("ridge"))[0][0].X)


def test_what_was_learned_travels_as_plain_json() -> None:
    frame = messy()
    columns, raw = raw_of(frame, list(frame.columns))
    for kind, scale in (("onehot", True), ("onehot", False), ("ordinal", False)):
        encoder = Encoder(kind, scale).fit(raw)
        again = Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
        new = messy(seed=9, texts=7)
        np.testing.assert_array_equal(again.transform(to_raw(new, columns)), encoder.transform(to_raw(new, columns)))


def test_kinds_of_columns() -> None:
    rows = 40
    frame = pd.DataFrame(
        {
            "int": pd.array([1, None, 3, 2] * 10, "Int64"),
            "bool": [True, False] * 20,
            "maybe": pd.array([True, False, None, True] * 10, "boolean"),
            "category": pd.Categorical(["b", "a"] * 20),
            "moment": pd.date_range("2024-01-01", periods=rows, freq="7h", tz="Europe/Warsaw"),
            "iso": pd.date_range("2024-01-01", periods=rows).strftime("%Y-%m-%d"),
            "wait": pd.to_timedelta(np.arange(rows), unit="min"),
            "name": [f"person {number}" for number in range(rows)],
            "lists": [[1], [2]] * 20,
            "empty": None,
            "flat": "same",
        }
    )
    found = read_columns(frame, list(frame.columns), np.arange(rows))
    assert {column.name: column.kind for column in found.columns} == {
        "int": NUMBER,
        "bool": NUMBER,
        "maybe": NUMBER,
        "category": TEXT,
        "moment": DATE,
        "iso": DATE,
        "wait": DURATION,
    }
    assert [note.subject for note in found.left_out] == ["name", "lists", "empty", "flat"]
    assert found.raw.numbers.shape == (rows, 4 + 2 * 4)
    assert "name" in {column.name for column in read_columns(frame, ["name"], np.arange(rows), chosen=True).columns}


MOMENTS = pd.to_datetime(["2024-01-01", "2024-01-02"])
WAITS = pd.to_timedelta([1, 2], unit="min")


@pytest.mark.parametrize(
    ("fitted", "now", "message"),
    [
        ([1.0, 2.0], ["one", "two"], "'c' held numbers when the model was fitted, now it holds text, such as 'one'."),
        ([1.0, 2.0], MOMENTS, "'c' held numbers when the model was fitted, now it holds dates"),
        ([1.0, 2.0], WAITS, "'c' held numbers when the model was fitted, now it holds durations"),
        (["a", "b"], [1, 2], "'c' held text when the model was fitted, now it holds numbers"),
        (["a", "b"], MOMENTS, "'c' held text when the model was fitted, now it holds dates"),
        (
            ["2024-01-01", "2024-01-02"],
            ["soon", "later"],
            "'c' held dates when the model was fitted, now it holds text, such as 'so",
        ),
        (MOMENTS, [1_700_000_000, 1_800_000_000], "'c' held dates when the model was fitted, now it holds numbers"),
        (WAITS, [60.0, 120.0], "'c' held durations when the model was fitted, now it holds numbers"),
        (WAITS, MOMENTS, "'c' held durations when the model was fitted, now it holds dates"),
        (WAITS, ["soon", "later"], "'c' held durations when the model was fitted, now it holds text"),
    ],
)
def test_a_column_of_another_kind_than_at_the_fit_is_refused(fitted: list, now: list, message: str) -> None:
    columns, _ = raw_of(pd.DataFrame({"c": fitted}), ["c"])
    with pytest.raises(CustomerError, match=message):
        to_raw(pd.DataFrame({"c": now}), columns)
    with pytest.raises(CustomerError, match="columns are missing: 'c'"):
        to_raw(pd.DataFrame({"d": now}), columns)
    assert len(to_raw(pd.DataFrame({"c": [None, None]}), columns)) == 2  # nothing known is not another kind


def test_durations_are_seconds_whether_they_come_as_such_or_as_text() -> None:
    columns, raw = raw_of(pd.DataFrame({"c": WAITS}), ["c"])
    assert raw.numbers[:, 0].tolist() == [60.0, 120.0]
    again = to_raw(pd.DataFrame({"c": ["0 days 00:03:00", None]}), columns)
    np.testing.assert_array_equal(again.numbers[:, 0], [180.0, np.nan])


DAYS = pd.date_range("2024-01-28", periods=30, freq="D")


@pytest.mark.parametrize(
    ("written", "dates"),
    [
        ("%d.%m.%Y", None),
        ("%d.%m.%y", None),
        ("%m/%d/%Y", None),
        ("%d/%m/%Y", None),
        ("%d-%m-%Y %H:%M", None),
        ("%m/%d/%Y %I:%M:%S %p", None),
        ("%Y/%m/%d %H:%M:%S", None),
        ("%d %b %Y", None),
        ("%B %d, %Y", None),
        ("%Y-%m-%dT%H:%M:%S", None),
        ("%Y-%m-%d", "%d.%m.%Y"),
        ("%H.%M on %d %m %Y", "%H.%M on %d %m %Y"),
    ],
)
def test_dates_are_understood_as_they_are_written(written: str, dates: str | None) -> None:
    frame = pd.DataFrame({"c": DAYS.strftime(written).astype(object)})
    found = read_columns(frame, ["c"], np.arange(len(frame)), dates=dates)
    expected, _ = raw_of(pd.DataFrame({"c": DAYS}), ["c"])
    assert [column.kind for column in found.columns] == [DATE]
    np.testing.assert_array_equal(found.raw.numbers, to_raw(pd.DataFrame({"c": DAYS}), expected).numbers)
    np.testing.assert_array_equal(to_raw(frame[:3], found.columns).numbers, found.raw.numbers[:3])


def test_a_single_value_decides_which_comes_first_and_without_one_nobody_guesses() -> None:
    early = [f"{1 + day % 12:02d}/{1 + day % 11:02d}/2024" for day in range(30)]
    for last, order in (("31/12/2024", "%d/%m/%Y"), ("12/31/2024", "%m/%d/%Y")):
        found = read_columns(pd.DataFrame({"c": [*early, last]}), ["c"], np.arange(31))
        assert [column.format for column in found.columns] == [order]
    undecided = read_columns(pd.DataFrame({"c": early}), ["c"], np.arange(30))
    assert undecided.left_out == (DataCode.UNDECIDED("c"),)
    said = read_columns(pd.DataFrame({"c": early}), ["c"], np.arange(30), dates="month_first")
    assert [column.format for column in said.columns] == ["%m/%d/%Y"]
    dotted = read_columns(pd.DataFrame({"c": [text.replace("/", ".") for text in early]}), ["c"], np.arange(30))
    assert [column.format for column in dotted.columns] == ["%d.%m.%Y"]


def test_a_bad_cell_is_missing_and_noted_and_many_make_text() -> None:
    numbers = [str(number / 7) for number in range(40)]
    days = list(DAYS.strftime("%Y-%m-%d")) + ["2024-05-01"] * 10
    frame = pd.DataFrame({"n": [*numbers[:-1], "n.a.?"], "d": ["soon", *days[1:]], "t": [*numbers[:30], *"abcdefghij"]})
    found = read_columns(frame, ["n", "d", "t"], np.arange(40), chosen=True)
    assert [column.kind for column in found.columns] == [NUMBER, DATE, TEXT]
    assert np.isnan(found.raw.numbers[-1, 0])
    assert np.isnan(found.raw.numbers[0, 1:]).all()
    assert found.notes == (
        DataCode.TAKEN_AS_MISSING("n", count=1, kind="number", example="n.a.?"),
        DataCode.TAKEN_AS_MISSING("d", count=1, kind="date", example="soon"),
    )
    assert np.isnan(to_raw(frame[-11:].assign(t="a"), found.columns).numbers[-1, 0])
    codes = pd.DataFrame({"n": [*(f"{number:03d}" for number in range(39)), "A12"]})
    assert [column.kind for column in read_columns(codes, ["n"], np.arange(40), chosen=True).columns] == [TEXT]


def test_bytes_that_are_no_text_cost_their_column_only() -> None:
    frame = pd.DataFrame({"b": [b"\xff\xfe", b"\x00"] * 20, "x": np.arange(40.0)})
    found = read_columns(frame, ["b", "x"], np.arange(40))
    assert found.left_out == (DataCode.OF_BYTES("b"),)
    assert [column.name for column in found.columns] == ["x"]


def test_dates_are_said_by_order_or_by_format() -> None:
    with pytest.raises(DefinitionError, match="dates: 'european' is not day_first, month_first or a format such as"):
        define({"data": "x.csv", "target": "y", "dates": "european"})
    assert define({"data": "x.csv", "target": "y", "dates": "%d.%m.%Y"}).dates == "%d.%m.%Y"


def test_days_without_end_are_days() -> None:
    days = pd.Series(["2024-01-01", "9999-12-31", "0001-01-01"] * 10, name="d")
    for values in (days, days.astype("datetime64[s]")):
        found = read_columns(pd.DataFrame({"d": values}), ["d"], np.arange(30))
        assert [column.kind for column in found.columns] == [DATE]
        assert found.raw.numbers[:3, 0].tolist() == [19_723, 2_932_896, -719_162]
        assert np.argsort(read_moments(values[:3])).tolist() == [2, 0, 1]


@pytest.mark.parametrize("cells", [[b"\xff\xfe", b"\xfa"], [b"2024-01-01", b"2024-01-02"], ["2024-01-01", b"\xff"]])
def test_bytes_in_a_time_column_are_named_with_it(cells: list[str | bytes]) -> None:
    with pytest.raises(CustomerError, match=r"the time column 'when' holds \"b'.*, which is no date such as"):
        read_moments(pd.Series(cells, name="when"))


COMMAS = [f"{number},5" for number in range(40)]
NOTATIONS = [text.format(day) for day in range(10, 24) for text in ("2024-03-{}", "{}.03.2024", "Mar {}, 2024")]


@pytest.mark.parametrize(
    ("texts", "said"), [(COMMAS, DataCode.NUMBERS_AS_TEXT), (NOTATIONS, DataCode.DATES_IN_NOTATIONS)]
)
def test_text_that_seems_to_be_something_else_is_said_to_be(texts: list[str], said: DataCode) -> None:
    unique, few = (
        read_columns(pd.DataFrame({"x": each}), ["x"], np.arange(len(each))) for each in (texts, texts[:5] * 9)
    )
    (left_out,), (note,) = unique.left_out, few.notes
    assert (left_out.code, left_out.subject, left_out.values["seeming"].code) == (DataCode.SEEMING, "x", said)
    assert (note.code, note.subject, note.values["seeming"].code) == (DataCode.TAKEN_AS_TEXT, "x", said)
    words = read_columns(pd.DataFrame({"x": ["March", "31 pieces", "1,2,3"] * 9}), ["x"], np.arange(27))
    assert not words.notes
