"""Extremely randomised trees (scikit-learn's `ExtraTrees*`); a step is ten trees.

Parameters: max_depth, max_features, min_samples_leaf, min_samples_split, criterion, …; n_estimators sets the
length of a full trial (default 100). Bootstrap rows follow scikit-learn's defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuning.models.growing_trees import ForestFamily
from tuning.preprocessing.task import Task


class ExtraTreesFamily(ForestFamily):
    name = "extra_trees"

    def build(self, params: Mapping[str, Any], task: Task) -> Any:
        from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

        return (ExtraTreesClassifier if task.classification else ExtraTreesRegressor)(**params)


FAMILY = ExtraTreesFamily()
