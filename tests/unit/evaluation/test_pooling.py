"""The pool: what it may see, what can pass from one customer to another, who is left out, and where it is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from shown_output import codes_of

from tuning import RunResult, TuneRunner
from tuning.definition.definition import define
from tuning.errors import CustomerError, PlanError, RunError, StorageError
from tuning.evaluation.fleet import drawn_weights
from tuning.evaluation.pooling import PoolRows, fitted_pool, pooled_answers
from tuning.evaluation.study_data import StudyData, study_data
from tuning.models.customer_model import load_model
from tuning.models.model_files import saved_files
from tuning.models.pooled import RunPool, TargetScale
from tuning.notes import PlanCode, PoolCode
from tuning.preprocessing.task import REGRESSION, Task
from tuning.records.schema import StudyRecord
from tuning.runs.pool_file import read_pool
from tuning.storage.run_directory import RunDirectory

Rows = Callable[[int], pd.DataFrame]
FEW = {"catboost": {"iterations": 40, "learning_rate": 0.2, "depth": 4}}


@pytest.fixture(autouse=True)
def _few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuning.models.pooled.BOOSTERS", FEW)
    monkeypatch.setattr("tuning.evaluation.pooling.BOOSTERS", FEW)


def numbers(seed: int, count: int = 40) -> pd.DataFrame:
    """What is alike for all customers but for its unit and its level."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.uniform(-2, 2, size=(count, 3)), columns=["a", "b", "c"])
    y = np.sin(2 * frame["a"]) * frame["b"] + (frame["c"] > 0) * frame["b"] + rng.normal(scale=0.2, size=count)
    return frame.assign(kind=rng.choice(["x", "y"], count), y=10.0 ** (seed % 4) * (y + seed))


