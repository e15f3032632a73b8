"""Families on tables of few rows, as many customers have."""

from __future__ import annotations

import numpy as np
import pytest

from tuning.models.base import EncodedRows, Stage, SteppedFamily
from tuning.models.registry import families
from tuning.preprocessing.task import REGRESSION, Task

STEP = Task(REGRESSION, ())


@pytest.mark.parametrize(
    ("name", "config"),
    [
        ("hist_gradient_boosting", {}),
        ("hist_gradient_boosting", {"min_samples_leaf": 200}),
        ("lightgbm", {}),
        ("lightgbm", {"min_child_samples": 128}),
        ("xgboost", {"min_child_weight": 100.0}),
    ],
)
def test_boosting_learns_from_thirty_rows_whatever_the_least_rows_of_a_leaf(name: str, config: dict[str, int]) -> None:
    family = families()[name]
    assert isinstance(family, SteppedFamily)
    x = np.linspace(0.0, 1.0, 30)
    rows = EncodedRows(x[:, None], (x > 0.5).astype(float))
    models = [family.fit(config, rows, STEP, 0), family.fit_stages([Stage(config, 0, family.total_steps)], rows, STEP)]
    for model in models:
        said = family.predict(model, rows, STEP).values
        assert said[:12] == pytest.approx(0.0, abs=0.1)
        assert said[-12:] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("name", ["catboost", "hist_gradient_boosting", "lightgbm", "xgboost"])
def test_boosting_learns_from_weights_that_sum_up_to_one(name: str) -> None:
    x = np.linspace(0.0, 1.0, 100)
    rows = EncodedRows(x[:, None], (x > 0.5).astype(float), np.full(100, 0.01))
    family = families()[name]
    said = family.predict(family.fit({}, rows, STEP, 0), rows, STEP).values
    assert said[:40] == pytest.approx(0.0, abs=0.1)
    assert said[-40:] == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("name", ["catboost", "hist_gradient_boosting", "lightgbm", "xgboost"])
def test_a_text_of_many_values_and_no_meaning_does_not_drown_what_the_other_columns_tell(name: str) -> None:
    rng = np.random.default_rng(0)
    rows = 300
    x = rng.normal(size=(rows, 2))
    codes = rng.integers(0, 60, rows).astype(float)
    y = x[:, 0] - x[:, 1] + rng.normal(scale=0.3, size=rows)
    family = families()[name]

    def error(X: np.ndarray, categorical: tuple[int, ...]) -> float:
        train, unseen = (
            EncodedRows(X[:150], y[:150], None, categorical),
            EncodedRows(X[150:], y[150:], None, categorical),
        )
        said = family.predict(family.fit({}, train, STEP, 0), unseen, STEP).values
        return float(np.mean((said - unseen.y) ** 2))

    assert error(np.column_stack([x, codes]), (2,)) < 1.5 * error(x, ())
