"""The names of a customer's model that a user needs, and what scikit-learn calls these things."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar, Self

from tuning.basics.public import Public
from tuning.preprocessing.task import Task

if TYPE_CHECKING:
    from sklearn.utils import Tags


class OfModel(Public):
    """Those of `CustomerModel`, and what makes it a fitted estimator to scikit-learn."""

    task: Task

    public = (
        *("predict", "predict_proba", "classes_", "score", "fit", "family", "best_config", "columns"),
        *("customer", "task", "example", "final_fit"),
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("feature_importances_", "coef_", "importance"), "result.customer('acme').importance()"),
        **dict.fromkeys(("feature_names_in_", "feature_names"), "[column.name for column in model.columns]"),
        **dict.fromkeys(("best_params_", "best_params", "params"), "best_config, of an ensemble its best trial's"),
    }

    def fit(self, X: object = None, y: object = None, **params: object) -> Self:
        """The model, unchanged: it is fitted already. Given rows, a warning says that nothing is learned from them."""
        if X is not None:
            warnings.warn(f"{self!r} is fitted already, and fit learns nothing from these rows.", stacklevel=2)
        return self

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags, RegressorTags, Tags, TargetTags

        several = len(self.task.classes) > 2
        kind = (
            {"estimator_type": "classifier", "classifier_tags": ClassifierTags(multi_class=several)}
            if self.task.classification
            else {"estimator_type": "regressor", "regressor_tags": RegressorTags()}
        )
        return Tags(target_tags=TargetTags(required=True), **kind)

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_clone__(self) -> Self:
        return self
