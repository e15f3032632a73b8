"""Models after the first of their kind are written by its pattern: what is read must be the model that was written."""

from __future__ import annotations

import io
import json
import math
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, Ridge
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeRegressor

from tuning.errors import RunError
from tuning.models.skops_format import dump_skops, load_skops
from tuning.models.skops_pattern import rewritten


def fitted(kind: type, seed: int) -> BaseEstimator:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(20, 3)), rng.normal(size=20)
    strength = float(rng.uniform(0.1, 2.0))
    options = {LogisticRegression: {"C": strength}, LinearSVC: {"C": strength}, DummyRegressor: {}}
    wanted = options.get(kind, {"max_depth": 2} if kind is DecisionTreeRegressor else {"alpha": strength})
    return kind(**wanted).fit(X, y > 0 if kind in (LogisticRegression, LinearSVC) else y)


def assert_same(one: object, other: object) -> None:
    assert type(one) is type(other)
    assert vars(one).keys() == vars(other).keys()
    for name, value in vars(one).items():
        again = getattr(other, name)
        assert type(again) is type(value), name
        if isinstance(value, np.ndarray):
            assert (again.dtype, again.shape) == (value.dtype, value.shape), name
            assert np.array_equal(again, value, equal_nan=value.dtype.kind == "f"), name
        elif isinstance(value, int | float | str | np.generic | None):
            assert again == value or (math.isnan(again) and math.isnan(value)), name


@pytest.mark.parametrize("kind", [Ridge, Lasso, ElasticNet, LogisticRegression, LinearSVC, DummyRegressor])
def test_every_further_model_is_read_as_it_was_written(kind: type) -> None:
    for seed in range(4):
        model = fitted(kind, seed)
        content = dump_skops(model)
        assert_same(load_skops(content), model)
        assert_same(skops.io.loads(content), model)
    assert zipfile.ZipFile(io.BytesIO(content)).testzip() is None


def test_numbers_that_were_one_object_in_the_first_model_stay_two() -> None:
    for first, second in ((0.5, 0.5), (0.25, 0.75), (math.nan, math.inf)):
        model = ElasticNet()
        model.alpha, model.l1_ratio = first, second
        assert_same(load_skops(dump_skops(model)), model)


def test_equal_models_are_equal_bytes_whichever_was_first_and_whatever_is_one_object() -> None:
    """Also of estimators in estimators, of sets, and of a plain one by its pattern and in full."""

    def model(kind: type, one: bool) -> object:
        alpha, words, array = 1.5, ["b", "a", "c"], np.arange(3.0)
        found = kind()
        found.first, found.second = alpha, alpha if one else float(str(alpha))
        found.words, found.inner = set(words if one else words[::-1]), Ridge(alpha=found.second).fit([[1.0]], [2.0])
        found.array = array
        return found

    content = dump_skops(model(DecisionTreeRegressor, one=True))
    assert dump_skops(model(DecisionTreeRegressor, one=False)) == content
    plain = fitted(Ridge, 5)
    assert dump_skops(plain) == dump_skops(fitted(Ridge, 5)) == rewritten(skops.io.dumps(plain))


def test_equal_arrays_are_one_file_and_others_two() -> None:
    array = np.arange(1000.0)
    for first, second, files in ((array, array, 1), (array, array + 1, 2), (array, array.copy(), 1)):
        model = Ridge()
        model.first, model.second = first, second
        content = dump_skops(model)
        assert_same(load_skops(content), model)
        assert len(zipfile.ZipFile(io.BytesIO(content)).namelist()) == files + 1


def test_what_differs_in_more_than_numbers_is_written_by_skops() -> None:
    for solver in ("auto", "svd", "auto"):
        for alpha in (1, 2.0, np.array([1.0]), True, "text \0 alpha"):
            model = Ridge(solver=solver)
            model.alpha = alpha
            assert_same(load_skops(dump_skops(model)), model)
    for seed in range(2):
        tree = fitted(DecisionTreeRegressor, seed)
        again = load_skops(dump_skops(tree))
        assert np.array_equal(again.predict(np.eye(3)), tree.predict(np.eye(3)))


def test_a_type_that_is_not_trusted_is_refused_each_time() -> None:
    class Foreign(BaseEstimator):
        def __init__(self, number: float = 1.0) -> None:
            self.number = number

    for number in (1.0, 2.0):
        with pytest.raises(RunError, match="not on the list of trusted types"):
            dump_skops(Foreign(number))


def test_the_schema_of_a_further_model_is_that_of_skops() -> None:
    def plain(content: bytes) -> object:
        def without_names(node: object) -> object:
            if isinstance(node, dict):
                return {key: without_names(value) for key, value in node.items() if key not in ("__id__", "file")}
            return [*map(without_names, node)] if isinstance(node, list) else node

        return without_names(json.loads(zipfile.ZipFile(io.BytesIO(content)).read("schema.json")))

    dump_skops(fitted(Ridge, 0))
    model = fitted(Ridge, 1)
    assert plain(dump_skops(model)) == plain(skops.io.dumps(model))
