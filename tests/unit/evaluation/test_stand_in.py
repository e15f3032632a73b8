"""Nobody without an answer: whom the pool answers, how that is said and counted, and what stays without it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from tuning import RunResult, TuneRunner
from tuning.cli.program import main
from tuning.errors import RunError, UnknownCustomerError
from tuning.models.pooled import TargetScale
from tuning.notes import DataCode, PoolCode, texts
from tuning.runs.outcome import sentences
from tuning.runs.report.customer import customer_page
from tuning.runs.report.page import customers_without
from tuning.service.extract_child import ANSWER, ROWS_JSON, write_predictions

FEW = {"catboost": {"iterations": 40, "learning_rate": 0.2, "depth": 4}}
CUSTOMERS = [f"c{seed}" for seed in range(5)]


@pytest.fixture(autouse=True, scope="module")
def _few_rounds() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tuning.models.pooled.BOOSTERS", FEW)
        patch.setattr("tuning.evaluation.pooling.BOOSTERS", FEW)
        yield


def numbers(seed: int, count: int = 40) -> pd.DataFrame:
    """What is alike for all customers but for its level and its unit."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-2, 2, size=(count, 2)), columns=["a", "b"])
    return frame.assign(y=10 * seed + (1 + seed) * frame["a"] + rng.normal(scale=0.1, size=count))


def classes(seed: int, count: int = 40) -> pd.DataFrame:
    frame = numbers(seed, count)
    return frame.assign(y=np.where(frame["a"] > 0, "yes", "no"))


def search(folder: Path, frames: dict[str, pd.DataFrame], **fields: Any) -> RunResult:
    table = pd.concat([frame.assign(who=name) for name, frame in frames.items()], ignore_index=True)
    given: dict[str, Any] = {"target": "y", "by": "who", "trials": 1, "algorithm": "random", "scheduler": "fifo"}
    given |= {"models": ["ridge"], "mlflow": False, "report": False, "pool": "on", "min_rows": 20, **fields}
    return TuneRunner(data=table, **given).run(str(folder), progress=False, in_process=True)


@pytest.fixture(scope="module")
def pooled(tmp_path_factory: pytest.TempPathFactory, _few_rounds: None) -> RunResult:
    """A run with two customers of too few rows, one of whom has enough to be measured by."""
    frames = {name: numbers(seed) for seed, name in enumerate(CUSTOMERS)}
    few = {"few": numbers(9, 12), "three": numbers(9, 3)}
    return search(tmp_path_factory.mktemp("pooled") / "run", {**frames, **few})


def test_who_has_too_few_rows_is_answered_by_the_pool_and_its_row_says_so(pooled: RunResult) -> None:
    rows = {row["customer"]: row for row in pooled.board()}
    for name in ("few", "three"):
        assert (rows[name]["status"], rows[name]["model"]) == ("pool", "pool")
        assert "fewer than min_rows: 20" in str(rows[name]["reason"])
        assert ("in the typical customer's unit" in texts(rows[name]["notes"])) == (name == "three")
        assert rows[name]["test_score"] is None
    assert rows["c1"]["status"] == "ok"
    said = pooled.model("few").predict(numbers(9)[["a", "b"]])
    assert abs(np.median(said) - 90) < 10, "measured by its own rows"
    typical = pooled.model("three").predict(numbers(9)[["a", "b"]])
    assert abs(np.median(typical) - 20) < 10, "measured as the typical customer is"
    page = customer_page(pooled, "few")
    assert "pool answers, as there is no own model: 12 rows with a target, fewer than min_rows: 20; " in page


