"""One customer's odd target, from the plan to the leaderboard: the others get their models as if it were not there."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.notes import texts

QUICK = {"algorithm": "random", "scheduler": "fifo", "trials": 2, "mlflow": False, "report": False, "slots": 1}


def prices(seed: int, bad: int = 0) -> pd.DataFrame:
    """Whole-number prices, some of them not filled in."""
    x = np.random.default_rng(seed).normal(size=(60, 2))
    price = pd.Series((100 * x[:, 0] + 500).round().astype(int)).astype(object)
    price[:bad] = "?"
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "price": price})


@pytest.mark.parametrize("keyed", [False, True])
def test_one_bad_cell_costs_its_row_and_many_cost_their_customer(keyed: bool, tmp_path: Path) -> None:
    frames = {"a": prices(0), "b": prices(1, bad=1), "c": prices(2, bad=30), "d": prices(3)}
    if keyed:
        pd.concat([frame.assign(shop=name) for name, frame in frames.items()]).to_csv(tmp_path / "t.csv", index=False)
    else:
        for name, frame in frames.items():
            frame.to_csv(tmp_path / f"{name}.csv", index=False)
    data = {"data": str(tmp_path / "t.csv"), "by": "shop"} if keyed else {"data": str(tmp_path / "*.csv")}
    result = TuneRunner(**data, target="price", search_space="ridge", **QUICK).run(
        str(tmp_path / "run"), in_process=True, progress=False
    )
    board = result.leaderboard().set_index("customer")
    assert set(board[board["status"] == "ok"].index) == {"a", "b", "d"}
    assert "30 of its 60 values are none, the first is '?' in row 1" in board.loc["c", "reason"]
    records = {record.customer: record for record in result.study_records}
    assert {name: records[name].rows for name in "abd"} == {"a": 60, "b": 59, "d": 60}
    assert "1 of 60 rows are left out" in texts(records["b"].notes)
    assert {record.task for record in records.values()} == {"regression"}


def test_what_was_guessed_is_said_where_the_run_is_watched(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in ("acme", "beta"):
        x = rng.normal(size=80)
        left = np.where(x + rng.normal(size=80) > 1.0, "churned", "stayed")
        pd.DataFrame({"x": x, "noise": rng.normal(size=80), "left": left}).to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "d.yaml").write_text("data: '*.csv'\ntarget: left\nmetric: recall\nsearch_space: logistic\ntrials: 2\n")
    arguments = ["run", tmp_path / "d.yaml", "--run-dir", tmp_path / "run", "--in-process", "--set", "mlflow=false"]
    answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert answer.exit_code == 0, answer.output
    assert "note: task 'binary' with positive class 'churned' is guessed from 2 customers" in answer.stderr
    assert answer.stdout.startswith("recall, larger is better, positive class 'churned'\n")
    board = CliRunner().invoke(main, ["leaderboard", str(tmp_path / "run"), "--output", "json"])
    assert {row["positive"] for row in json.loads(board.stdout)} == {"churned"}


def test_a_score_that_is_too_good_is_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    survived = rng.integers(0, 2, 80)
    frame = pd.DataFrame({"age": rng.normal(size=80), "alive": np.where(survived, "yes", "no"), "survived": survived})
    frame.to_csv(tmp_path / "leak.csv", index=False)
    frame[:20].to_csv(tmp_path / "too few rows to tell.csv", index=False)
    frame.drop(columns="alive").to_csv(tmp_path / "honest.csv", index=False)
    (tmp_path / "d.yaml").write_text("data: '*.csv'\ntarget: survived\nsearch_space: logistic\ntrials: 1\n")
    arguments = ["run", tmp_path / "d.yaml", "--run-dir", tmp_path / "run", "--in-process", "--set", "mlflow=false"]
    answer = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert ", a column tells the target of 1; " in answer.stderr
    notes = {record.customer: texts(record.notes) for record in RunResult(str(tmp_path / "run")).study_records}
    assert notes["leak"] == (
        "tells the target of every row: 'alive'; leave out what is not known before the target: `drop: [alive]`"
    )
    assert "`drop: [alive]`" in CliRunner().invoke(main, ["show", str(tmp_path / "run"), "leak"]).output
    assert "<code>drop: [alive]</code>" in (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert not notes["honest"]
