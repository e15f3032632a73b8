"""What is said of a run when it has ended."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from builders import make_frame
from commands import tuning
from prepared_rows import prepare_data
from trained import trained

from tuning import RunResult, TuneRunner
from tuning.evaluation.conclusion import conclude
from tuning.evaluation.constant import ConstantPrediction
from tuning.evaluation.doubts import contradiction_note, leak_note
from tuning.evaluation.metrics import Metric
from tuning.notes import FitCode, Note
from tuning.runs.outcome import sentences


def test_one_customer_with_notes_is_said_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mistyped = make_frame().assign(y=lambda rows: rows["y"].where(rows.index != 7, 1e9))
    given = {"data": mistyped, "target": "y", "task": "regression", "search_space": "ridge", "trials": 2}
    runner = TuneRunner({**given, "mlflow": False, "report": False})
    result = runner.run(tmp_path / "run", progress=False, in_process=True)
    said = " ".join(sentences(result, result.summary()))
    assert "): a target of 1e+09 is far from all others" in said
    monkeypatch.setattr(result, "goes_on", True)
    monkeypatch.setattr(RunResult, "unfinished", 3)
    first, *_ = sentences(result, {**result.summary(), "customers": 6, "without_model": 5})
    assert ": 1 undecided (1 with too few hold-out rows); 3 not finished yet; 2 without; " in first


@pytest.fixture(scope="module")
def contradicted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clock that wraps at midnight in the rows to come, beside one that does not."""
    folder = tmp_path_factory.mktemp("contradicted")
    rng = np.random.default_rng(0)
    clock = rng.uniform(900, 2350, size=100)
    good = pd.DataFrame({"day": range(100), "clock": clock, "y": clock / 10 + rng.normal(scale=2, size=100)})
    wraps = good.assign(clock=np.where(good["day"] % 4 == 3, 0.0, clock))  # five of the hold-out rows
    wraps.loc[wraps["day"] < 80, "clock"] = clock[:80]
    good.to_csv(folder / "good.csv", index=False)
    wraps.to_csv(folder / "wraps.csv", index=False)
    (folder / "d.yaml").write_text(
        "data: '*s.csv'\ntarget: y\nmetric: rmse\ndrop: [day]\nsplit: {type: time, column: day}\nmodels: ridge\n"
        "trials: 2\nmlflow: false\n".replace("*s", "[gw]*")
    )
    return folder


def test_a_model_that_the_hold_out_rows_contradict_is_said_first(contradicted: Path) -> None:
    words = ("run", contradicted / "d.yaml", "--in-process", "--progress", "none", "--run-dir", contradicted / "run")
    ended = tuning(*words)
    assert ended.exit_code == 0, ended.output
    assert tuning(*words, "--resume", "--strict", "--output", "json").exit_code == 3
    result = RunResult(str(contradicted / "run"))
    counts = result.summary()
    assert counts["contradicted"] == 1
    verdict, _, first, *_ = sentences(result, counts)
    assert first.startswith("1 customer ('wraps'): the hold-out contradicts the folds (rmse ")
    assert "before the model is used" in first
    assert "the hold-out contradicts 1; " in verdict
    assert verdict in ended.stderr
    notes = dict(zip(*(result.leaderboard()[name] for name in ("customer", "notes")), strict=True))
    assert "contradicts" not in (notes["good"] or "")
    assert "the hold-out contradicts the folds (rmse " in notes["wraps"]
    html = (contradicted / "run" / "report.html").read_text()
    assert "1 contradicted by the hold-out" in html[: html.index("<h2>")]
    assert "Look at the rows with the largest errors" in html[html.index("<h2>What to do</h2>") :]


def _row(scores: tuple[float, ...], test: float, error: float, rows: int = 100) -> bool:
    """Whether folds with these scores are contradicted by a hold-out score, where a constant has 10 everywhere."""
    data = prepare_data(make_frame(rows), target="y", task="regression", seed=0, split={"folds": len(scores)})
    metric = Metric("rmse", data.task)
    constant = ConstantPrediction({}, (10.0,) * len(scores), 10.0)
    return contradiction_note(sum(scores) / len(scores), scores, test, error, constant, data, metric) is not None