def test_whom_nobody_has_seen_is_answered_as_the_typical_customer(pooled: RunResult) -> None:
    unseen = numbers(2)[["a", "b"]]
    model = pooled.model("nobody")
    assert repr(model) == "<pool model of customer 'nobody': regression from 2 columns>"
    assert np.corrcoef(model.predict(unseen), unseen["a"])[0, 1] > 0.9
    np.testing.assert_array_equal(model.predict(unseen), pooled.model("three").predict(unseen))
    rows = pd.concat([unseen.assign(who="c1"), unseen.assign(who="new"), unseen.assign(who="few")])
    answers = pooled.predict(rows)
    assert answers["prediction"].notna().all()
    assert (answers.attrs["without"], sorted(answers.attrs["pooled"])) == ({}, ["few", "new"])
    between = pooled.predict(rows, interval=0.8)
    assert between["prediction"].equals(answers["prediction"])
    assert between["prediction_low"].isna().tolist() == (rows["who"] != "c1").tolist()
    assert between.attrs["without_interval"] == 2 * len(unseen)
    with pytest.raises(RunError, match="the run's pool answers, without intervals"):
        model.predict(unseen, interval=0.8)


@pytest.mark.long
def test_counts_and_exit_codes_tell_own_models_from_answers_of_the_pool(pooled: RunResult, tmp_path: Path) -> None:
    counts = pooled.summary()
    assert (counts["customers"], counts["succeeded"], counts["pooled"], counts["without_model"]) == (7, 5, 2, 0)
    assert counts["verdicts"]["pool"] == 2
    first, *_ = sentences(pooled, counts)
    assert first.startswith("5 of 7 customers have a model of their own")
    assert "; 2 answered by the pool; " in first
    rows = numbers(2)[["a", "b"]].assign(who="new")
    rows.to_csv(tmp_path / "new.csv", index=False)
    ran = CliRunner().invoke(main, ["predict", pooled.directory.shown, "--data", str(tmp_path / "new.csv")])
    assert ran.exit_code == 0, ran.output
    assert "the run's pool predicts the rows of 1 customer without an own model: 'new'" in ran.stderr
    asked = ["--data", str(tmp_path / "new.csv"), "--interval", "0.8"]
    single = CliRunner().invoke(main, ["predict", pooled.directory.shown, *asked])
    batch = CliRunner().invoke(
        main, ["predict", "--run", pooled.directory.shown, *asked, "--output", str(tmp_path / "out")]
    )
    for one in (single, batch):
        assert one.exit_code == 0, one.output
        assert f"{len(rows)} of {len(rows)} predictions without an interval: the pool's, a constant's" in one.stderr
    assert "nan" not in (tmp_path / "out" / "new.csv").read_text()
    told = CliRunner().invoke(main, ["show", pooled.directory.shown, "few"])
    assert "the run's pool answers, as there is no own model" in told.stdout
    assert not customers_without(pooled), "a page that lists failures has none of these"
    shown = CliRunner().invoke(main, ["leaderboard", pooled.directory.shown])
    assert [line.split()[:3] for line in shown.stdout.splitlines() if line.startswith(("few", "three"))] == [
        ["few", "pool", "pool"],
        ["three", "pool", "pool"],
    ]


def test_the_service_predicts_rows_of_somebody_unseen_and_says_whose_they_are(
    pooled: RunResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"a": 0.5, "b": 0.1, "who": "new"}, {"a": 0.5, "b": 0.1, "who": "c1"}]
    run = str(Path(pooled.directory.shown).resolve())
    monkeypatch.chdir(tmp_path)
    Path(ROWS_JSON).write_text(json.dumps({"rows": rows}))
    write_predictions(lambda file: RunResult(run).predicted(file), 10, "keep")
    found = json.loads(Path(ANSWER).read_text())
    assert (found["pooled"], found["without"]) == (["new"], {})
    assert [row["prediction"] is not None for row in found["rows"]] == [True, True]


def test_a_single_class_and_a_search_that_breaks_are_answered_too(tmp_path: Path) -> None:
    frames = {name: classes(seed) for seed, name in enumerate(CUSTOMERS)}
    one = classes(7).assign(y="no")
    result = search(tmp_path / "run", {**frames, "one": one}, models=["knn"])
    row = next(row for row in result.board() if row["customer"] == "one")
    assert (row["status"], row["model"]) == ("pool", "pool")
    assert row["reason"].code is DataCode.TARGET_CONSTANT
    model = result.model("one")
    proba = model.predict_proba(classes(7)[["a", "b"]])
    assert list(model.classes_) == ["no", "yes"]
    typical = result.model("nobody").predict_proba(classes(7)[["a", "b"]])
    assert proba[:, 1].mean() < typical[:, 1].mean(), "its own rows know no yes"


