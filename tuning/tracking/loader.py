"""What MLflow calls to load one of our models: `mlflow.pyfunc.load_model` and MLflow's model server end up here.

A model is loaded as everywhere else in this program: digests first, then our own list of trusted types. Nothing is
unpickled, and the list of types that MLflow would keep inside a model is not used. Only a model of the user's own
that was saved with `allow_pickle: true` needs cloudpickle, and TUNING_ALLOW_PICKLE=true where it is loaded.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from tuning.models.customer_model import CustomerModel


ALLOW_PICKLE = "TUNING_ALLOW_PICKLE"


class Predictor:
    """Predicts for a frame what the customer's model predicts: numbers, or class labels."""

    def __init__(self, model: CustomerModel) -> None:
        self.model = model

    def predict(self, frame: pd.DataFrame, params: dict[str, object] | None = None) -> np.ndarray:
        return self.model.predict(frame)


def _load_pyfunc(path: str) -> Predictor:
    from tuning.models.customer_model import load_model
    from tuning.storage.run_directory import RunDirectory

    folder = Path(path)
    allow_pickle = os.environ.get(ALLOW_PICKLE, "").lower() in ("1", "true")
    return Predictor(load_model(RunDirectory(str(folder.parent)), folder.name, allow_pickle=allow_pickle))
