"""One of a thing is said as one, sizes have their unit, and a name keeps its capitals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import tuning

from tuning import TuneRunner
from tuning.basics.wording import amount, did_you_mean, one_line, score_text, size_text, value_text
from tuning.storage.names import slug
from tuning.storage.retrying import described


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


@pytest.mark.long
def test_a_run_of_one_customer_speaks_of_one(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) ** 2})
    (tmp_path / "Price").mkdir()
    frame.to_csv(tmp_path / "Price" / "Shop.csv", index=False)
    made = tuning("init", tmp_path / "Price" / "Shop.csv", "--target", "y", "--output", tmp_path / "made.yaml")
    assert made.exit_code == 0, made.output
    text = (tmp_path / "made.yaml").read_text()
    assert "# 1 column to predict from" in text
    assert "name: Shop-y\n" in text
    runner = TuneRunner(
        data=str(tmp_path / "Price" / "Shop.csv"), target="y", search_space="ridge", trials=2, mlflow=False
    )
    assert "1 batch on" in str(runner.plan())
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    assert "1 of 1 customer has a model" in repr(result)
    assert "1 column>" in repr(result.model())


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


def test_what_a_library_says_with_a_full_stop_ends_the_sentence_around_it_with_one() -> None:
    error = OSError("The node crashed or became overloaded.\nSee the pages of advice.")
    assert f"{one_line(error)}. Resume it." == "OSError: The node crashed or became overloaded. Resume it."
    assert described(OSError("it became\n overloaded.")) == "it became overloaded"
