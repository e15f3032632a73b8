"""What MLflow calls to load one of our models: `mlflow.pyfunc.load_model` and MLflow's model server end up here.

A copy of this file and of what it imports of this program lies in every model (`tuning.tracking.model_folder`), so a
model is served where tuning-service is not installed; where it is, the installed one is used.

A model is loaded as everywhere else in this program: digests first, then our own list of trusted types. Nothing is
unpickled, and the list of types that MLflow would keep inside a model is not used. Only a model of the user's own
that was saved with `allow_code: true` needs cloudpickle, and TUNING_ALLOW_CODE=true where it is loaded.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from tuning.models.customer_model import CustomerModel


ALLOW_CODE = "TUNING_ALLOW_CODE"
CODE = "tuning_service.zip"  # beside the copy of this file in a model
DIGEST = "model_sha256"  # in the metadata of a model
METHOD, METHODS = "method", ("predict", "predict_proba")
INTERVAL = "interval"


class Predictor:
    """Predicts for a frame what the customer's model predicts.

    `params={"method": "predict"}`, the default: numbers, or class labels. "predict_proba": (n, classes) probabilities,
    in the order of `classes` in the model's metadata; an error when the model has none. `params={"interval": 0.8}`: of
    a regression, a frame with intervals, as of `CustomerModel.predict`.
    """

    def __init__(self, model: CustomerModel) -> None:
        self.model = model

    def predict(self, frame: pd.DataFrame, params: Mapping[str, object] | None = None) -> np.ndarray | pd.DataFrame:
        from mlflow.exceptions import MlflowException  # of other errors a model server hides the message

        from tuning.errors import TuningError

        method = (params or {}).get(METHOD, METHODS[0])
        if method not in METHODS:
            allowed = " or ".join(map(repr, METHODS))
            raise MlflowException.invalid_parameter_value(f"{METHOD} is {method!r}; it must be {allowed}.")
        interval = (params or {}).get(INTERVAL)
        try:
            if method == "predict_proba":
                return self.model.predict_proba(frame)
            return self.model.predict(frame) if interval is None else self.model.predict(frame, float(str(interval)))
        except TuningError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from error


def _load_pyfunc(path: str) -> Predictor:
    _make_importable()
    from tuning.models.customer_model import load_model
    from tuning.storage.run_directory import RunDirectory

    folder = Path(path)
    allow_code = os.environ.get(ALLOW_CODE, "").lower() in ("1", "true")
    directory = RunDirectory(str(folder.parent))
    return Predictor(load_model(directory, folder.name, _digest(folder), allow_code=allow_code))


def _digest(folder: Path) -> str | None:
    """The recorded digest of `model.json`, which holds those of the other files; None in a model without one."""
    import yaml

    for parent in folder.parents[:2]:
        if (parent / "MLmodel").is_file():
            described = yaml.safe_load((parent / "MLmodel").read_text(encoding="utf-8"))
            return (described.get("metadata") or {}).get(DIGEST)
    return None


def _make_importable() -> None:
    """Where tuning-service is not installed, import it from the model that this file lies in."""
    try:
        installed = importlib.util.find_spec("tuning.models") is not None
    except ModuleNotFoundError:
        installed = False
    if not installed:
        sys.path.insert(0, str(Path(__file__).with_name(CODE)))