def classes(seed: int, count: int = 60) -> pd.DataFrame:
    """Two classes that no column tells, more or less often."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(count, 2)), columns=["a", "b"])
    return frame.assign(y=np.where(np.arange(count) % 10 < 1 + 4 * (seed % 2), "yes", "no"))


def prepared(frame: pd.DataFrame, task: str = "regression", seed: int = 3, **fields: Any) -> StudyData:
    definition = define({"data": "x.csv", "target": "y", "pool": "on", **fields})
    return study_data(frame, definition, task, seed)


def pool_of_some(data: dict[str, StudyData]) -> RunPool:
    return fitted_pool({name: PoolRows.of(each) for name, each in data.items()}, {}, 0)


def with_target(data: StudyData, rows: np.ndarray, value: float) -> StudyData:
    y = data.y.copy()
    y[rows] = value
    return replace(data, y=y)


def test_a_fold_of_the_pool_has_seen_neither_that_folds_rows_nor_a_hold_out_of_anybody() -> None:
    data = {f"c{seed}": prepared(numbers(seed)) for seed in range(4)}
    pool = pool_of_some(data)
    first = {name: each.split.search[each.split.folds[0][1]] for name, each in data.items()}
    assert [each.whole.form for each in pool.forms] == ["pool", "pool_linear"]

    def said(other: RunPool, form: int, number: int) -> np.ndarray:
        found = other.forms[form]
        model = found.folds[number] if number < 3 else found.whole
        member = model.member(TargetScale(0.0, 1.0))
        data_rows = data["c0"].rows
        assert data_rows is not None
        return member.prediction(member.encoded(member.raw(data_rows)), Task(REGRESSION)).values

    hidden = pool_of_some({name: with_target(each, each.split.test, 1e6) for name, each in data.items()})
    for form in range(2):
        assert [np.array_equal(said(hidden, form, k), said(pool, form, k)) for k in range(4)] == [True] * 4
    changed = pool_of_some({name: with_target(each, first[name], each.y.max()) for name, each in data.items()})
    for form in range(2):
        equal = [np.array_equal(said(changed, form, k), said(pool, form, k)) for k in range(4)]
        assert equal == [True, False, False, False]


def test_what_it_says_of_left_out_rows_is_in_the_customers_units_and_near_the_truth() -> None:
    data = {f"c{seed}": prepared(numbers(seed)) for seed in range(8)}
    pool = pool_of_some(data)
    for name, each in data.items():
        found = pooled_answers(pool, each, name)[0]
        said = np.concatenate(found.folds)
        true = np.concatenate([each.y[each.split.search[unseen]] for _, unseen in each.split.folds])
        assert np.sqrt(np.mean((said - true) ** 2)) < 0.8 * true.std(), name
        assert len(found.prediction.values) == len(each.split.test)


def test_classes_begin_at_a_customers_own_shares() -> None:
    data = {f"c{seed}": prepared(classes(seed), "binary") for seed in range(10)}
    pool = pool_of_some(data)
    for name, each in data.items():
        found = pooled_answers(pool, each, name)[0]
        proba = np.concatenate(found.folds)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        share = float(np.mean(np.concatenate([each.y[each.split.search[unseen]] for _, unseen in each.split.folds])))
        assert abs(proba[:, 1].mean() - share) < 0.12, (name, share)


@pytest.mark.parametrize(("make", "task"), [(numbers, "regression"), (classes, "binary")])
def test_without_catboost_xgboost_is_trained_of_the_same(
    make: Rows, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {"xgboost": {"n_estimators": 20, "max_depth": 3}}
    monkeypatch.setattr("tuning.models.pooled.BOOSTERS", few)
    monkeypatch.setattr("tuning.evaluation.pooling.BOOSTERS", few)
    data = {f"c{seed}": prepared(make(seed), task) for seed in range(6)}
    pool = pool_of_some(data)
    assert pool.whole is not None
    assert pool.whole.family == "xgboost"
    for name, each in data.items():
        found = pooled_answers(pool, each, name)[0]
        said = np.concatenate(found.folds)
        if task == "binary":
            assert abs(said[:, 1].mean() - each.y.mean()) < 0.15
        else:
            assert each.y.min() - 3 * each.y.std() < said.min() <= said.max() < each.y.max() + 3 * each.y.std()


def test_three_classes_of_which_a_fold_lacks_one() -> None:
    rng = np.random.default_rng(0)
    frames = {f"c{n}": pd.DataFrame({"a": rng.normal(size=60), "y": ["p", "q", "r"] * 20}) for n in range(3)}
    data = {name: prepared(frame, "multiclass") for name, frame in frames.items()}
    for found in pooled_answers(pool_of_some(data), data["c0"], "c0"):
        assert found.folds[0].shape[1] == 3


def test_who_is_not_like_the_others_is_left_out_with_the_reason_and_moves_nobody() -> None:
    data = {f"c{seed}": prepared(numbers(seed)) for seed in range(5)}
    constant = numbers(5).assign(y=[1.0] * 30 + list(range(10)))
    huge = numbers(6).assign(y=lambda rows: rows["y"] * 1e34)
    other = numbers(7).rename(columns={"a": "z"})
    text = numbers(8).assign(a="north " + numbers(8)["kind"])
    strange = {"flat": prepared(constant), "huge": prepared(huge), "other": prepared(other), "text": prepared(text)}
    alone, together = pool_of_some(data), pool_of_some({**data, **strange})
    assert together.left_out.keys() == strange.keys()
    assert together.left_out["flat"].code is PoolCode.POOL_NO_SPREAD
    assert together.left_out["other"].code is PoolCode.POOL_OTHER_COLUMNS
    for name, each in data.items():
        for one, two in zip(pooled_answers(alone, each, name), pooled_answers(together, each, name), strict=True):
            np.testing.assert_array_equal(np.concatenate(one.folds), np.concatenate(two.folds))
    with pytest.raises(CustomerError, match="columns are missing: 'a'"):
        pooled_answers(together, strange["other"], "other")


def test_who_has_no_width_only_with_its_hold_out_is_left_out_and_costs_nobody_the_pool() -> None:
    data = {f"c{seed}": prepared(numbers(seed)) for seed in range(4)}
    flat = prepared(numbers(5))
    y = np.zeros(len(flat.y))  # the hold-out among them; with it more than half of all rows
    for _, unseen in flat.split.folds:
        rows = flat.split.search[unseen]
        y[rows[:3]], y[rows[3:6]] = -1.0, 1.0
    together = pool_of_some({**data, "flat": replace(flat, y=y)})
    assert together.left_out["flat"].code is PoolCode.POOL_NO_SPREAD
    assert together.customers.keys() == data.keys()


def test_a_large_customer_brings_a_thousand_rows_and_an_odd_target_six_ranges() -> None:
    large, small = prepared(numbers(0, 3_000)), prepared(numbers(1))
    taken: list[tuple[int, float]] = []
    from tuning.models.families.catboost import CatBoostFamily

    before = CatBoostFamily.fit

    def fit(self: CatBoostFamily, config: Any, train: Any, *given: Any) -> Any:
        taken.append((len(train.y), float(np.abs(train.y).max())))
        return before(self, config, train, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CatBoostFamily, "fit", fit)
        pool_of_some({"large": with_target(large, large.split.search[:1], 1e9), "small": small})
    *_, whole, final = taken
    assert whole == (1_000 + len(small.split.search), 6.0)
    assert final == (1_250 + len(small.y), 6.0)


def test_rows_that_are_not_those_of_the_training_are_asked_nothing() -> None:
    data = {f"c{seed}": prepared(numbers(seed)) for seed in range(3)}
    pool = pool_of_some(data)
    with pytest.raises(CustomerError, match="other rows of this customer"):
        pooled_answers(pool, prepared(numbers(0), seed=4), "c0")
    assert len(pooled_answers(pool, prepared(numbers(9)), "new")) == 2, "whom it has never seen can ask all of it"


def lines(seed: int, count: int = 40) -> pd.DataFrame:
    """A plane that is the same for all customers but for its height, which a linear model of all rows finds."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(count, 4)), columns=[*"abcd"])
    return frame.assign(y=frame[[*"abcd"]].sum(axis=1) + 3.0 * seed + rng.normal(scale=0.3, size=count))


