"""Any configuration becomes names and values that MLflow accepts, and none is lost."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlflow.entities import Metric, Param, RunTag
from mlflow.utils import validation

from tuning.tracking import mlflow_names
from tuning.tracking.mlflow_names import TrackedSearch, experiment_name

names = st.one_of(
    st.text(max_size=40), st.sampled_from(["..", ".", "/", "a//b", "a/../b", "x" * 300, "ä/ö", "a:b", "\0"])
)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.dictionaries(names, st.one_of(st.text(max_size=20), st.floats(), st.none(), st.booleans()), max_size=8))
def test_every_name_is_accepted_and_no_two_become_one(config: dict[str, object]) -> None:
    params = mlflow_names.params(config)
    assert len(params) == len(config)
    validation._validate_batch_log_data(
        [Metric(key, 1.0, 1, 0) for key in params],
        [Param(key, value) for key, value in params.items()],
        [RunTag(key, value) for key, value in params.items()],
    )
    for key, value in params.items():
        (key + value).encode("utf-8")
        assert "\0" not in key + value


def test_nested_values_get_dotted_names() -> None:
    config = {"model": {"depth": 3, "sizes": [1, 2], "none": {}}, "on": True, "rate": 1e-05, "nothing": None}
    assert mlflow_names.params(config) == {
        "model.depth": "3",
        "model.sizes": "[1, 2]",
        "model.none": "{}",
        "on": "True",
        "rate": "1e-05",
        "nothing": "None",
    }


def test_names_that_would_fall_together_stay_apart() -> None:
    params = mlflow_names.params({"P(x)": 1, "P[x]": 2, "a" * 400: 3, "a" * 399 + "b": 4})
    assert sorted(params.values()) == ["1", "2", "3", "4"]
    assert "P_x_" in params


def test_long_values_are_cut_where_mlflow_would_refuse_them() -> None:
    assert len(mlflow_names.params({"text": "x" * 10_000})["text"]) == validation.MAX_PARAM_VAL_LENGTH
    assert len(mlflow_names.text("x" * 10_000, mlflow_names.TAG_LIMIT)) <= validation.MAX_TAG_VAL_LENGTH
    assert (experiment_name(" a\0b "), experiment_name(" ")) == ("a␀b", "unnamed")
    assert len(experiment_name("e" * 1000)) <= 250
    assert experiment_name("e" * 1000) != experiment_name("e" * 999)


def test_numbers_are_stored_as_mlflow_stores_them() -> None:
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore

    for value in (1.5, math.nan, math.inf, -math.inf, 0.0, -1e-300):
        is_nan, number = SqlAlchemyStore.sanitize_metric_value(None, value)
        assert mlflow_names.stored(value) == (number, is_nan)


def test_ids_are_mlflows_and_depend_on_every_part() -> None:
    search, other = TrackedSearch("e", "r"), TrackedSearch("er", "")
    ids = {search.id(), search.id("s"), search.id("s", 0), search.id("s", 1), other.id(), other.id("s")}
    assert len(ids) == 6
    for value in ids:
        validation._validate_run_id(value)
