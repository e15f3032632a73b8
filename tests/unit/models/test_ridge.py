"""Ridge is fitted without scikit-learn's checks of its input: the model must stay the one that `Ridge.fit` makes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from tuning.models.base import EncodedRows
from tuning.models.families.ridge import FAMILY
from tuning.preprocessing.task import REGRESSION, Task


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(1, 3), (2, 4), (16, 4), (30, 40), (500, 8)])
def test_the_model_is_that_of_scikit_learn_to_the_last_bit(rows: int, columns: int, weighted: bool) -> None:
    rng = np.random.default_rng([rows, columns])
    for dtype in (np.float64, np.int64):
        X = rng.normal(size=(rows, columns))
        X[:, 1] = X[:, 0]
        y = (1e3 * rng.normal(size=rows)).astype(dtype)
        train = EncodedRows(X, y, rng.uniform(0.1, 2.0, rows) if weighted else None)
        before = X.copy(), y.copy()
        for alpha in (1e-6, 0.03, 1.0, 1e4):
            ours = FAMILY.fit({"alpha": alpha}, train, Task(REGRESSION), seed=0)
            theirs = Ridge(alpha=alpha).fit(X, y, train.weight)
            assert vars(ours).keys() == vars(theirs).keys()
            for name, value in vars(theirs).items():
                assert type(getattr(ours, name)) is type(value), name
                assert np.array_equal(getattr(ours, name), value), name
        assert np.array_equal(X, before[0])
        assert np.array_equal(y, before[1])


def test_a_penalty_that_scikit_learn_refuses_is_refused() -> None:
    train = EncodedRows(np.eye(3), np.arange(3.0))
    with pytest.raises(ValueError, match="alpha"):
        FAMILY.fit({"alpha": -1.0}, train, Task(REGRESSION), seed=0)
