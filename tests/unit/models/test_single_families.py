"""What single families do that others do not, and what is said where a family's library is not installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from model_cases import data_of

from tuning.errors import RunError
from tuning.evaluation.metrics import Metric
from tuning.models.base import EncodedRows
from tuning.models.customer_model import CustomerModel, load_model
from tuning.models.member import Member
from tuning.models.registry import families
from tuning.preprocessing.task import BINARY, MULTICLASS, REGRESSION, Prediction, Task
from tuning.storage.run_directory import RunDirectory


@pytest.mark.parametrize("task", [BINARY, MULTICLASS])
@pytest.mark.parametrize("name", ["linear_svm", "svm"])
def test_support_vector_machines_have_probabilities_when_asked(name: str, task: str) -> None:
    data, family = data_of(task), families()[name]
    rows, unseen = data.folds(family)[0]
    model = family.load(*family.save(family.fit({"probability": True}, rows, data.task, 5)))
    answer = family.predict(model, unseen, data.task)
    constant = Prediction(answer.values, np.full((len(unseen.y), len(data.task.classes)), 1 / len(data.task.classes)))
    score = Metric("log_loss", data.task).score
    assert score(unseen.y, answer) < score(unseen.y, constant)
    assert family.probabilities({"probability": True})


def test_a_missing_optional_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name in ("catboost", "lightgbm"):
        assert families()[name].missing().endswith(f"pip install 'tuning-service[{name}]'.")
    assert families()["ridge"].missing() == ""


@pytest.mark.parametrize("task", [REGRESSION, MULTICLASS])
def test_catboost_without_anything_to_learn_says_what_is_known_without(task: str) -> None:
    catboost, kind = families()["catboost"], Task(task, () if task == REGRESSION else ("p", "q", "r"))
    y = np.arange(12.0) if task == REGRESSION else np.arange(12) % 2
    rows = EncodedRows(np.full((12, 2), np.nan), y, np.arange(12.0))
    answer = catboost.predict(catboost.load(*catboost.save(catboost.fit({}, rows, kind, 0))), rows, kind)
    if answer.proba is None:
        assert np.allclose(answer.values, np.average(y, weights=rows.weight))
    else:
        assert np.allclose(answer.proba, [30 / 66, 36 / 66, 0])
    same_target = EncodedRows(np.random.default_rng(0).normal(size=(12, 2)), np.full(12, 3.0))
    if task == REGRESSION:
        assert np.allclose(catboost.predict(catboost.fit({}, same_target, kind, 0), same_target, kind).values, 3)


@pytest.mark.parametrize("name", ["catboost", "lightgbm"])
def test_a_model_whose_package_is_not_here_says_how_to_get_it(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, family, directory = data_of(BINARY), families()[name], RunDirectory(str(tmp_path))
    encoder, rows, _ = data.whole(family)
    fitted = family.fit({}, rows, data.task, 5, 1)
    CustomerModel("acme", data.task, (Member(name, data.columns, encoder, fitted),)).save(directory, "models/acme")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(RunError, match=rf"cannot be loaded: .*tuning-service\[{name}\]"):
        load_model(directory, "models/acme")


def test_linear_classes_with_the_same_probability_are_told_apart_as_scikit_learn_does() -> None:
    data = data_of(MULTICLASS)
    sgd = families()["sgd"]
    _, rows, unseen = data.whole(sgd)
    model = sgd.fit({"loss": "modified_huber", "eta0": 0.1}, rows, data.task, 0)
    far = EncodedRows(20 * unseen.X, unseen.y)
    said = sgd.predict(model, far, data.task)
    assert said.proba is not None
    assert (said.values == model.predict(far.X)).all()
    assert (said.values != said.proba.argmax(axis=1)).any()
