"""What a target says: the task that customers agree on, odd cells, classes as the user knows them, the positive one."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
from prepared_rows import prepare_data

from tuning.errors import CustomerError
from tuning.models.registry import family
from tuning.notes import DataCode, Note
from tuning.preprocessing.classes import find_label, guess_positive, read_classes
from tuning.preprocessing.roles import encode_target, read_target
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, agreed_task

PRICES = pd.Series(range(100, 160))


def odd(values: pd.Series, cells: int, text: str = "?") -> pd.Series:
    """As a CSV reads it: one cell that is no number makes text of all."""
    return pd.Series([text] * cells + [str(value) for value in values[cells:]], name="y")


def test_one_customers_odd_cell_changes_nobodys_task() -> None:
    targets = {"a": PRICES, "b": odd(PRICES, 1), "c": PRICES + 0.5, "d": PRICES}
    task, why = agreed_task(targets)
    assert task == REGRESSION
    first, second = why.values["whys"]
    assert first == DataCode.BY_NUMBERS(distinct=60, rows=60)
    assert second == DataCode.ODD_VALUES("b", count=1, example="?")
    assert str(why) == f"{first}; {second}"


def test_the_majority_of_rows_decides_and_who_differs_is_named() -> None:
    words = pd.Series(["low", "high"] * 20)
    task, why = agreed_task({"a": PRICES, "words": words, "b": PRICES})
    assert task == REGRESSION
    by = DataCode.BY_CLASSES(distinct=2, labels=["high", "low"], seeming=None)
    assert why.values["whys"][-1] == DataCode.OTHER_TASK("words", task=BINARY, why=by)
    assert agreed_task({"a": PRICES[:20], "words": words})[0] == BINARY


def test_a_third_label_of_one_customer_leaves_the_others_binary() -> None:
    two = pd.Series(["yes", "no"] * 20)
    assert agreed_task({"a": two, "b": pd.Series(["yes", "no", "?"] * 10), "c": two})[0] == BINARY


def test_a_target_of_both_kinds_has_no_vote_beside_others() -> None:
    both = odd(pd.Series(range(400)), 200)
    assert agreed_task({"both": both, "a": PRICES})[0] == REGRESSION
    assert agreed_task({"both": both})[0] == MULTICLASS


def test_decimals_are_numbers_and_lists_are_refused() -> None:
    assert agreed_task({"a": pd.Series([decimal.Decimal(number) / 7 for number in range(30)])})[0] == REGRESSION
    lists = pd.Series([[number] for number in range(30)], name="y")
    for task in (BINARY, MULTICLASS):
        with pytest.raises(CustomerError, match="lists or the like"):
            encode_target(read_target(lists, task)[0], task)
    with pytest.raises(CustomerError, match="regression needs numbers: 30 of its 30 values are none"):
        read_target(lists, REGRESSION)


@pytest.mark.parametrize("make", [pd.Series, lambda values: pd.Series(values, dtype=object)], ids=["typed", "objects"])
def test_durations_are_their_seconds_however_few_there_are(make: Any) -> None:
    hours = make([datetime.timedelta(hours=1 + number % 2) for number in range(30)] + [None])
    assert agreed_task({"a": hours})[0] == REGRESSION
    values, note = read_target(hours, REGRESSION)
    assert (values.dropna().unique().tolist(), note) == ([3600.0, 7200.0], None)


def test_odd_cells_are_missing_up_to_a_limit() -> None:
    values, note = read_target(odd(PRICES, 2), REGRESSION)
    assert values.isna().sum() == 2
    assert note == DataCode.TARGET_CELLS(wrong=2, rows=60, first="?", row=1)
    with pytest.raises(CustomerError, match=r"7 of its 60 values are none, the first is '\?' in row 1; up to 10%"):
        read_target(odd(PRICES, 7), REGRESSION)


def test_the_note_reaches_the_customers_data_and_its_rows_are_left_out() -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "y": odd(PRICES, 1)})
    data = prepare_data(frame, target="y", task=REGRESSION, seed=0)
    assert len(data.y) == len(data.raw) == 59
    assert data.notes == (DataCode.TARGET_CELLS(wrong=1, rows=60, first="?", row=1),)


def test_an_odd_cell_among_two_numbers_is_missing_and_among_texts_a_class() -> None:
    values, note = read_target(odd(pd.Series([0, 1] * 30), 1), BINARY)
    assert note == DataCode.TARGET_CELLS(wrong=1, rows=60, first="?", row=1)
    assert encode_target(values.dropna(), BINARY)[1].classes == (0, 1)
    texts, note = read_target(pd.Series(["a", "b", "?"] * 5), BINARY)
    assert not note
    with pytest.raises(CustomerError, match="holds 3 classes"):
        encode_target(texts, BINARY)


@pytest.mark.parametrize(
    ("labels", "positive"),
    [
        (["churned"] * 10 + ["stayed"] * 30, "churned"),
        (["stayed"] * 10 + ["churned"] * 30, "stayed"),
        (["yes"] * 30 + ["no"] * 10, "yes"),
        (["N"] * 10 + ["Y"] * 30, "Y"),
        ([0] * 10 + [1] * 30, 1),
        ([1] * 30 + [2] * 10, 2),
        ([True] * 30 + [False] * 10, True),
        (["a"] * 20 + ["b"] * 20, "b"),
    ],
)
def test_the_positive_class_is_guessed(labels: list[Any], positive: object) -> None:
    guess = guess_positive([pd.Series(labels)])
    assert guess is not None
    assert guess[0] == positive
    assert encode_target(pd.Series(labels), BINARY)[1].positive == positive


def test_the_positive_class_is_that_of_most_rows_and_whoever_lacks_it_has_its_own() -> None:
    churn = pd.Series(["churned"] * 10 + ["stayed"] * 90)
    other = pd.Series(["left"] * 9 + ["kept"] * 24)
    guess = guess_positive([churn, other])
    assert guess is not None
    assert guess[0] == "churned"
    frame = pd.DataFrame({"x": np.arange(33.0), "y": other})
    data = prepare_data(frame, target="y", task=BINARY, seed=0, run_positive="churned")
    assert data.task.classes == ("kept", "left")
    assert data.notes == (DataCode.OTHER_POSITIVE(positive="left", wanted="churned"),)
    with pytest.raises(CustomerError, match=r"positive class 'churned' is not among the classes .*: 'kept', 'left'"):
        prepare_data(frame, target="y", task=BINARY, seed=0, positive="churned")


def test_labels_stay_labels_where_the_target_has_gaps() -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "y": [0, 1, None] * 20})
    data = prepare_data(frame, target="y", task=BINARY, seed=0, class_weight={0: 1, 1: 5})
    assert [type(label) for label in data.task.classes] == [int, int]
    assert set(data.folds(family("logistic"))[0][0].weight) == {1.0, 5.0}
    assert not data.notes


def test_weights_of_classes_that_a_customer_lacks_are_said() -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "y": ["a", "b"] * 30})
    data = prepare_data(frame, target="y", task=MULTICLASS, seed=0, class_weight={"a": 2, "c": 5})
    assert data.notes == (DataCode.CLASSES_ABSENT(classes=["c"]),)


def test_customers_with_one_of_the_two_classes_count_for_which_is_rarer() -> None:
    guess = guess_positive([pd.Series(["gone", "here"] * 10), pd.Series(["gone"] * 9)])
    assert (guess[0], str(guess[1])) == ("here", "it is the rarer class, 34.5 % of 29 rows, beside 'gone'")


def test_very_large_numbers_are_no_classes() -> None:
    task, why = agreed_task({"a": pd.Series([1e308, -1e308] * 20)})
    assert task == REGRESSION
    assert len(str(why)) < 100


SOLD = np.random.default_rng(0).poisson(4, 400).clip(0, 14)


@pytest.mark.parametrize(
    ("values", "guessed", "of_classes"),
    [
        (SOLD, REGRESSION, MULTICLASS),
        (SOLD.astype(float), REGRESSION, MULTICLASS),
        (pd.Series(SOLD, dtype="Int64").where(SOLD > 0), REGRESSION, MULTICLASS),
        (SOLD - 4, REGRESSION, MULTICLASS),
        (SOLD * 1000, REGRESSION, MULTICLASS),
        (odd(pd.Series(SOLD), 3), REGRESSION, MULTICLASS),
        (np.arange(400), REGRESSION, MULTICLASS),
        (SOLD / 2, REGRESSION, REGRESSION),
        (SOLD > 4, BINARY, BINARY),
        ((SOLD > 4).astype(int), BINARY, BINARY),
        ((SOLD > 4).astype(int) * 4_000 + 5_000, BINARY, BINARY),
        (pd.Series(SOLD).astype(str), MULTICLASS, MULTICLASS),  # text on purpose
        (pd.Series(SOLD).astype("category"), MULTICLASS, MULTICLASS),
        (pd.Series(np.arange(400)).astype(str), REGRESSION, MULTICLASS),
        (np.array(["a", "b", "c", "d"])[SOLD % 4], MULTICLASS, MULTICLASS),
    ],
)
def test_whole_numbers_are_counts_unless_they_are_two_or_something_else_says_classes(
    values: Any, guessed: str, of_classes: str
) -> None:
    targets = {"a": pd.Series(values)}
    assert agreed_task(targets)[0] == guessed
    assert agreed_task(targets, of_classes=True)[0] == of_classes
    if pd.api.types.is_numeric_dtype(targets["a"]) and targets["a"].dtype != bool:
        assert agreed_task(targets, of_classes=False)[0] == REGRESSION


def test_a_constant_has_no_vote() -> None:
    assert agreed_task({"a": pd.Series([7] * 400), "b": pd.Series(["x", "y"] * 10)})[0] == BINARY


def test_a_mistyped_target_is_named_and_one_whose_square_is_infinite_refused() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=120), "y": rng.uniform(20_000, 60_000, 120)})
    assert of_numbers(frame) == ()
    (note,) = of_numbers(frame.assign(y=lambda rows: rows["y"].where(rows.index != 7, 1e9)))
    assert (note.code, note.values["value"]) == (DataCode.FAR_TARGET, 1e9)
    assert 20_000 < note.values["low"] < note.values["high"] < 60_000
    counts = frame.assign(y=np.where(rng.uniform(size=120) < 0.7, 0.0, 5_000.0))
    assert of_numbers(counts) == ()  # mostly 0 is no typing error
    with pytest.raises(CustomerError, match=r"the target 'y' holds 1e\+200: beyond 1e\+150 a square is infinite"):
        of_numbers(frame.assign(y=lambda rows: rows["y"].where(rows.index != 7, -1e200)))


def of_numbers(frame: pd.DataFrame) -> tuple[Note, ...]:
    return prepare_data(frame, target="y", task=REGRESSION, seed=0).notes


def test_numbers_with_a_decimal_comma_are_said_to_be_such() -> None:
    target = pd.Series([f"{number},5" for number in range(40)], name="y")
    assert "seem to be numbers such as '10,5': in a CSV set `csv: {decimal: ','}`" in str(agreed_task({"a": target})[1])
    with pytest.raises(CustomerError, match="They seem to be numbers such as"):
        read_target(target, REGRESSION)
    assert "seem to be" not in str(agreed_task({"a": pd.Series(["a,b", "c", "1,5"] * 10)})[1])


@pytest.mark.parametrize("notation", ["%Y-%m-%d", "%d.%m.%Y"])
def test_dates_in_one_notation_are_said_to_be_dates(notation: str) -> None:
    days = pd.Series(pd.date_range("2024-01-01", periods=60), name="y")
    assert "these seem to be dates: have `prepare`" in str(agreed_task({"a": days})[1])
    target = days.dt.strftime(notation)
    assert "these seem to be dates: have `prepare` make numbers of them" in str(agreed_task({"a": target})[1])
    with pytest.raises(CustomerError, match="They seem to be dates: have `prepare` make numbers of them"):
        read_target(target, REGRESSION)
    mixed = pd.Series([f"2024-03-{day}" if day % 2 else f"{day}.03.2024" for day in range(10, 30)], name="y")
    with pytest.raises(CustomerError, match="They seem to be dates in several notations"):
        read_target(mixed, REGRESSION)


def test_a_class_is_no_label_of_three_hundred_digits() -> None:
    _, labels = read_classes(pd.Series([1e308, -1e308, 1e308]))
    assert [str(label) for label in labels] == ["-1e+308", "1e+308"]
    assert find_label(1e308, labels) == labels[1]
    assert read_classes(pd.Series([2.0, 1.0]))[1] == (1, 2)
    assert find_label(2.0, (1, 2)) == 2
