"""The main job, end to end: customers through one Tuner, their records, models, leaderboard and MLflow copy."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from pathlib import Path

import pandas as pd
import pytest
from made_up import write_customers

from tuning import RunResult, TuneRunner
from tuning.cli.output import lines as board_lines
from tuning.errors import RunError
from tuning.planning.portfolios.sources import shipped
from tuning.records.ownership import begun_term
from tuning.tracking.follow import CopyLoop, RunParts
from tuning.tracking.settings import settings_of

TRIALS = 3
CUSTOMERS = 7
GOOD = CUSTOMERS - 3
TROUBLED = {
    "customer-broken": "not utf-8 text",
    "customer-loyal": "is constant (no)",
    "customer-tiny": "fewer than min_rows",
}


@pytest.fixture(scope="module")
def demo(ray_cluster: None, tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    """One run over the demo's customers that all tests of this file look at."""
    folder = tmp_path_factory.mktemp("demo")
    write_customers(folder / "customers", CUSTOMERS)
    runner = TuneRunner(
        name="demo",
        data=str(folder / "customers" / "*.csv"),
        target="churned",
        metric="roc_auc",
        trials=TRIALS,
        seed=3,
        slots=1,
    )
    return runner.run(str(folder / "run"), progress=False)


def test_every_customer_is_on_the_leaderboard_once_with_a_model_or_a_reason(demo: RunResult) -> None:
    board = demo.leaderboard()
    assert len(board) == CUSTOMERS
    assert board["customer"].is_unique
    without = board[board["status"] != "ok"].set_index("customer")["reason"]
    assert set(without.index) == set(TROUBLED)
    for customer, part in TROUBLED.items():
        assert part in without[customer]
    assert board[board["status"] == "ok"]["test_score"].between(0, 1).all()


def test_each_trial_is_recorded_once_and_counted_alike_everywhere(demo: RunResult) -> None:
    per_study = Counter(record.study for record in demo.trial_records)
    assert set(per_study.values()) == {TRIALS}
    assert len(per_study) == GOOD
    counts = demo.summary()
    assert counts["trials"] == len(demo.trial_records) == demo.leaderboard()["trials"].sum()
    assert (counts["customers"], counts["succeeded"], counts["without_model"]) == (CUSTOMERS, GOOD, 3)


@pytest.mark.mlflow
def test_mlflow_holds_a_parent_per_customer_and_a_child_per_trial(demo: RunResult) -> None:
    directory, term = demo.directory, begun_term(demo.directory)
    ended = threading.Event()
    ended.set()
    copy = CopyLoop(settings_of(directory, term), RunParts(directory, term, ended))
    copy.run()  # what the run's closing minute did not do
    with sqlite3.connect(demo.directory.path("mlflow.db")) as store:
        children = store.execute("select count(*) from tags where key = 'mlflow.parentRunId'").fetchone()[0]
        runs = store.execute("select count(*) from runs").fetchone()[0]
        experiments = [row[0] for row in store.execute("select name from experiments")]
    assert children == len(demo.trial_records)
    assert runs - children >= CUSTOMERS
    assert "demo" in experiments


def test_the_baseline_is_the_first_of_the_portfolio_and_never_stopped(demo: RunResult) -> None:
    portfolio = shipped("binary")
    first = [record for record in demo.trial_records if record.trial == 0]
    assert {record.state for record in first} == {"finished"}
    assert all(record.config == portfolio[0] for record in first)
    assert {*demo.leaderboard()["baseline"].dropna()} == {portfolio[0]["model"]}
    assert all(record.reason for record in demo.trial_records if record.state == "stopped")


def test_the_winner_has_its_full_budget_and_the_best_score(demo: RunResult) -> None:
    for study in demo.study_records:
        full = [r for r in demo.trial_records if r.study == study.study and r.state == "finished"]
        if study.status == "ok":
            assert study.cv_score == max(record.score for record in full)
            assert study.gain == pytest.approx(study.test_score - study.baseline_test_score)


def test_a_model_predicts_new_rows_with_gaps_and_unknown_words(demo: RunResult, tmp_path: Path) -> None:
    for customer in ("customer-01", "customer-04"):
        model = demo.model(customer)
        rows = pd.DataFrame(
            {
                "plan": ["basic", "never seen", None],
                "region": ["north", None, "south"],
                "tenure_months": [3.0, None, 80.0],
                "monthly_price": [60, 20, 30],
                "tickets": [5, 0, 0],
                "usage_hours": [1.0, 9.0, None],
            }
        )
        assert set(model.predict(rows)) <= {"yes", "no"}
        proba = model.predict_proba(rows)
        assert proba.shape == (3, 2)
        assert proba.sum(axis=1) == pytest.approx([1, 1, 1])


def test_a_customer_without_model_says_why(demo: RunResult) -> None:
    with pytest.raises(RunError, match="is constant"):
        demo.model("customer-loyal")
    with pytest.raises(RunError, match="Did you mean 'customer-01'"):
        demo.model("custmer-01")


def test_a_second_run_in_the_same_folder_is_refused_with_the_way_on(demo: RunResult) -> None:
    runner = TuneRunner(data="unused.csv", target="churned")
    with pytest.raises(RunError, match=r"runner\.run\(.*resume=True\)"):
        runner.run(demo.directory.uri, progress=False)


def test_resuming_a_finished_run_changes_nothing(demo: RunResult) -> None:
    before = demo.leaderboard()
    again = TuneRunner.resume(demo.directory.uri, progress=False)
    pd.testing.assert_frame_equal(again.leaderboard(), before)
    assert len(again.trial_records) == len(demo.trial_records)


def test_the_table_for_the_terminal_has_a_line_per_customer(demo: RunResult) -> None:
    lines = list(board_lines(demo.board()))
    assert len(lines) == CUSTOMERS + 2
    assert "customer-loyal" in lines[CUSTOMERS]


def test_tuner_gives_the_tuner_that_run_uses(ray_cluster: None, tmp_path: Path) -> None:
    from ray import tune

    runner = TuneRunner(
        objective=lambda config: (config["x"] - 1) ** 2,
        search_space={"x": {"type": "float", "low": -5, "high": 5}},
        metric="loss",
        mode="min",
        trials=15,
        slots=1,
        algorithm="random",
        mlflow=False,
    )
    tuner = runner.tuner(str(tmp_path / "run"))
    assert isinstance(tuner, tune.Tuner)
    tuner.fit()
    result = RunResult(str(tmp_path / "run"))
    assert len(result.trial_records) == 15
    assert result.leaderboard()["cv_score"][0] == min(record.score for record in result.trial_records)