@pytest.mark.parametrize("shift", [0.0, 400.0])
def test_the_linear_form_knows_each_customers_effect_and_predicts_for_others_too(shift: float) -> None:
    data = {f"c{seed}": prepared(lines(seed).assign(y=lambda rows: rows["y"] + shift)) for seed in range(6)}
    pool = pool_of_some(data)
    for name, each in {**data, "new": prepared(lines(9).assign(y=lambda rows: rows["y"] + shift))}.items():
        booster, linear = pooled_answers(pool, each, name)
        true = each.y[each.split.test]
        errors = [float(np.abs(found.prediction.values - true).mean()) for found in (booster, linear)]
        assert errors[1] < (1.0 if name == "new" else 0.8) * errors[0], name


def test_a_customers_weights_are_drawn_to_the_fleets_the_more_the_fewer_its_rows() -> None:
    own, fleet = np.array([1.0, 0.0, 0.0]), np.array([0.2, 0.5, 0.3])
    np.testing.assert_allclose(drawn_weights(own, fleet, 100), [0.6, 0.25, 0.15])
    few, many = drawn_weights(own, fleet, 10), drawn_weights(own, fleet, 100_000)
    assert few[0] < 0.35
    assert many[0] > 0.999


# --- in a run ----------------------------------------------------------------------------------


def runner(frames: dict[str, pd.DataFrame], **fields: Any) -> TuneRunner:
    given = {
        "target": "y",
        "models": ["ridge", "knn"],
        "trials": 4,
        "algorithm": "random",
        "mlflow": False,
        "report": False,
    }
    return TuneRunner(data=frames, **{**given, **fields})


def ran(frames: dict[str, pd.DataFrame], run: Path, **fields: Any) -> RunResult:
    return runner(frames, **fields).run(run, progress=False, in_process=True)


def fold_scores(result: RunResult) -> dict[str, float]:
    """What each customer's model scores on its folds."""
    scores = {each.customer: (each.ensemble_score, each.cv_score) for each in result.study_records}
    return {name: alone if together is None else together for name, (together, alone) in scores.items() if alone}


def hostile(seed: int) -> pd.DataFrame:
    """More rows than all others, whose target says the opposite, in jumps, and whose cells are odd."""
    frame = numbers(seed, 250)
    y = -frame["y"].to_numpy()
    y[::7] *= 1e12
    frame.loc[::5, "b"] = np.inf
    frame.loc[::3, "c"] = -1e300
    return frame.assign(y=y)


@pytest.mark.long
def test_a_hostile_customer_with_more_rows_than_all_others_costs_nobody_a_tenth(tmp_path: Path) -> None:
    frames = {f"c{seed}": numbers(seed) for seed in range(5)}
    without = fold_scores(ran(frames, tmp_path / "without"))
    with_it = ran({**frames, "enemy": hostile(9)}, tmp_path / "with", pool="on")
    pool = read_pool(RunDirectory(tmp_path / "with"))
    assert pool is not None
    assert "enemy" in pool.customers
    found = fold_scores(with_it)
    assert [found[name] <= 1.1 * score for name, score in without.items()] == [True] * 5
    assert sum(found[name] <= score for name, score in without.items()) >= 2


def of_members(record: StudyRecord) -> set[str | None]:
    """The families of a model's own trials, and None for the pool."""
    members = json.loads(record.ensemble or "[]")
    return {None if each["trial"] is None else each["family"] for each in members}


