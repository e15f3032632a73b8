"""One of a thing is said as one, sizes have their unit, and a name keeps its capitals."""

from __future__ import annotations

import pytest

from tuning.basics.wording import amount, did_you_mean, score_text, size_text, value_text
from tuning.storage.names import slug


@pytest.mark.parametrize(
    ("number", "noun", "said"),
    [(1, "class", "1 class"), (2, "class", "2 classes"), (1, "study", "1 study"), (3, "study", "3 studies")],
)
def test_a_number_and_its_noun(number: int, noun: str, said: str) -> None:
    assert amount(number, noun) == said


@pytest.mark.parametrize(("size", "said"), [(12, "12 bytes"), (49_500, "49.5 kB"), (2.5e6, "2.5 MB"), (3e9, "3 GB")])
def test_a_size_has_the_unit_that_says_it_shortest(size: float, said: str) -> None:
    assert size_text(size) == said


@pytest.mark.parametrize(("error", "said"), [(733.1, "753 ± 733"), (0.123, "753 ± 0.12"), (12.0, "753 ± 12")])
def test_an_error_is_no_power_of_ten(error: float, said: str) -> None:
    assert score_text(753.0, error) == said


@pytest.mark.parametrize(
    ("score", "said"), [(28384.3, "28380"), (-1234567.0, "-1235000"), (9876.54, "9877"), (3.2e12, "3.2e+12")]
)
def test_a_large_score_is_no_power_of_ten(score: float, said: str) -> None:
    """House prices and their errors are read as numbers, not converted."""
    assert value_text(score) == said


@pytest.mark.parametrize(("typed", "meant"), [("shop-1", "shop-01"), ("Shop 07", "shop-07"), ("shop10", "shop-10")])
def test_a_name_without_its_zeros_is_recognized(typed: str, meant: str) -> None:
    known = [f"shop-{number:02d}" for number in range(1, 41)]
    assert did_you_mean(typed, known) == f" Did you mean {meant!r}?"


AIRPORTS = ["ATL", "BNA", "BOS", "JFK", "LAX", "MCO", "ORD", "SEA", "SFO", "SLC"]


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        *[(typed, AIRPORTS, meant) for typed, meant in {
            "BSO": "BOS", "OBS": "BOS", "bos": "BOS", "BOX": "BOS", "BOSS": "BOS", "BO": "BOS", "SOF": "SFO",
            "JKF": "JFK",            "ODR": "ORD", "SOB": None, "XYZ": None, "SOA": "SEA","B": None,
        }.items()],
        ("AC", ["CA", "NY"], "CA"), ("xgb", ["ridge", "xgboost"], "xgboost"), ("lgbm", ["svm", "lightgbm"], "lightgbm"),
        ("targte", ["target", "margin"], "target"), ("BSO", ["SFO"], None), ("Wcao", ["Waco", "Cairo"], "Waco"),
    ],
)  # fmt: skip
def test_a_name_is_suggested_only_if_it_is_near(typed: str, known: list[str], meant: str | None) -> None:
    assert did_you_mean(typed, known) == ("" if meant is None else f" Did you mean {meant!r}?")


def test_capitals_stay_where_no_other_name_is_near() -> None:
    assert slug("dowjones-Price", cased=True) == "dowjones-Price"
    assert slug("Anna") != "Anna", "on some disks it is the file of anna"
