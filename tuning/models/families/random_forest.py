"""Random forest (scikit-learn's `RandomForestRegressor`, `RandomForestClassifier`); a step is ten trees.

Parameters: max_depth, max_features, min_samples_leaf, min_samples_split, criterion, …; n_estimators sets the
length of a full trial (default 100). Bootstrap rows follow scikit-learn's defaults.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tuning.models.base import Config
from tuning.models.growing_trees import ForestFamily
from tuning.preprocessing.task import Task

if TYPE_CHECKING:
    from tuning.models.growing_trees import Forest


class RandomForestFamily(ForestFamily):
    name = "random_forest"
    simpler = (("max_depth", "smaller"), ("min_samples_leaf", "larger"))

    def build(self, params: Config, task: Task) -> Forest:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        return (RandomForestClassifier if task.classification else RandomForestRegressor)(**params)


FAMILY = RandomForestFamily()
