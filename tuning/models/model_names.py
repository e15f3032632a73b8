"""The names of a customer's model that a user needs, and what scikit-learn calls these things."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tuning.basics.public import Public


class OfModel(Public):
    """Those of `CustomerModel`."""

    public = (
        *("predict", "predict_proba", "classes_", "score", "fit", "family", "best_config", "columns"),
        *("customer", "task", "example", "final_fit"),
    )
    elsewhere: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("feature_importances_", "coef_", "importance"), "result.customer('acme').importance()"),
        **dict.fromkeys(("feature_names_in_", "feature_names"), "[column.name for column in model.columns]"),
        **dict.fromkeys(("best_params_", "best_params", "params"), "best_config, of an ensemble its best trial's"),
    }
