"""How numbers and missing values are written: one rule for every format, for training and for new rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from data_shapes import definition, rows_of
from shown_output import note_texts

from tuning import TuneRunner
from tuning.cli.init import starter
from tuning.data.cells import WORDS
from tuning.data.registry import file_source
from tuning.definition.definition import define
from tuning.definition.yaml_file import read_definition
from tuning.errors import DefinitionError, PlanError
from tuning.planning.plan import make_plan
from tuning.runs.outcome import sentences

ROWS = 90
NAN = np.nan
QUICK: dict[str, Any] = {"search_space": "extra_trees", "trials": 1, "mlflow": False, "report": False, "slots": 2}


def texts(values: list[object]) -> list[str]:
    return ["" if value != value else str(value) for value in values]


#: Cells of a CSV, the options of `csv`, and what they are.
CELLS: dict[str, tuple[list[str], dict[str, Any], list[object]]] = {
    "whole numbers": (["1", "2", "-3"], {}, [1, 2, -3]),
    "an empty cell among numbers": (["1", "", "3"], {}, [1, NAN, 3]),
    "an empty cell among text": (["a", "", "b"], {}, ["a", NAN, "b"]),
    "an empty cell among truth values": (["True", "", "False"], {}, [True, NAN, False]),
    **{f"{word} among numbers": (["1.5", word, "3"], {}, [1.5, NAN, 3]) for word in WORDS},
    **{f"{word} among text": (["a", word, ""], {}, ["a", word, NAN]) for word in WORDS},
    "two words among numbers": (["NA", "null", "7"], {}, [NAN, NAN, 7]),
    "two words among text": (["NA", "None", "x"], {}, ["NA", "None", "x"]),
    "a word among truth values": (["TRUE", "NA", "false"], {}, [True, NAN, False]),
    "a word among dates": (["2024-01-31", "NA", "2024-02-01"], {}, ["2024-01-31", NAN, "2024-02-01"]),
    "a word among codes": (["007", "NA", "A12"], {}, ["007", "NA", "A12"]),
    "nothing but words": (["NA", "NA", "null"], {}, [NAN, NAN, NAN]),
    "words and empty cells": (["NA", "", ""], {}, [NAN, NAN, NAN]),
    "a mistake among numbers, and a word": (["?", "NA", *"1234567890"], {}, ["?", NAN, *"1234567890"]),
    "a text that is named": (["1", "-", "3"], {"na_values": ["-"]}, [1, NAN, 3]),
    "a text that is named, among text": (["a", "-", "NA"], {"na_values": ["-"]}, ["a", NAN, "NA"]),
    "a number that is named": (["1.5", "-999.0", "2"], {"na_values": ["-999"]}, [1.5, NAN, 2]),
    "words that are taken away": (["1", "NA", ""], {"na_values": [""]}, ["1", "NA", NAN]),
    "words that are taken away but one": (["1", "NA", ""], {"na_values": ["", "NA"]}, [1, NAN, NAN]),
    "words in another writing": (["a", "none", "nA"], {}, ["a", "none", "nA"]),
    "a comma between thousands": (["13,659.78", "950.10", "1,200,000"], {"thousands": ","}, [13659.78, 950.1, 1.2e6]),
    "a comma before decimals": (["0,346", "12,5", "-3"], {"decimal": ","}, [0.346, 12.5, -3]),
    "a comma and a point": (["1.234,5", "7", "2"], {"decimal": ",", "thousands": "."}, [1234.5, 7, 2]),
    "a point and a comma before decimals": (["0.5", "0,5", "1"], {"decimal": ","}, [0.5, 0.5, 1]),
    "a word among thousands": (["1,234", "NA", "5"], {"thousands": ","}, [1234, NAN, 5]),
    "a blank between thousands": (["1 234", "12 345", "5"], {"thousands": " "}, [1234, 12345, 5]),
    "a narrow blank that does not break": (["1\u202f234,5", "5"], {"thousands": "\u202f", "decimal": ","}, [1234.5, 5]),
    "a blank that does not break": (["1\u00a0234", "NA"], {"thousands": "\u00a0"}, [1234, NAN]),
    "an apostrophe between thousands": (["1'234.5", "7"], {"thousands": "'"}, [1234.5, 7]),
    "a mistake among thousands": (["?", *["1,234"] * 11], {"thousands": ","}, ["?", *["1234"] * 11]),
    "text with commas": (["a,b", "1,5", "c"], {"decimal": ","}, ["a,b", "1,5", "c"]),
    "digits of another script": (["\u0661", "\u0662", "x"], {}, ["\u0661", "\u0662", "x"]),
    "the minus of typesetting": (["\u22121.5", "2", "\u22123e2"], {}, [-1.5, 2, -300]),
    "the minus of typesetting, a word and a comma": (["\u22121,5", "NA", "2"], {"decimal": ","}, [-1.5, NAN, 2]),
    "the minus of typesetting among text": (["a\u2212b", "\u22121", "c"], {}, ["a\u2212b", "\u22121", "c"]),
    "infinite numbers": (["inf", "-inf", "NA"], {}, [np.inf, -np.inf, NAN]),
}


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_read_alike_from_a_file_and_from_a_table_of_several_customers(name: str, tmp_path: Path) -> None:
    cells, csv, expected = CELLS[name]
    table = pd.DataFrame({"x": cells, "k": "mine", "y": 1})
    others = pd.DataFrame({"x": ["a", "?", "1"], "k": ["theirs"] * 3, "y": 1})
    table.to_csv(tmp_path / "mine.csv", index=False)
    pd.concat([others, table]).to_csv(tmp_path / "table.csv", index=False)
    alone = file_source(str(tmp_path / "mine.csv"), csv).read()["x"]
    keyed = rows_of(definition(tmp_path / "table.csv", by="k", csv=csv), tmp_path)["mine"]["x"]
    pd.testing.assert_series_equal(alone, keyed)
    assert all(one == other or (one != one and other != other) for one, other in zip(alone, expected, strict=True))
    assert len(alone) == len(expected)


def classes(word: str, *, rows: int = ROWS) -> pd.DataFrame:
    """A class and a category that are called like a word for missing, and numbers in which that word is missing."""
    rng = np.random.default_rng(0)
    a = rng.permutation(np.arange(rows) % 3)
    frame = pd.DataFrame({"shop": np.resize([word, "b"], rows), "a": a + rng.normal(size=rows) * 0.1})
    frame["kind"] = np.array([word, "x", "y"])[a]
    frame["said"] = word
    frame["severity"] = np.array([word, "Minor", "Major"])[a]
    return frame.assign(n=frame["a"].where(np.arange(rows) % 9 > 0))


def written(frame: pd.DataFrame, kind: str, word: str, folder: Path) -> Any:
    """The data of a definition. Missing numbers are that word in a CSV."""
    if kind == "frame":
        return frame
    paths = [folder / f"t.{kind}"] if kind != "files" else [folder / "f" / f"{name}.csv" for name in ("one", "two")]
    for number, path in enumerate(paths):
        path.parent.mkdir(exist_ok=True)
        part = frame[frame.index % len(paths) == number]
        part.to_parquet(path) if kind == "parquet" else part.to_csv(path, index=False, na_rep=word)
    return str(paths[0] if kind != "files" else folder / "f" / "*.csv")


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "word"),
    [*((kind, "None") for kind in ("csv", "parquet", "frame", "files")), *(("csv", word) for word in ("NA", "n/a"))],
)
def test_a_class_a_key_and_a_category_may_be_called_like_a_missing_value(word: str, kind: str, tmp_path: Path) -> None:
    by = {} if kind == "files" else {"by": "shop"}
    rows = 2 * ROWS
    frame = classes(word, rows=rows)
    given = {"metric": "accuracy", "baseline": {"column": "said"}, **by, **QUICK}
    runner = TuneRunner(data=written(frame, kind, word, tmp_path), target="severity", **given)
    assert runner.plan().spec.task == "multiclass"
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    customers = {"one", "two"} if kind == "files" else {word, "b"}
    board = result.leaderboard().set_index("customer")
    assert board["status"].to_dict() == dict.fromkeys(customers, "ok")
    assert board["without_target"].isna().all()
    assert (board["baseline_test_score"] > 0).all(), "its predictions are a class"
    for customer in customers:
        model = result.model(customer)
        assert set(model.classes_) == {word, "Minor", "Major"}
        assert {column.name: column.kind for column in model.columns if column.name != "shop"} == {
            "a": "number",
            "kind": "text",
            "n": "number",
        }
        new = frame[frame["shop"] == customer] if by else frame
        predicted = model.predict(new)
        assert (predicted == new["severity"]).mean() > 0.9
        (tmp_path / "new.csv").write_text(new.drop(columns=["severity", "said"]).to_csv(index=False, na_rep=word))
        again = result.predict(str(tmp_path / "new.csv"), customer)
        assert again["prediction"].tolist() == predicted.tolist()


def test_rows_without_a_target_are_counted_by_customer(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name, gaps in {"whole": 0, "gaps": 25, "few": 80}.items():
        frame = pd.DataFrame({"x": rng.normal(size=ROWS)}).assign(y=lambda rows: rows["x"] * 2)
        frame.loc[:gaps, "y"] = frame["y"].where(frame.index >= gaps)
        frame.to_csv(tmp_path / f"{name}.csv", index=False, na_rep="NA")
    runner = TuneRunner(data=str(tmp_path / "*.csv"), target="y", min_rows=20, **{**QUICK, "search_space": "ridge"})
    result = runner.run(tmp_path / "run", in_process=True, progress=False)
    board = result.leaderboard().set_index("customer")
    assert board["without_target"].fillna(0).to_dict() == {"whole": 0, "gaps": 25, "few": 0}
    assert board["reason"]["few"] == "10 rows with a target, fewer than min_rows: 20; without one: 80."
    said = "25 rows without a target are left out: the leaderboard's column `without_target` has them by customer."
    assert said in sentences(result, result.summary())


#: Numbers as text in some notation, and what to set; nothing where `prepare` has to make numbers of them.
HINTED: dict[str, tuple[str, dict[str, str]]] = {
    "{:,.2f}": ("`csv: {thousands: ','}`", {"thousands": ","}),
    "{:.3f}|.|,": ("`csv: {decimal: ','}`", {"decimal": ","}),
    "{:,.1f}|,|;|.|,|;|.": ("`csv: {decimal: ',', thousands: '.'}`", {"decimal": ",", "thousands": "."}),
    "{:,.2f}|,| ": ("`csv: {thousands: ' '}`", {"thousands": " "}),
    "{:,.2f}|,|'": ('`csv: {thousands: "\'"}`', {"thousands": "'"}),
    "{:,.2f}|.|;|,|\u202f|;|,": (
        "`csv: {decimal: ',', thousands: \"\\u202f\"}`",
        {"decimal": ",", "thousands": "\u202f"},
    ),
    "{:,.0f}": ("`csv: {decimal: ','}` or `csv: {thousands: ','}`", {"thousands": ","}),
    "${:,.2f}": ("have `prepare` make numbers of them", {}),
}


def amounts(notation: str) -> pd.DataFrame:
    form, *changes = notation.split("|")
    rng = np.random.default_rng(23)
    a = rng.normal(size=300)
    cells = [[f"{value:.6f}", form.format(120_000 + 30_000 * value)] for value in a]
    frame = pd.DataFrame(cells, columns=["a", "price"])
    for old, new in zip(changes[::2], changes[1::2], strict=True):
        frame = pd.DataFrame({name: frame[name].str.replace(old, new, regex=False) for name in frame})
    return frame


@pytest.mark.parametrize("notation", HINTED)
def test_a_notation_of_numbers_is_named_with_what_reads_it(notation: str, tmp_path: Path) -> None:
    said, csv = HINTED[notation]
    amounts(notation).to_csv(tmp_path / "t.csv", index=False)
    plain: dict[str, Any] = {"data": str(tmp_path / "t.csv"), "target": "price", **QUICK}
    assert any(said in note for note in note_texts(make_plan(define(plain))))
    with pytest.raises((PlanError, DefinitionError)) as refused:
        make_plan(define({**plain, "metric": "rmse"}))
    assert said in str(refused.value)
    found = TuneRunner(**plain, task="regression").run(tmp_path / "text", in_process=True, progress=False)
    assert said in str(found.study_records[0].reason)
    if csv:
        runner = TuneRunner(**plain, metric="r2", csv=csv)
        result = runner.run(tmp_path / "read", in_process=True, progress=False)
        assert result.leaderboard()["test_score"].min() > 0.9
        made = starter(str(tmp_path / "t.csv"), "price", (), str(tmp_path))
        (tmp_path / "d.yaml").write_text(made)
        assert make_plan(read_definition(tmp_path / "d.yaml")).spec.task == "regression"