@pytest.mark.long
def test_a_model_refers_to_the_pool_and_takes_it_along_wherever_it_goes(tmp_path: Path) -> None:
    frames = {f"c{seed}": lines(seed, 150).assign(kind=numbers(seed, 150)["kind"]) for seed in range(6)}
    result = ran(frames, tmp_path / "run", pool="on", models=["ridge"])
    record = next(each for each in result.study_records if {"ridge", None} <= of_members(each))
    assert "pool" in result.leaderboard().set_index("customer")["model"][record.customer]
    model, rows = result.model(record.customer), frames[record.customer]
    folder = tmp_path / "run" / str(record.model_path)
    assert sorted(path.name.partition("-")[2] for path in folder.iterdir() if path.name != "model.json") == [
        "model.skops"
    ]
    assert len(list((tmp_path / "run" / "pool").glob("*.cbm"))) == 5
    assert len(list((tmp_path / "run" / "pool").glob("*.skops"))) == 5

    taken = tmp_path / "taken" / "model"
    taken.mkdir(parents=True)
    for file in saved_files(result.directory, str(record.model_path), record.model_sha256):
        (taken / file.name).write_bytes(file.content)
    outside = load_model(RunDirectory(tmp_path / "taken"), "model", record.model_sha256)
    np.testing.assert_array_equal(outside.predict(rows), model.predict(rows))
    next(taken.glob("pool*-*")).write_bytes(b"another model")
    with pytest.raises(RunError, match="is damaged"):
        load_model(RunDirectory(tmp_path / "taken"), "model", record.model_sha256)
    importance = result.customer(record.customer).importance()
    assert set(importance["column"]) == {"a", "b", "c", "d", "kind"}


@pytest.mark.long
def test_without_a_pool_nothing_of_it_is_there_and_auto_says_why(tmp_path: Path) -> None:
    frames = {f"c{seed}": numbers(seed) for seed in range(2)}
    ran(frames, tmp_path / "off", pool="off", trials=1)
    assert not (tmp_path / "off" / "pool").exists()
    (note,) = [note for note in runner(frames, pool="auto").plan().notes if note.code is PlanCode.POOL_OFF_HERE]
    assert str(note) == "pool: auto is off here: 2 customers, fewer than 20."
    ran(frames, tmp_path / "auto", pool="auto", trials=1)
    pool = read_pool(RunDirectory(tmp_path / "auto"))
    assert pool == RunPool(PoolCode.POOL_SMALL_RUN(customers=2, least=20))
    with pytest.raises(PlanError, match="pool: on asks for"):
        runner(frames, pool="on", ensemble="none").plan()
    many = {f"c{seed}": numbers(seed, 20) for seed in range(20)}
    assert PlanCode.POOL_OFF_HERE not in codes_of(runner(many, pool="auto").plan())
    assert PlanCode.POOL_OFF_HERE not in codes_of(runner(many, pool="off").plan())
    for number in range(3):  # of 20 customers three have other columns, so that too few are alike
        many[f"c{number}"] = many[f"c{number}"].rename(columns={"a": "first", "b": "second"})
    result = runner(many, pool="auto").run(tmp_path / "unlike", progress=False, in_process=True)
    assert result.summary()["without_pool"] == PoolCode.POOL_FEW_CUSTOMERS(customers=17, least=20).to_dict()


def test_a_damaged_pool_is_said_and_not_asked(tmp_path: Path) -> None:
    ran({f"c{seed}": numbers(seed) for seed in range(2)}, tmp_path / "run", pool="on", trials=1)
    directory = RunDirectory(tmp_path / "run")
    path = next((tmp_path / "run" / "pool").glob("*.cbm"))
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(StorageError, match="is not what the run has written"):
        read_pool(directory)
    with pytest.raises(StorageError, match="is not what the run has written"):  # before any worker begins
        TuneRunner.resume(tmp_path / "run", progress=False, in_process=True, trials=2)
    path.write_bytes(content)
    assert TuneRunner.resume(tmp_path / "run", progress=False, in_process=True, trials=2).unfinished == 0


def exits(rows: pd.DataFrame) -> pd.DataFrame:
    """A `prepare` that ends its process for one customer."""
    if "odd" in rows:
        os._exit(0)
    return rows


def test_a_prepare_that_ends_its_process_costs_its_customer_alone_while_the_pool_is_trained(tmp_path: Path) -> None:
    frames = {f"c{seed}": numbers(seed) for seed in range(3)} | {"bad": numbers(3).assign(odd=1.0)}
    found = ran(frames, tmp_path / "run", prepare=f"{__name__}:exits", pool="on")
    board = found.leaderboard().set_index("customer")
    assert dict(board["status"][["c0", "c1", "c2"]]) == dict.fromkeys(["c0", "c1", "c2"], "ok")
    assert board["status"]["bad"] != "ok"