@pytest.mark.parametrize(
    ("scores", "test", "error", "broken"),
    [
        ((2.0, 2.1, 1.9), 3.0, 0.1, False),  # surely worse, but most of what was promised is kept
        ((2.0, 2.1, 1.9), 8.0, 0.5, True),
        ((2.0, 2.1, 1.9), 8.0, 2.5, False),  # a few rows decide the score, and so its error
        ((2.0, 2.0, 2.0), 8.0, 2.5, False),  # folds that agree by luck are no surer
        ((2.0, 2.0, 2.0), 8.0, 1.85, False),  # with 80 rows at the best half as sure as 20
        ((2.0, 2.0, 2.0), 8.0, 1.7, True),
        ((2.0, 6.0, 1.0), 8.0, 2.5, False),
        ((9.9, 9.8, 9.7), 10.5, 0.05, True),  # promised little, and is worse than the constant
        ((9.5, 9.0, 10.0), 11.0, 1.0, False),  # worse than the constant, as chance makes weak models
    ],
)
def test_a_contradiction_is_much_worse_and_no_chance(
    scores: tuple[float, ...], test: float, error: float, broken: bool
) -> None:
    assert _row(scores, test, error) == broken


def _contradiction(task: str, count: int, changed: Callable[[pd.DataFrame], pd.DataFrame]) -> Note | None:
    """Return the note on a customer of which the last fifth of its rows, those held out, is changed."""
    rng = np.random.default_rng(0)
    x, z = rng.uniform(size=(2, count))
    frame = pd.DataFrame({"t": range(count), "x": x, "z": z, "y": 5 * x + 5 * z + rng.normal(size=count) / 9})
    frame = frame.where(frame["t"] < 0.8 * count, changed(frame))
    if task == "binary":
        frame["y"] = np.where(frame["y"] > 5, "high", "low")
    split = {"type": "time", "column": "t"}
    data = prepare_data(frame, target="y", task=task, seed=0, split=split, drop=("t",))
    metric = Metric("log_loss" if task == "binary" else "rmse", data.task)
    config = {"model": "logistic" if task == "binary" else "ridge"}
    notes = conclude([trained(config, data, metric)], data, metric, "acme").notes
    return next((note for note in notes if note.code is FitCode.CONTRADICTED), None)


@pytest.mark.parametrize(
    ("task", "count", "changed", "told"),
    [
        ("regression", 200, lambda frame: frame, False),
        ("regression", 200, lambda frame: frame.assign(y=10 - frame["y"]), True),
        ("regression", 200, lambda frame: frame.assign(x=frame["x"] + 40), True),
        ("regression", 90, lambda frame: frame.assign(y=10 - frame["y"]), False),  # 18 rows
        ("regression", 200, lambda frame: frame.assign(y=frame["y"].where(frame["t"] < 199, 8e4)), False),  # one row
        ("binary", 200, lambda frame: frame.assign(x=frame["x"] - 40), True),
    ],
)
def test_a_contradiction_is_a_note_on_the_model_with_what_to_do(
    task: str, count: int, changed: Callable[[pd.DataFrame], pd.DataFrame], told: bool
) -> None:
    found = _contradiction(task, count, changed)
    assert (found is not None) == told
    assert found is None or "before the model is used" in found.advice


def _sales(seed: int, tells: bool) -> pd.DataFrame:
    """What is sold to whom, and what is paid after it, which tells the target or not."""
    rng = np.random.default_rng(seed)
    sold, noise = rng.normal(100, 10, 80), rng.normal(size=80)
    return pd.DataFrame({"age": rng.normal(size=80), "paid": 1.19 * sold if tells else noise, "sold": sold})


def test_a_column_that_tells_the_target_is_named_with_the_customers_that_show_it(tmp_path: Path) -> None:
    given = {"target": "sold", "metric": "r2", "search_space": "ridge", "trials": 1, "mlflow": False, "report": False}
    data = {name: _sales(number, number < 4) for number, name in enumerate("abcde")}
    result = TuneRunner({"data": data, **given}).run(tmp_path / "run", progress=False, in_process=True)
    (found,) = (each for each in sentences(result, result.summary()) if "'paid'" in each)
    assert found.startswith("4 customers ('a', 'b', 'c' and 1 more): tells the target of every row: 'paid'; leave out")


@pytest.mark.parametrize(("bad", "told"), [(40, True), (20, True), (19, False), (3, False)])
def test_few_rows_of_a_class_are_no_sign_that_a_column_tells_the_target(bad: int, told: bool) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(120) < bad
    frame = pd.DataFrame(
        {"x": rng.normal(size=120), "income": y + rng.normal(scale=0.01, size=120), "y": y.astype(str)}
    )
    data = prepare_data(frame.sample(frac=1, random_state=0), target="y", task="binary", seed=0, split={"folds": 3})
    metric = Metric("roc_auc", data.task)
    assert ("'income'" in str(leak_note(data, metric, 0.99, 0.01, 0.5, 0.99))) == told
    data.columns = data.columns[:1]  # nothing to leave out
    assert (leak_note(data, metric, 1.0, 0.0, 0.5, 1.0) is not None) == (bad == 40)  # 5 held-out rows of a class
    assert leak_note(data, metric, 1.0, 0.0, 0.5, 0.94) is None, "a column that tells tells on the hold-out, too"
