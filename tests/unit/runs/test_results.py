"""What a run shows of itself: the order of its rows, exact parameters, notes, and a table that fits the window."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import tuner_of
from click.testing import CliRunner

from tuning import RunResult, TuneRunner
from tuning.cli.output import lines as board_lines
from tuning.cli.output import show_finished
from tuning.cli.program import main
from tuning.errors import UnknownCustomerError
from tuning.runs.outcome import sentences


def rows(seed: int, calm: bool = False) -> pd.DataFrame:
    """Rows of one customer; calm: the latest of them, which are held out, are of one class."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=60), "day": pd.date_range("2024-01-01", periods=60)})
    frame["name"] = [f"account {number}" for number in range(60)]
    frame["left"] = np.where(frame["x"] + rng.normal(size=60) > 0, "yes", "no")
    if calm:
        frame.loc[45:, "left"] = "no"
    return frame


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    data = {"zone-10": rows(1), "zone-2": rows(2), "zone-3": rows(3, calm=True), "zone-1": rows(4)[:2]}
    runner = TuneRunner(
        data=data, target="left", metric="roc_auc", models=["xgboost"], trials=2, algorithm="random", mlflow=False,
        split={"type": "time", "column": "day"},
    )  # fmt: skip
    return runner.run(str(tmp_path_factory.mktemp("results") / "run"), progress=False, in_process=True)


def leaderboard(run: RunResult, *options: str) -> str:
    answer = CliRunner().invoke(main, ["leaderboard", run.directory.root, *options])
    assert answer.exit_code == 0, answer.output
    return answer.stdout


@pytest.mark.long
def test_a_run_that_goes_on_is_counted_at_one_moment(run: RunResult, tmp_path: Path) -> None:
    """What is recorded while it is looked at makes no customer one without a model."""
    shutil.copytree(run.directory.root, tmp_path / "run")
    records = tmp_path / "run" / run.term.records
    records.rename(tmp_path / "later")
    records.mkdir()
    looked = RunResult(tmp_path / "run")
    assert looked.summary()["succeeded"] == 0
    records.rmdir()
    (tmp_path / "later").rename(records)
    assert looked.unfinished == 4
    assert RunResult(tmp_path / "run").unfinished == 0


@pytest.mark.long
def test_ids_are_in_the_order_of_their_numbers_and_models_come_first(run: RunResult) -> None:
    assert list(run.leaderboard()["customer"]) == ["zone-2", "zone-3", "zone-10", "zone-1"]
    assert [line.split()[0] for line in leaderboard(run).splitlines()[2:]] == ["zone-2", "zone-3", "zone-10", "zone-1"]


def test_it_can_be_sorted_by_gain_and_by_seconds(run: RunResult) -> None:
    gains = [row["gain"] for row in json.loads(leaderboard(run, "--output", "json", "--sort", "gain"))]
    known = [gain for gain in gains if gain is not None]
    assert len(known) == 2
    assert gains == [*sorted(known, reverse=True), None, None]
    seconds = [row["seconds"] for row in json.loads(leaderboard(run, "--output", "json", "--sort", "seconds"))]
    assert seconds == sorted(seconds, reverse=True)
    with pytest.raises(ValueError, match=r"'luck' is no column\. There are customer, status, reason, model"):
        run.leaderboard(sort="luck")


def test_parameters_are_exact_and_say_how_many_rounds(run: RunResult) -> None:
    shown = {row["customer"]: row for row in json.loads(leaderboard(run, "--output", "json"))}
    board = run.leaderboard().set_index("customer")
    for record in run.study_records:
        if record.config is None:
            continue
        assert record.best_step is not None
        exact = {**record.config, "n_estimators": 10 * record.best_step}
        assert run.best_config(record.customer) == run.model(record.customer).best_config == exact
        del exact["model"]
        assert shown[record.customer]["params"] == json.loads(board["params"][record.customer]) == exact


def test_a_customer_shows_its_trials_curves_winner_and_notes(run: RunResult) -> None:
    found = run.customer("zone-2")
    assert list(found.trials()["trial"]) == [0, 1]
    winner = found.winner
    assert winner is not None
    assert found.study is not None
    assert (winner.trial, winner.score) == (found.study.trial, found.study.cv_score)
    curve = found.curves().query("trial == @winner.trial")
    assert list(curve["score"]) == [step.score for step in winner.steps]
    assert found.params == run.best_config("zone-2")
    assert any(str(note).startswith("left out: name") for note in found.notes)
    shown = found._repr_html_()
    assert f"{found.study.cv_score:.4g} ± {found.study.cv_error:.2g}" in shown
    assert f"<td>{winner.trial} (won)</td>" in shown
    assert "n_estimators" in shown
    assert "left out: name" in shown
    assert "result.model(&#x27;zone-2&#x27;).predict(new_rows)" in shown


def test_a_customer_without_a_model_says_why(run: RunResult) -> None:
    found = run.customer("zone-1")
    assert (found.winner, found.params, found.trial_records) == (None, None, ())
    assert repr(found) == f"CustomerResult('zone-1': {str(found.reason).rstrip('.')}; 0 trials)"
    assert "2 rows" in str(found.reason)
    assert "predict" not in found._repr_html_()
    with pytest.raises(UnknownCustomerError, match="Did you mean 'zone-10'"):
        run.customer("zone10")


def test_a_result_shows_what_matters_and_what_to_type_next(run: RunResult) -> None:
    shown = run._repr_html_()
    board = run.leaderboard().set_index("customer")
    assert "roc_auc, larger is better" in shown
    assert f"<td>{board['test_score']['zone-2']:.4g}" in shown
    assert "2 rows with a target" in shown  # the reason of the one without a model
    assert "result.customer(&#x27;zone-2&#x27;)" in shown


