"""Extremely randomised trees (scikit-learn's `ExtraTrees*`); a step is ten trees.

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


class ExtraTreesFamily(ForestFamily):
    name = "extra_trees"
    simpler = (("max_depth", "smaller"), ("min_samples_leaf", "larger"))

    def build(self, params: Config, task: Task) -> Forest:
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        return (ExtraTreesClassifier if task.classification else ExtraTreesRegressor)(**params)


FAMILY = ExtraTreesFamily()
