"""The report of one customer: what was tried, predicted against actual, what matters; and what it may not do."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib import pyplot
from sklearn.metrics import roc_auc_score

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.runs import plots
from tuning.runs.report.customer import class_pictures, customer_page
from tuning.runs.report.page import page

CODE = "def prepare(frame):\n    open('ran', 'w').close()\n    return frame\n"


def rows(seed: int, count: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=count), "noise": rng.normal(size=count)})
    return frame.assign(y=5 * frame["x"] + rng.normal(scale=0.3, size=count))


def run_of(folder: Path, **keys: object) -> RunResult:
    runner = TuneRunner({"target": "y", "models": ["ridge", "knn"], "trials": 3, "mlflow": False, **keys})
    return runner.run(folder / "run", in_process=True, progress=False)


def alts(html: str) -> set[str]:
    return set(re.findall('<img [^>]*alt="(.*?)"', html, re.DOTALL))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    folder = tmp_path_factory.mktemp("reported")
    return run_of(folder, data=pd.concat([rows(0).assign(shop="a's"), rows(1).assign(shop="b")]), by="shop")


@pytest.mark.long
def test_a_run_of_one_customer_ends_with_predictions_and_what_matters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = run_of(tmp_path, data={"only": rows(0)})
    html = (tmp_path / "run" / "report.html").read_text()
    assert alts(html) == {
        "Score of each trial step by step",
        "Predicted against actual values",
        "Residuals against predicted values",
        "Importance of each column",
    }
    monkeypatch.setattr("tuning.runs.report.customer.QUICK_S", 0.0)
    assert "<code>tuning report</code> adds them" in page(result, quick=True)


def test_what_is_drawn_is_what_the_model_was_scored_by(many: RunResult) -> None:
    found = many.customer("b")
    assert found.study is not None
    table = found.hold_out()
    error = np.sqrt(np.mean((table["actual"] - table["prediction"]) ** 2))
    assert error == pytest.approx(found.study.test_score)
    np.testing.assert_allclose(rows(1)["y"].iloc[table.index], table["actual"])


def test_a_picture_takes_a_result_as_it_is_and_is_one_that_a_notebook_shows(many: RunResult) -> None:
    pyplot.close("all")
    customer = many.customer("b")
    drawn = [
        plots.learning_curves(customer),
        plots.winning_families(many),
        plots.gains(many.leaderboard()),
    ]
    assert [axes.get_figure().number for axes in drawn] == pyplot.get_fignums()
    assert len(plots.gains(many).patches) == 2
    errors = [picture(many).get_ylabel() for picture in (plots.gains, plots.baseline_and_tuned, plots.score_and_size)]
    assert errors == [
        "gain over the baseline\n(% of its rmse, hold-out)",
        "tuned (rmse, hold-out)",
        "hold-out score (rmse)",
    ]
    with pytest.raises(TypeError, match="name the metric of these scores, such as metric='rmse'"):
        plots.gains(many.leaderboard().drop(columns="metric"))
    pyplot.close("all")
    with pytest.raises(TypeError, match="this picture is of"):
        plots.winning_families("runs/47")  # type: ignore[arg-type]  # a path is no result
    with pytest.raises(TypeError, match="draws one customer"):
        plots.column_importance(many.leaderboard())


@pytest.mark.long
@pytest.mark.parametrize("classes", [2, 3])
def test_classes_have_confusion_roc_and_calibration(tmp_path: Path, classes: int) -> None:
    frame = rows(0, 150)
    frame["y"] = pd.qcut(frame["y"], classes, labels=["low", "more", "top"][:classes]).astype(str)
    result = run_of(tmp_path, data={"only": frame}, models=["logistic"], report=False)
    assert alts(page(result)) >= {"Confusion matrix", "ROC curve", "Calibration of the probabilities"}
    table = result.customer().hold_out()
    confusion, roc, _ = (picture.figure.axes[0] for picture in class_pictures(table))
    numbers = [int(text.get_text()) for text in confusion.texts]
    expected = pd.crosstab(table["actual"], table["prediction"]).to_numpy()
    assert numbers == expected.ravel().tolist()
    last = table.attrs["classes"][-1]
    area = roc_auc_score(table["actual"] == last, table[f"probability_{last}"])
    assert roc.get_legend().get_texts()[-1].get_text() == f"{last} (AUC = {area:.2f})"


@pytest.mark.long
def test_a_customer_of_many_has_a_report_on_demand(many: RunResult) -> None:
    run = many.directory.shown
    answer = CliRunner().invoke(main, ["report", run, "--customer", "b"])
    assert answer.exit_code == 0, answer.output
    html = Path(answer.output.strip()).read_text()
    assert "Predicted against actual values" in alts(html)
    assert "The model, " in html
    assert f"tuning report {run} --customer {{}}" in (Path(run) / "report.html").read_text()
    missing = CliRunner().invoke(main, ["report", run, "--customer", "c"])
    assert missing.exit_code != 0
    assert "no customer 'c' in this run" in missing.output


def test_where_the_data_are_gone_the_page_says_so(tmp_path: Path) -> None:
    rows(0).to_csv(tmp_path / "only.csv", index=False)
    result = run_of(tmp_path, data=str(tmp_path / "only.csv"), report=False)
    (tmp_path / "only.csv").unlink()
    html = customer_page(result, "only")
    assert "could not be asked about the hold-out rows" in html
    assert "only.csv" in html
    assert alts(html) == {"Score of each trial step by step"}


@pytest.mark.long
def test_a_report_runs_no_code_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(CODE)
    result = run_of(tmp_path, data={"only": rows(0)}, prepare="own.py:prepare", report=False)
    (tmp_path / "ran").unlink()
    assert "runs no code of yours" in page(result, quick=True)
    assert not (tmp_path / "ran").exists()
