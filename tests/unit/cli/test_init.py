"""`tuning init`: the definition that it writes, and what it needs for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import yaml
from commands import tuning

from tuning.definition.yaml_file import read_definition

RNG = np.random.default_rng(0)
ROWS = 60


def made(*arguments: str | Path) -> str:
    answer = tuning("init", *arguments)
    assert answer.exit_code == 0, answer.output
    return str(answer.stdout)


def test_init_writes_a_definition_that_runs_and_says_why(customers: Path, tmp_path: Path) -> None:
    target = tmp_path / "deep" / "new.yaml"
    target.parent.mkdir()
    answer = tuning("init", customers, "--target", "churned", "--output", target)
    assert answer.exit_code == 0
    text = target.read_text()
    assert "task: binary  # text or classes with 2 different values (no, yes)" in text
    assert "#   region: text" in text
    made = read_definition(target)
    assert (made.target, made.task, made.metric, made.pool) == ("churned", "binary", "roc_auc", "auto")
    assert tuning("plan", target).exit_code == 0
    again = tuning("init", customers, "--target", "churned", "--output", target)
    assert again.exit_code == 2
    assert "--force" in again.stderr
    assert tuning("init", customers, "--target", "churned", "--output", target, "--force").exit_code == 0


def test_init_guesses_how_a_foreign_csv_is_written(tmp_path: Path) -> None:
    rows = "".join(f"Müller {number % 7};{number},5;{number * 2}\n" for number in range(60))
    (tmp_path / "kunden.csv").write_text("kunde_id;preis;umsatz\n" + rows, encoding="cp1252")
    answer = tuning("init", tmp_path / "kunden.csv", "--target", "umsatz")
    values = yaml.safe_load(answer.stdout)
    assert (values["encoding"], values["metric"]) == ("cp1252", "rmse")
    assert values["csv"] == {"sep": ";", "decimal": ","}
    assert "# by: kunde_id  # 7 different values" in answer.stdout
    (tmp_path / "d.yaml").write_text(answer.stdout)
    assert tuning("validate", tmp_path / "d.yaml").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "which column is to be predicted? There are: 'plan', 'region'"),
        (["--target", "churn"], "target: no customer has a column 'churn'. Did you mean 'churned'?"),
        (["--target", "churned", "--by", "plans"], "by: the column 'plans' is not in the data. Did you mean 'plan'?"),
        (
            ["--target", "churned", "--by", "churned"],
            "target: 'churned' is the column to predict, so it cannot be under `by` too",
        ),
        (["--target", "churned", "--metric", "rmsee"], "metric: 'rmsee' is not a scikit-learn scorer. Did you mean"),
        (["--target", "churned", "--output", "no/folder/d.yaml"], "'no/folder/d.yaml' cannot be written: No such file"),
    ],
)
def test_init_says_what_it_needs(arguments: list[str], message: str, customers: Path) -> None:
    answer = tuning("init", customers, *arguments)
    assert answer.exit_code == 2
    assert message in answer.stderr
    assert not answer.stdout


def test_a_file_that_cannot_be_read_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / "a-broken.csv").write_bytes(b"x,y\n\xff\xfe\x00\x9d\n")
    (tmp_path / "b-whole.csv").write_text("x,y\n" + "1,2\n3,4\n" * 20)
    values = yaml.safe_load(tuning("init", tmp_path / "*.csv", "--target", "y").stdout)
    assert values["name"] == f"{tmp_path.name}-y"  # of the folder: the files' name is a pattern


def passengers() -> pd.DataFrame:
    survived = (np.arange(ROWS) % 3 == 0).astype(int)
    return pd.DataFrame({"age": RNG.normal(40, 10, ROWS).round(1), "survived": survived})


def leak_lines(frame: pd.DataFrame, target: str, folder: Path) -> list[str]:
    frame.to_csv(folder / "table.csv", index=False)
    text = made(folder / "table.csv", "--target", target)
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
        "# drop: [alive]  # alone it tells the target of every row looked at: is it a leak?"
    ]


def test_a_column_that_alone_tells_the_number_is_named(tmp_path: Path) -> None:
    price = RNG.normal(100, 10, ROWS)
    frame = pd.DataFrame({"room": RNG.random(ROWS), "with_tax": 1.19 * price, "price": price})
    assert leak_lines(frame, "price", tmp_path) == [
        "# drop: [with_tax]  # alone it tells the target of every row looked at: is it a leak?"
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
    text = made(tmp_path, "--target", "price")
    assert yaml.safe_load(text)["task"] == "regression"
    assert "customer 'a' has 1 value other than a number, such as '?'" in text
    assert "#   x: number" in text


def test_an_odd_file_does_not_say_how_the_others_are_written(tmp_path: Path) -> None:
    rows = [f"Zoë;{number},5;{number}" for number in range(ROWS)]
    for name in "bcd":
        (tmp_path / f"{name}.csv").write_text("\n".join(["wer;preis;menge", *rows]), encoding="utf-8")
    (tmp_path / "a.csv").write_text("\n".join(["wer,preis,menge", *["Zoë,1.5,2"] * 300]), encoding="cp1252")
    text = made(tmp_path, "--target", "menge")
    values = yaml.safe_load(text)
    assert values["csv"] == {"sep": ";", "decimal": ","}
    assert "encoding" not in values


def test_what_most_customers_have_in_a_column_is_its_kind(tmp_path: Path) -> None:
    shop = np.repeat([f"s{number}" for number in range(8)], ROWS)
    frame = pd.DataFrame({"shop": shop, "x": RNG.random(len(shop)), "price": RNG.random(len(shop))})
    frame["rate"] = np.where(frame["shop"] == "s1", frame["x"], 1.0)  # constant but for one customer
    frame["none"] = 1
    frame.to_csv(tmp_path / "t.csv", index=False)
    text = made(tmp_path / "t.csv", "--target", "price", "--by", "shop")
    assert "  # 8 customers\nby: [shop]  # each value (combination) is a customer\n" in text
    assert "# 2 columns to predict from (in the 5 customers looked at); " in text
    assert "#   x: number\n#   rate: number, not used by 4 of the customers looked at\n" in text
    assert "#   not used: " in text
