"""`tuning predict`: predictions beside the rows, or what is wrong with them."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import tuning

from tuning import RunResult
from tuning.data.formats.csv_file import csv_text
from tuning.errors import DataError


def test_predictions_come_back_beside_the_rows(customers: Path, finished: Path, tmp_path: Path) -> None:
    rows = pd.read_csv(customers / "beta.csv").drop(columns="churned")
    rows.to_parquet(tmp_path / "new.parquet", index=False)
    answer = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "new.parquet", "--output",
                    tmp_path / "out.csv")  # fmt: skip
    assert answer.exit_code == 0, answer.output
    out = pd.read_csv(tmp_path / "out.csv")
    assert list(out.columns) == [*rows.columns, "prediction", "probability_no", "probability_yes"]
    assert set(out["prediction"]) <= {"yes", "no"}
    assert np.allclose(out["probability_no"] + out["probability_yes"], 1)
    printed = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "new.parquet")
    assert printed.stdout == (tmp_path / "out.csv").read_text()


def test_predict_never_writes_over_its_rows(customers: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_bytes((customers / "beta.csv").read_bytes())
    (tmp_path / "link.csv").symlink_to(tmp_path / "new.csv")
    for output in ("new.csv", "link.csv"):
        answer = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "new.csv", "--output",
                        tmp_path / output)  # fmt: skip
        assert answer.exit_code == 2
        assert "is the file of --data; name another one" in answer.stderr
    assert (tmp_path / "new.csv").read_bytes() == (customers / "beta.csv").read_bytes()


@pytest.mark.parametrize("text", ["a\rb", "a\nb", 'q"', "a,b", "plain"])
def test_rows_stay_rows_in_csv_whatever_their_text_is(text: str) -> None:
    frame = pd.DataFrame({"name": [text, None], "prediction": [1.5, 2.0]})
    again = pd.read_csv(io.StringIO(csv_text(frame), newline=""))
    pd.testing.assert_frame_equal(again, frame)


def test_predictions_keep_formulas_for_programs_and_guard_them_for_people(
    customers: Path, finished: Path, tmp_path: Path
) -> None:
    rows = pd.read_csv(customers / "beta.csv").drop(columns="churned").head(3)
    rows.assign(**{"=id": ["=1+1", "@SUM(1)", "-7"]}).to_csv(tmp_path / "new.csv", index=False)
    words = ("predict", finished, "--customer", "beta", "--data", tmp_path / "new.csv")
    kept, shown = (
        pd.read_csv(io.StringIO(tuning(*words, *option).stdout), dtype=str) for option in ((), ("--formulas", "guard"))
    )
    assert kept["=id"].tolist() == ["=1+1", "@SUM(1)", "-7"]
    assert shown["'=id"].tolist() == ["'=1+1", "'@SUM(1)", "-7"]
    pd.testing.assert_frame_equal(kept.drop(columns="=id"), shown.drop(columns="'=id"))


def test_predict_of_no_rows_says_so(customers: Path, finished: Path, tmp_path: Path) -> None:
    pd.read_csv(customers / "beta.csv").head(0).to_csv(tmp_path / "n.csv", index=False)
    answer = tuning("predict", finished, "--customer", "beta", "--data", tmp_path / "n.csv")
    assert (answer.exit_code, answer.stderr) == (2, "error: there are no rows to predict.\n")
    model = RunResult(str(finished)).model("beta")
    for rows, said in ((pd.read_csv(tmp_path / "n.csv"), "no rows"), ([[1, 2]], "DataFrame"), (None, "rows and col")):
        with pytest.raises(DataError, match=said):
            model.predict(rows)


@pytest.mark.parametrize(
    ("customer", "change", "code", "message"),
    [
        ("bata", {}, 2, "no customer 'bata' in this run. Did you mean 'beta'?"),
        ("tiny", {}, 4, "customer 'tiny' has no model: 3 rows with a target"),
        ("beta", {"usage_hours": "lots"}, 2, "'usage_hours' held numbers when the model was fitted"),
        ("beta", {"plan": None}, 2, "columns are missing: 'plan'"),
        (None, {}, 2, "--customer is needed"),
    ],
)
def test_predict_says_what_is_wrong(
    customer: str | None,
    change: dict[str, str | None],
    code: int,
    message: str,
    customers: Path,
    finished: Path,
    tmp_path: Path,
) -> None:
    rows = pd.read_csv(customers / "beta.csv").assign(**change)
    rows.drop(columns=[name for name, value in change.items() if value is None]).to_csv(tmp_path / "n.csv", index=False)
    whose = ("--customer", customer) if customer else ()
    answer = tuning("predict", finished, *whose, "--data", tmp_path / "n.csv")
    assert answer.exit_code == code
    assert message in answer.stderr


def test_an_output_that_cannot_be_written_is_said(customers: Path, finished: Path, tmp_path: Path) -> None:
    for name, message in (("no/folder/x.csv", "cannot be written"), ("x.xlsx", "end it in one of")):
        answer = tuning("predict", finished, "--customer", "beta", "--data", customers / "beta.csv", "--output",
                        tmp_path / name)  # fmt: skip
        assert answer.exit_code == 2
        assert message in answer.stderr
    tuning(
        "predict", finished, "--customer", "beta", "--data", customers / "beta.csv", "--output", tmp_path / "x.csv.gz"
    )
    assert len(pd.read_csv(tmp_path / "x.csv.gz")) == 120