def test_notes_say_what_was_left_out_and_why_a_score_is_missing(run: RunResult) -> None:
    notes = run.leaderboard().set_index("customer")["notes"]
    left_out = "left out: name (nearly every value is unique: list it in `features` to use it anyway)"
    assert left_out in [str(note) for note in run.customer("zone-2").notes]  # one note, whole
    assert "roc_auc is not defined on the hold-out (12 rows)" in notes["zone-3"]
    assert "left out: name" not in " ".join(sentences(run, run.summary()))  # it is not worth a line at the end
    assert notes.isna()["zone-1"]
    assert "roc_auc is not defined" in leaderboard(run, "--output", "csv")


def test_the_table_names_the_metric_and_fits_the_window(run: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    for width in (40, 60, 80, 100, 160, 400):
        lines = list(board_lines(run.board(), width))
        assert lines[0].startswith("roc_auc, larger is better")
        assert max(map(len, lines)) <= width
        assert [line.split()[0] for line in lines[2:]] == ["zone-2", "zone-3", "zone-10", "zone-1"]
    assert "n_estimators=" in lines[2]
    monkeypatch.setenv("COLUMNS", "80")
    assert max(map(len, leaderboard(run).splitlines())) <= 80


def test_the_end_of_a_large_run_shows_the_first_customers_only(
    run: RunResult, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    monkeypatch.setattr("tuning.cli.output.END_ROWS", 1)
    show_finished(run, "table")
    shown = capsys.readouterr()
    assert [line.split()[0] for line in shown.out.splitlines()[2:]] == ["zone-2", "…"]
    assert shown.out.splitlines()[-1] == f"… 2 more: tuning leaderboard {run.directory.shown}"
    assert [line for line in shown.err.splitlines() if line.startswith("zone-1: 2 rows with a target")]


def test_the_summary_tells_the_clocks_time_from_the_workers(run: RunResult) -> None:
    counts = run.summary()
    assert counts["fit_seconds"] == pytest.approx(sum(record.fit_seconds for record in run.study_records), abs=1e-3)
    assert counts["wall_seconds"] > 0
    assert "seconds" not in counts


def test_an_objective_has_a_winner_and_no_customers_or_models(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = str(tmp_path_factory.mktemp("objective") / "run")
    runner = tuner_of(lambda config: config["x"] ** 2 + config["y"] ** 2, algorithm="random", scheduler="fifo")
    result = runner.run(folder, progress=False, in_process=True)
    best = min(result.trial_records, key=lambda record: (record.score, record.trial))
    assert result.best_config() == best.config
    assert f"experiment with the best value {best.score:.4g}" in repr(result)
    show_finished(result, "table")
    said = capsys.readouterr()
    assert said.out.startswith("loss, smaller is better\n")
    assert f"Experiment: best loss {best.score:.4g} of 20 trials (smaller is better), with " in said.err
    assert "models" not in said.err


def test_a_customer_is_found_by_the_value_of_its_key(tmp_path: Path) -> None:
    frame = pd.DataFrame({"zone": [161, 161, 7], "day": pd.to_datetime(["2024-01-01"] * 2 + ["2024-01-02"])})
    by_zone = tuner_of(lambda config: config["x"], data=frame, by="zone", trials=1)
    result = by_zone.run(str(tmp_path / "zones"), progress=False, in_process=True)
    assert [result[161].customer, result.customer(np.int64(7)).customer] == ["161", "7"]
    assert 161 in result
    assert result.trials(161)["customer"].tolist() == ["161"]
    assert 8 not in result
    assert result.best_config(7.0) == result.best_config("7")
    with pytest.raises(UnknownCustomerError, match=r"no customer '17' in this run\. Did you mean '7'\?"):
        result[17]
    with pytest.raises(UnknownCustomerError, match=r"which of the 2 customers\? Give its id, such as '161'"):
        result.customer()
    by_both = tuner_of(lambda config: config["x"], data=frame, by=["zone", "day"], trials=1)
    result = by_both.run(str(tmp_path / "both"), progress=False, in_process=True)
    assert result[7, pd.Timestamp("2024-01-02")].customer == "7/2024-01-02"


def test_the_first_rows_leave_room_for_those_without_a_model(run: RunResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.runs.leaderboard.SHOWN", 3)
    shown = run._repr_html_()
    assert "The first 2 and the last 1 of 4 customers; leaderboard() has all." in shown
    assert "zone-1</td>" in shown
    assert "zone-10" not in shown


def test_an_ensemble_says_what_it_is_made_of_and_trials_how_far_they_came(run: RunResult) -> None:
    found = run.customer("zone-2")
    assert found.study is not None
    members = [{"trial": 1, "family": "xgboost", "weight": 0.75}, {"trial": 0, "family": "xgboost", "weight": 0.25}]
    study = replace(found.study, ensemble=json.dumps(members))
    stopped = replace(found.trial_records[0], trial=7, state="stopped", score=1.0)
    many = replace(found, study=study, trial_records=(stopped, *found.trial_records * 5))
    facts = dict(many.facts())
    assert facts["ensemble"] == "75 % xgboost (trial 1), 25 % xgboost (trial 0)"
    assert facts["parameters of"] == f"trial {study.trial}, the best of these"
    assert [row[0] for row in many.best_trials()[1]].index("7") == 5  # behind the five that went the whole way
    assert "The best 10 of 11 trials; trials() has all. Steps: a higher bar is a better score." in many._repr_html_()
