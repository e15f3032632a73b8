"""`tuning init` on data with something odd in it: a file, a cell, a column that tells the target."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from click.testing import CliRunner

from tuning.cli import first_look
from tuning.cli.program import main

RNG = np.random.default_rng(0)
ROWS = 60


def told(*arguments: str | Path) -> str:
    answer = CliRunner().invoke(main, ["init", *map(str, arguments)])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


def passengers() -> pd.DataFrame:
    survived = (np.arange(ROWS) % 3 == 0).astype(int)
    return pd.DataFrame({"age": RNG.normal(40, 10, ROWS).round(1), "survived": survived})


def leak_lines(frame: pd.DataFrame, target: str, folder: Path) -> list[str]:
    frame.to_csv(folder / "table.csv", index=False)
    text = told(folder / "table.csv", "--target", target)
    return [line for line in text.splitlines() if "is it a leak?" in line]


@pytest.mark.parametrize(
    "column",
    [
        lambda survived: np.where(survived == 1, "yes", "no"),  # another word for it
        lambda survived: survived * 100 + RNG.random(ROWS),  # a range for each class
        lambda survived: np.where(survived == 1, np.nan, np.arange(ROWS)),  # known only where somebody died
    ],
)
def test_a_column_that_alone_tells_the_class_is_named(column: Any, tmp_path: Path) -> None:
    frame = passengers()
    frame["alive"] = column(frame["survived"])
    assert leak_lines(frame, "survived", tmp_path) == [
        "# drop: [alive]  # alone it tells the target of every row: is it a leak?"
    ]


def test_a_column_that_alone_tells_the_number_is_named(tmp_path: Path) -> None:
    price = RNG.normal(100, 10, ROWS)
    frame = pd.DataFrame({"room": RNG.random(ROWS), "with_tax": 1.19 * price, "price": price})
    assert leak_lines(frame, "price", tmp_path) == [
        "# drop: [with_tax]  # alone it tells the target of every row: is it a leak?"
    ]


def test_columns_that_only_help_or_number_the_rows_are_not_called_leaks(tmp_path: Path) -> None:
    frame = passengers().assign(row=[f"p{number}" for number in range(ROWS)], number=range(ROWS))
    frame["hint"] = frame["survived"].where(frame.index > 0, 1 - frame["survived"])  # wrong in one row
    assert not leak_lines(frame, "survived", tmp_path)
    rare = passengers().assign(survived=0)
    rare.loc[ROWS - 1, "survived"] = 1
    assert not leak_lines(rare.assign(number=range(ROWS)), "survived", tmp_path)


def test_an_odd_customer_changes_no_guess(tmp_path: Path) -> None:
    for name in "abc":
        frame = pd.DataFrame({"x": RNG.normal(size=ROWS).round(3), "price": RNG.integers(100, 900, ROWS)})
        if name == "a":
            frame = pd.concat([frame, frame.assign(x="n.a.?", price="?")[:1]])
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    text = told(tmp_path, "--target", "price")
    assert yaml.safe_load(text)["task"] == "regression"
    assert "customer 'a' has 1 value other than a number, such as '?'" in text
    assert "#   x: number" in text


def test_an_odd_file_does_not_say_how_the_others_are_written(tmp_path: Path) -> None:
    rows = [f"Zoë;{number},5;{number}" for number in range(ROWS)]
    for name in "bcd":
        (tmp_path / f"{name}.csv").write_text("\n".join(["wer;preis;menge", *rows]), encoding="utf-8")
    (tmp_path / "a.csv").write_text("\n".join(["wer,preis,menge", *["Zoë,1.5,2"] * 300]), encoding="cp1252")
    text = told(tmp_path, "--target", "menge")
    values = yaml.safe_load(text)
    assert values["csv"] == {"sep": ";", "decimal": ","}
    assert "encoding" not in values
    assert "# guessed from 3 of the 4 files looked at" in text
    assert "of those looked at 1 cannot be read" in text


def test_the_positive_class_is_guessed_and_said(tmp_path: Path) -> None:
    left = np.where(np.arange(ROWS) % 4 == 0, "churned", "stayed")
    frame = pd.DataFrame({"x": RNG.normal(size=ROWS), "left": left, "shop": np.arange(ROWS) % 2})
    frame.to_csv(tmp_path / "table.csv", index=False)
    text = told(tmp_path / "table.csv", "--target", "left", "--by", "shop")
    assert yaml.safe_load(text)["positive"] == "churned"
    assert "# it is the rarer class, 25 % of 60 rows, beside 'stayed'" in text


def test_a_target_that_cannot_be_predicted_is_refused(tmp_path: Path) -> None:
    pd.DataFrame({"x": range(ROWS), "y": [[1]] * ROWS}).to_parquet(tmp_path / "t.parquet")
    answer = CliRunner().invoke(main, ["init", str(tmp_path / "t.parquet"), "--target", "y"])
    assert answer.exit_code == 2
    assert "--target: 'y' holds lists or the like" in answer.stderr


def test_a_header_without_rows_is_said_as_such(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n")
    answer = CliRunner().invoke(main, ["init", str(tmp_path / "t.csv"), "--target", "y"])
    assert answer.exit_code == 2
    assert "have columns, and no rows to guess from" in answer.stderr


def test_a_misspelt_key_column_has_its_neighbour_named(tmp_path: Path) -> None:
    pd.DataFrame({"shop": [1, 2], "y": [1, 2]}).to_csv(tmp_path / "t.csv", index=False)
    answer = CliRunner().invoke(main, ["init", str(tmp_path / "t.csv"), "--target", "y", "--by", "shopp"])
    assert "--by: no column 'shopp'. Did you mean 'shop'?" in answer.stderr


def test_a_column_that_no_customer_looked_at_has_is_not_listed(tmp_path: Path) -> None:
    """Files of other things in the same folder, whose key says nothing."""
    rows = pd.DataFrame({"shop": np.repeat(["a", "b"], ROWS), "x": range(2 * ROWS), "y": range(2 * ROWS)})
    rows.to_csv(tmp_path / "orders.csv", index=False)
    pd.DataFrame({"rate": [1.0, 2.0]}).to_csv(tmp_path / "rates.csv", index=False)
    assert "looked at: \n" not in told(tmp_path, "--target", "y", "--by", "shop")


def test_what_was_looked_at_is_said_as_such(tmp_path: Path) -> None:
    """Kinds are of the largest customers, counts of all rows; a column that some cannot use is used."""
    shop = np.repeat([f"s{number}" for number in range(8)], ROWS)
    frame = pd.DataFrame({"shop": shop, "x": RNG.random(len(shop)), "price": RNG.random(len(shop))})
    frame["color"] = [f"c{number // ROWS}{number % 4}" for number in range(len(shop))]
    frame["rate"] = np.where(frame["shop"] == "s1", frame["x"], 1.0)  # constant but for one customer
    frame.loc[frame["shop"] == "s7", ["price", "x"]] = np.nan
    frame.to_csv(tmp_path / "t.csv", index=False)
    text = told(tmp_path / "t.csv", "--target", "price", "--by", "shop")
    assert "by: [shop]  # each value (combination) is a customer: 8 of them\n" in text
    assert "target: price  # 60 rows without it are left out" in text
    assert "# 3 columns to predict from (in the 5 customers looked at); " in text
    assert "#   color: text, 32 different\n" in text
    assert "#   x: number, 60 missing" in text
    assert "#   rate: number, not used by 4 of the customers looked at" in text


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_counts_are_of_the_whole_table_where_that_is_cheap(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "SMALL_BYTES", 0)
    monkeypatch.setattr(first_look, "ROWS", 100)
    shop = np.repeat([f"s{number}" for number in range(8)], ROWS)
    frame = pd.DataFrame({"shop": shop, "x": RNG.random(len(shop)), "price": RNG.random(len(shop))})
    frame.loc[::4, "price"] = np.nan
    path = tmp_path / f"t.{kind}"
    frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, row_group_size=100)
    text = told(path, "--target", "price", "--by", "shop")
    count, missing, scope = (8, 120, "") if kind == "parquet" else (2, 25, " in the first 100 rows")
    assert f"a customer: {count} of them{scope}\n" in text
    assert f"# {missing} rows without it{scope} are left out" in text
    assert "counted in the first 100 rows" in text
