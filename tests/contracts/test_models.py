"""Every model family keeps the same promises; a new file in tuning/models/families is tested here without a change."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import model_cases
import numpy as np
import pandas as pd
import pytest
from model_cases import CASES, CHANGED, PLAIN, STEPPED, data_of, make_data, make_frame
from prepared_rows import prepare_data
from sklearn.metrics import get_scorer

from search_spaces import presets
from tuning.evaluation.metrics import DEFAULT_METRIC, Metric
from tuning.evaluation.study_data import StudyData, full_steps, train
from tuning.models.base import EncodedRows, Stage, SteppedFamily
from tuning.models.customer_model import CustomerModel
from tuning.models.member import Member
from tuning.models.registry import families
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task
from tuning.storage.run_directory import RunDirectory


def short(name: str) -> dict[str, Any]:
    """A configuration with two and a half steps where the family has an axis, and defaults for the rest."""
    family = families()[name]
    if not isinstance(family, SteppedFamily):
        return {"model": name}
    return {"model": name, family.length: 2 * family.step_length + family.step_length // 2}


def scores_of(name: str, data: StudyData, state: Any = None, seed: int = 5, **params: Any) -> list[tuple[float, ...]]:
    metric = Metric(PLAIN[data.task.kind], data.task)
    return [step.fold_scores for step in train({**short(name), **params}, data, metric, seed, state)]


@pytest.mark.parametrize(("name", "task"), [case for case in CASES if case[0] != "constant"])
def test_a_family_learns_and_takes_all_its_steps(name: str, task: str) -> None:
    data = data_of(task)
    metric = Metric(PLAIN[task], data.task)
    steps = list(train(short(name), data, metric, seed=5))
    assert [step.step for step in steps] == list(range(1, full_steps(short(name), data) + 1))
    assert np.isfinite([step.score for step in steps]).all()
    assert len(steps[-1].fold_scores) == len(data.split.folds)
    constants = []
    for rows, unseen in data.folds(families()[name]):
        answer = (
            Prediction(np.full(len(unseen.y), np.median(rows.y)))
            if task == REGRESSION
            else Prediction(
                np.full(len(unseen.y), np.bincount(rows.y.astype(int)).argmax()),
                np.tile(np.full(len(data.task.classes), 1 / len(data.task.classes)), (len(unseen.y), 1)),
            )
        )
        constants.append(metric.score(unseen.y, answer))
    if task == REGRESSION:
        assert steps[-1].score < 0.9 * np.mean(constants)
    else:
        assert steps[-1].score > np.mean(constants) + 0.1 * abs(np.mean(constants))


@pytest.mark.parametrize(("name", "task"), CASES)
def test_the_same_seed_gives_the_same_scores_and_the_final_fit_the_same_model(name: str, task: str) -> None:
    data, family = data_of(task), families()[name]
    first = list(itertools.islice(iter(scores_of(name, data)), 3))
    scores_of(name, data, seed=6)  # another trial in between must not matter
    again = scores_of(name, make_data(make_frame(task), task))  # nothing cached
    assert again[: len(first)] == first
    rows, unseen = data.folds(family)[0]
    steps = 2 if isinstance(family, SteppedFamily) else None
    score = Metric(PLAIN[task], data.task).score(
        unseen.y, family.predict(family.fit({}, rows, data.task, 5, steps), unseen, data.task)
    )
    expected = again[1 if steps else 0][0]
    assert score == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("name", "task"), CASES)
def test_probabilities_are_probabilities(name: str, task: str) -> None:
    data, family = data_of(task), families()[name]
    rows, unseen = data.folds(family)[0]
    answer = family.predict(family.fit({}, rows, data.task, 5, 1), unseen, data.task)
    assert answer.values.shape == (len(unseen.y),)
    if task == REGRESSION:
        assert answer.proba is None
        return
    assert set(answer.values) <= set(range(len(data.task.classes)))
    assert (answer.proba is not None) == family.probabilities({})
    if answer.proba is not None:
        assert answer.proba.shape == (len(unseen.y), len(data.task.classes))
        assert np.allclose(answer.proba.sum(axis=1), 1)
        assert (answer.proba >= 0).all()
        assert np.isfinite(Metric(DEFAULT_METRIC[task], data.task).score(unseen.y, answer))


# The models of the others are no estimators of scikit-learn.
NO_ESTIMATORS = ("catboost", "lightgbm", "xgboost", "xgboost_ray")
SCORED = [(name, task, {}) for name, task in CASES if task != REGRESSION and name not in NO_ESTIMATORS]
SCORED += [("sgd", task, {"loss": "modified_huber"}) for task in (BINARY, MULTICLASS)]


@pytest.mark.parametrize(("name", "task", "config"), SCORED)
def test_a_score_is_that_of_scikit_learns_scorer(name: str, task: str, config: dict[str, Any]) -> None:
    """Also where its scorer prefers decision values to probabilities, which order rows otherwise."""
    data, family = data_of(task), families()[name]
    rows, unseen = data.folds(family)[0]
    model = family.fit(config, rows, data.task, 5, 2)
    answers = [family.predict(model, unseen, data.task)]
    if isinstance(family, SteppedFamily) and not config:
        answers += [step for step, _ in itertools.islice(family.grow({}, rows, unseen, data.task, 5), 1, 2)]
    for scorer in ("average_precision", "roc_auc" if task == BINARY else "top_k_accuracy"):
        expected = get_scorer(scorer)(model, unseen.X, unseen.y)
        for answer in answers:
            assert Metric(scorer, data.task).score(unseen.y, answer) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("name", "task"), CASES)
@pytest.mark.parametrize("weighted", [False, True])
def test_a_class_missing_in_the_training_rows(name: str, task: str, weighted: bool) -> None:
    family = families()[name]
    rng = np.random.default_rng(1)
    X = rng.normal(size=(12, 3))
    kind = Task(task, () if task == REGRESSION else ("p", "q", "r")[: 2 if task == BINARY else 3])
    y = rng.normal(size=12) if task == REGRESSION else np.ones(12, dtype=int)
    if task == MULTICLASS:
        y[6:] = 2
    weight = rng.uniform(0.5, 2, 12) if weighted else None
    rows, unseen = EncodedRows(X, y, weight), EncodedRows(rng.normal(size=(5, 3)), y[:5])
    answers = [family.predict(family.fit({}, rows, kind, 0, 1), unseen, kind)]
    if isinstance(family, SteppedFamily):
        answers += [step for step, _ in itertools.islice(family.grow({}, rows, unseen, kind, 0), 2)]
        answers.append(family.predict(family.fit_stages([Stage({}, 0, 2)], rows, kind), unseen, kind))
    for answer in answers:
        assert np.isfinite(answer.values).all()
        if answer.proba is not None:
            assert answer.proba.shape == (5, len(kind.classes))
            assert (answer.proba[:, 0] < 0.5).all()
        if task == BINARY:
            assert (answer.values == 1).all()


@pytest.mark.parametrize(("name", "task"), CASES)
def test_a_handful_of_rows_is_enough_not_to_crash(name: str, task: str) -> None:
    target = {REGRESSION: [1.0, 2.5, 3.0, 4.5], BINARY: ["a", "b", "a", "b", "a"], MULTICLASS: [*"abcabc"]}
    frame = pd.DataFrame(
        {"x": [0.1, 0.9, 1e39, 0.8, 0.3, 0.2], "t": ["u", None, "u", "v", "u", "w"]}
    )  # 1e39: beyond float32
    frame = frame.iloc[: len(target[task])].assign(y=target[task])
    with np.errstate(all="ignore"):
        for seed in range(20):
            try:
                data = prepare_data(frame, target="y", task=task, seed=seed, split={"folds": 2})
            except Exception:  # this seed's hold-out leaves a single class: that is told elsewhere
                continue
            family = families()[name]
            params = {key: value for key, value in short(name).items() if key != "model"}
            for rows, unseen in data.folds(family):
                answer = family.predict(family.fit(params, rows, data.task, 5), unseen, data.task)
                assert np.isfinite(answer.values).all()
            return
    raise AssertionError("no seed gave a usable split")


@pytest.mark.parametrize(("name", "task"), STEPPED)
def test_going_on_from_a_state_is_as_if_never_stopped(name: str, task: str) -> None:
    data = data_of(task)
    expected = scores_of(name, data)
    metric = Metric(PLAIN[task], data.task)
    donor = train(short(name), data, metric, 5)
    for step in donor:
        if step.step == 2:
            state = step.get_state()
            break
    for _ in donor:
        pass  # the donor goes on; what it handed out must not change
    assert scores_of(name, data, state) == expected[2:]
    assert scores_of(name, data, state) == expected[2:], "the state was changed by the trial that used it"
    fresh = make_data(make_frame(task), task)
    assert scores_of(name, fresh, state) == expected[2:], "the state holds only in the process that made it"


@pytest.mark.parametrize("name", sorted({name for name, _ in STEPPED}))
def test_a_family_that_says_so_goes_on_exactly_whatever_is_drawn(name: str) -> None:
    data, family, rng = data_of(BINARY), families()[name], np.random.default_rng(1)
    assert isinstance(family, SteppedFamily)
    metric, space = Metric(PLAIN[BINARY], data.task), presets.load(name, BINARY)
    for config in ({**space.sample(rng), **short(name)} for _ in range(3)):
        whole = [{**config, "colsample_bytree": 1.0, "subsample": 1.0}] if name.startswith("xgboost") else []
        for each in (config, *whole):
            steps = list(train(each, data, metric, 5))
            if family.exact(each):
                state = next(train(each, data, metric, 5)).get_state()
                again = [step.fold_scores for step in train(each, data, metric, 5, state)]
                assert again == [step.fold_scores for step in steps[1:]], each
        assert not whole or family.exact(whole[0])


@pytest.mark.parametrize(("name", "task"), STEPPED)
def test_a_refit_along_one_stage_is_the_plain_fit_and_along_two_the_way_that_was_scored(name: str, task: str) -> None:
    data, family = data_of(task), families()[name]
    assert isinstance(family, SteppedFamily)
    rows, unseen = data.folds(family)[0]
    plain = {key: value for key, value in short(name).items() if key != "model"}
    one = family.predict(family.fit_stages([Stage(plain, 5, 2)], rows, data.task), unseen, data.task)
    same = family.predict(family.fit(plain, rows, data.task, 5, 2), unseen, data.task)
    assert np.allclose(one.values, same.values)
    assert one.proba is None or np.allclose(one.proba, same.proba)
    metric = Metric(PLAIN[task], data.task)
    state = next(train(short(name), data, metric, 5)).get_state()
    scored = next(train({**short(name), **CHANGED[name]}, data, metric, 6, state)).fold_scores[0]
    two = family.fit_stages([Stage(plain, 5, 1), Stage({**plain, **CHANGED[name]}, 6, 2)], rows, data.task)
    again = family.load(*family.save(two))
    assert metric.score(unseen.y, family.predict(again, unseen, data.task)) == pytest.approx(scored, rel=1e-6)


@pytest.mark.parametrize(("name", "task"), [case for case in STEPPED if case[1] != MULTICLASS])
def test_an_exploit_goes_on_with_other_hyperparameters(name: str, task: str) -> None:
    data = data_of(task)
    metric = Metric(PLAIN[task], data.task)
    state = next(train(short(name), data, metric, 5)).get_state()
    same = scores_of(name, data, state)
    other = scores_of(name, data, state, **CHANGED[name])
    assert len(other) == len(same)
    assert other[-1] != same[-1]


def test_every_family_alone_and_all_together_survive_saving_and_loading_in_a_fresh_process(tmp_path: Path) -> None:
    directory = RunDirectory(str(tmp_path))
    expected = {}
    members: dict[str, list[Member]] = {REGRESSION: [], BINARY: [], MULTICLASS: []}
    for name, task in CASES:
        frame, data, family = make_frame(task), data_of(task), families()[name]
        encoder, rows, _ = data.whole(family)
        steps = 2 if isinstance(family, SteppedFamily) else None
        fitted = family.fit({}, rows, data.task, 5, steps)
        model = CustomerModel("äcme", data.task, (Member(name, data.columns, encoder, fitted),))
        model.save(directory, f"models/{name}-{task}")
        answer = model.prediction(frame)
        shown = answer.values if answer.proba is None else answer.proba
        expected[f"{name}-{task}"] = [float.hex(float(value)) for value in shown.ravel()]
        frame.to_parquet(tmp_path / f"{task}.parquet")
        if task == REGRESSION or answer.proba is not None:
            members[task].append(replace(model.members[0], weight=1.0 + len(members[task])))
    for task, several in members.items():
        ensemble = CustomerModel("äcme", data_of(task).task, tuple(several))
        ensemble.save(directory, f"models/ensemble-{task}")
        answer = ensemble.prediction(make_frame(task))
        shown = answer.values if answer.proba is None else answer.proba
        expected[f"ensemble-{task}"] = [float.hex(float(value)) for value in shown.ravel()]
        files = {Path(name).name for name in directory.list(f"models/ensemble-{task}")}
        assert len(files) == len(several) + 1, "a file for each member, and model.json"
    (tmp_path / "expected.json").write_text(json.dumps(expected))
    done = subprocess.run(
        [sys.executable, "-c", LOADER, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == []


LOADER = """
import json, pathlib, sys
import pandas as pd
from tuning.models.customer_model import load_model
from tuning.storage.run_directory import RunDirectory
folder = pathlib.Path(sys.argv[1])
different = []
for name, expected in json.loads((folder / "expected.json").read_text()).items():
    model = load_model(RunDirectory(str(folder)), f"models/{name}")
    answer = model.prediction(pd.read_parquet(folder / f"{name.rpartition('-')[2]}.parquet"))
    shown = answer.values if answer.proba is None else answer.proba
    if [float.hex(float(value)) for value in shown.ravel()] != expected:
        different.append(name)
