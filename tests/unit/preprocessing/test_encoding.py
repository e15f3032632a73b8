"""The encoding inside a fold: scikit-learn's figures, nothing learned from rows that are predicted, and it travels."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from tuning.errors import CustomerError
from tuning.evaluation.study_data import prepare_data
from tuning.models.registry import family
from tuning.preprocessing.columns import DATE, NUMBER, TEXT, Column, read_columns, to_raw
from tuning.preprocessing.encoding import MAX_CATEGORIES, Encoder


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
    columns, raw, _ = read_columns(frame, names, np.arange(len(frame)))
    return columns, raw


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
    columns, raw, left_out = read_columns(frame, list(frame.columns), np.arange(rows))
    assert {column.name: column.kind for column in columns} == {
        "int": NUMBER,
        "bool": NUMBER,
        "maybe": NUMBER,
        "category": TEXT,
        "moment": DATE,
        "iso": DATE,
        "wait": NUMBER,
    }
    assert [text.split(" ")[0] for text in left_out] == ["name", "lists", "empty", "flat"]
    assert raw.numbers.shape == (rows, 4 + 2 * 4)
    assert "name" in {column.name for column in read_columns(frame, ["name"], np.arange(rows), chosen=True)[0]}


@pytest.mark.parametrize(
    ("fitted", "now", "message"),
    [
        ([1.0, 2.0], ["one", "two"], "'c' held numbers when the model was fitted, now it does not"),
        (["a", "b"], [1, 2], "'c' held text when the model was fitted, now it holds numbers"),
        (["2024-01-01", "2024-01-02"], ["soon", "later"], "'c' held dates when the model was fitted, now it does not"),
    ],
)
def test_a_column_of_another_type_than_at_the_fit_is_refused(fitted: list, now: list, message: str) -> None:
    columns, _ = raw_of(pd.DataFrame({"c": fitted}), ["c"])
    with pytest.raises(CustomerError, match=message):
        to_raw(pd.DataFrame({"c": now}), columns)
    with pytest.raises(CustomerError, match="columns are missing: 'c'"):
        to_raw(pd.DataFrame({"d": now}), columns)
    assert len(to_raw(pd.DataFrame({"c": [None, None]}), columns)) == 2  # nothing known is not another type
