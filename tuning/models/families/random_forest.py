"""Random forest (scikit-learn's `RandomForestRegressor`, `RandomForestClassifier`); a step is ten trees.

Parameters: max_depth, max_features, min_samples_leaf, min_samples_split, criterion, …; n_estimators sets the
length of a full trial (default 100). Bootstrap rows follow scikit-learn's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuning.models.growing_trees import ForestFamily
from tuning.preprocessing.task import Task


class RandomForestFamily(ForestFamily):
    name = "random_forest"

    def build(self, params: Mapping[str, Any], task: Task) -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        return (RandomForestClassifier if task.classification else RandomForestRegressor)(**params)


FAMILY = RandomForestFamily()