print(json.dumps(different))
"""


def test_the_same_fit_is_the_same_bytes_in_another_process_after_other_models() -> None:
    """What was there before decides addresses in memory, and of which estimators the schema is known."""
    script = "import json, model_cases; print(json.dumps(model_cases.file_digests()))"
    there = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        env={**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": str(Path(model_cases.__file__).parent)},
        text=True,
        timeout=200,
        check=False,
    )
    assert there.returncode == 0, there.stderr
    assert json.loads(there.stdout) == model_cases.file_digests(backwards=True)


@pytest.mark.parametrize(
    ("name", "donor", "other"),
    [
        ("hist_gradient_boosting", {"max_bins": 16}, {"max_bins": 200}),
        ("lightgbm", {"subsample": 0.8}, {"subsample": 0.5}),
        ("lightgbm", {"subsample": 0.5}, {"subsample": 1.0}),
        ("mlp", {"width": 8, "depth": 2}, {"width": 32, "depth": 1}),
        ("sgd", {"average": False}, {"average": True}),
    ],
)
def test_what_cannot_change_while_growing_is_the_donors(
    name: str, donor: dict[str, Any], other: dict[str, Any]
) -> None:
    data = data_of(BINARY)
    state = next(train({**short(name), **donor}, data, Metric("roc_auc", data.task), 5)).get_state()
    assert set(donor) <= families()[name].frozen
    assert scores_of(name, data, state, **other) == scores_of(name, data, state, **donor)


def test_catboost_writes_nothing_but_its_model_which_is_the_same_file_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    catboost = families()["catboost"]
    files = set()
    for _ in range(2):
        data = make_data(make_frame(MULTICLASS), MULTICLASS)
        list(train(short("catboost"), data, Metric("log_loss", data.task), 5))
        files.add(catboost.save(catboost.fit({"iterations": 20}, data.whole(catboost)[1], data.task, 5)))
    assert len(files) == 1
    assert not list(tmp_path.iterdir())
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_boosting_with_sampled_rows_and_columns_does_not_depend_on_who_else_trains(name: str) -> None:
    sampled = {"subsample": 0.7, "colsample_bytree": 0.7}
    data = data_of(REGRESSION)
    metric = Metric(PLAIN[REGRESSION], data.task)
    alone = [step.fold_scores for step in train({**short(name), **sampled}, data, metric, 5)]
    taking_turns = zip(*(train({**short(name), **sampled}, data, metric, seed) for seed in (4, 5, 6)), strict=True)
    assert [second.fold_scores for _, second, _ in taking_turns] == alone
    state = next(train({**short(name), **sampled}, data, metric, 5)).get_state()
    assert scores_of(name, data, state, **sampled) == scores_of(name, data, state, **sampled)
