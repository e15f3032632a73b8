"""A forest comes back from its file as it was."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestClassifier

from tuning.errors import RunError
from tuning.models.registry import family
from tuning.models.skops_format import dump_skops


@pytest.mark.parametrize("name", ["extra_trees", "random_forest"])
def test_all_trees_come_back_from_a_file_that_is_smaller_than_that_of_skops(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    y = X[:, 0] + rng.normal(size=200)
    X[rng.random(X.shape) < 0.1] = np.nan
    classes = np.digitize(y, [-0.5, 0.5])
    forest = (
        ExtraTreesRegressor(20, random_state=1).fit(X, y)
        if name == "extra_trees"
        else RandomForestClassifier(20, random_state=1).fit(X, classes)
    )
    file, content = family(name).save(forest)
    again = family(name).load(file, content)
    assert np.array_equal(again.predict(X), forest.predict(X))
    assert [each.random_state for each in again.estimators_] == [each.random_state for each in forest.estimators_]
    assert np.array_equal(again.feature_importances_, forest.feature_importances_)
    if name == "random_forest":
        assert np.array_equal(again.predict_proba(X), forest.predict_proba(X))
    assert len(content) < len(dump_skops(forest))
    with pytest.raises(RunError, match="was not written by this program"):
        family(name).load(file, content[:-100])