def test_a_search_without_a_finished_trial_is_answered_by_the_pool(tmp_path: Path) -> None:
    frames = {name: numbers(seed) for seed, name in enumerate(CUSTOMERS)}
    (tmp_path / "odd.py").write_text(
        "import numpy as np\n"
        "def odd(y_true, y_pred):\n"
        "    if np.median(y_true) > 500:\n"
        "        raise OSError('no such metric')\n"
        "    return -float(np.abs(y_true - y_pred).mean())\n"
    )
    broken = numbers(3).assign(y=lambda frame: frame["y"] + 1000)
    result = search(tmp_path / "run", {**frames, "broken": broken}, metric=f"{tmp_path / 'odd.py'}:odd", mode="max")
    row = next(row for row in result.board() if row["customer"] == "broken")
    assert (row["status"], row["model"]) == ("pool", "pool")
    assert "no such metric" in str(row["reason"])
    assert abs(np.median(result.model("broken").predict(broken)) - 1030) < 10
    assert result.summary()["succeeded"] == 5


def test_who_lacks_the_pools_columns_or_has_other_classes_stays_without_a_model(tmp_path: Path) -> None:
    frames = {name: classes(seed) for seed, name in enumerate(CUSTOMERS)}
    others = {"maybe": classes(7, 12).assign(y="maybe"), "text": classes(8, 12).assign(a="x")}
    run = TuneRunner(
        data={**frames, **others}, target="y", trials=1, algorithm="random", scheduler="fifo", models=["knn"],
        mlflow=False, report=False, pool="on", min_rows=20,
    ).run(str(tmp_path / "run"), progress=False, in_process=True)  # fmt: skip
    rows = {row["customer"]: row for row in run.board()}
    assert (rows["maybe"]["status"], rows["maybe"]["model"]) == ("no_model", None)
    (note,) = (note for note in rows["maybe"]["notes"] if note.code is PoolCode.POOL_NOT_ASKED)
    assert note.values["why"].code is PoolCode.POOL_OTHER_CLASSES
    assert rows["text"]["status"] == "no_model"
    assert PoolCode.POOL_NOT_ASKED in {note.code for note in rows["text"]["notes"]}


def test_without_a_pool_the_reason_stays_and_nobody_unknown_is_answered(tmp_path: Path) -> None:
    frames = {"c0": numbers(0), "few": numbers(9, 12)}
    result = search(tmp_path / "run", frames, pool="off")
    row = next(row for row in result.board() if row["customer"] == "few")
    assert (row["status"], row["model"], row["notes"]) == ("no_model", None, [])
    assert result.summary()["pooled"] == 0
    first, *_ = sentences(result, result.summary())
    assert first.startswith("1 of 2 customers has a model")
    assert "; 1 without; " in first
    with pytest.raises(UnknownCustomerError):
        result.model("nobody")
    auto = search(tmp_path / "auto", frames, pool="auto")
    with pytest.raises(UnknownCustomerError):
        auto.model("nobody")


def test_new_rows_of_somebody_unseen_go_through_prepare(tmp_path: Path) -> None:
    (tmp_path / "ready.py").write_text("def ready(frame):\n    return frame.assign(c=frame['a'] + frame['b'])\n")
    frames = {name: numbers(seed) for seed, name in enumerate(CUSTOMERS)}
    result = search(tmp_path / "run", frames, prepare=f"{tmp_path / 'ready.py'}:ready")
    unseen = numbers(2)[["a", "b"]].assign(who="new")
    assert np.isfinite(result.model("new").predict(unseen)).all()
    assert [column.name for column in result.model("new").columns] == ["a", "b", "c"]


def test_a_level_is_typical_of_all_customers() -> None:
    levels = [TargetScale(0.0, 1.0), TargetScale(10.0, 2.0), TargetScale(1000.0, 9.0)]
    assert TargetScale.typical(levels) == TargetScale(10.0, 2.0)
    assert TargetScale.typical(
        [TargetScale(shares=(0.2, 0.8)), TargetScale(shares=(0.6, 0.4))]
    ).shares == pytest.approx((0.4, 0.6))
