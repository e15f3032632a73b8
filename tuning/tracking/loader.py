"""What MLflow calls to load a model or a release of ours: `mlflow.pyfunc.load_model` and MLflow's server end up here.

A copy of this file and of what it imports of this program lies in every model (`tuning.tracking.model_folder`), so a
model is served where tuning-service is not installed; where it is, the installed one is used.

A model is loaded as everywhere else in this program: digests first, then our own list of trusted types. Nothing is
unpickled, and the list of types that MLflow would keep inside a model is not used. Only a model of the user's own
that was saved with `allow_code: true` needs cloudpickle, and TUNING_ALLOW_CODE=true where it is loaded.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from tuning.models.customer_model import CustomerModel
    from tuning.storage.run_directory import RunDirectory


ALLOW_CODE = "TUNING_ALLOW_CODE"
CODE = "tuning_service.zip"  # beside the copy of this file in a model
DIGEST = "model_sha256"  # in the metadata of a model
METHOD, METHODS = "method", ("predict", "predict_proba")
INTERVAL = "interval"
RELEASE = "release.json"  # in the folder of a release: whose model is where
CUSTOMER = "customer"  # the column that names the customer where there are no key columns
ANSWER, PROBABILITY = "answer", "probability_"
MOST_BYTES = 1 << 30  # of the models of a release that stay in memory


class Predictor:
    """Predicts for a frame what the customer's model predicts.

    `params={"method": "predict"}`, the default: numbers, or class labels. "predict_proba": (n, classes) probabilities,
    in the order of `classes` in the model's metadata; an error when the model has none. `params={"interval": 0.8}`: of
    a regression, a frame with intervals, as of `CustomerModel.predict`.
    """

    def __init__(self, model: CustomerModel) -> None:
        self.model = model

    def predict(self, frame: pd.DataFrame, params: Mapping[str, object] | None = None) -> np.ndarray | pd.DataFrame:
        with _refusals():
            method, interval = _asked(params)
            if method == "predict_proba":
                return self.model.predict_proba(frame)
            return self.model.predict(frame) if interval is None else self.model.predict(frame, interval)


class ReleasePredictor:
    """Predicts for each row of a frame what its customer's model predicts, or what a release gives to others.

    A frame with the columns `prediction` and `answer`: whether the customer's own model has answered, the pool or a
    constant. `params` as of `Predictor`: "predict_proba" adds a column of probabilities for each class, `interval` the
    ends of intervals.

    directory: with the models and `RELEASE`. sha256: of the latter.
    """

    def __init__(self, directory: RunDirectory, sha256: str | None, allow_code: bool) -> None:
        from tuning.models.customer_model import load_model
        from tuning.models.kept_models import KeptModels
        from tuning.models.model_files import read_checked

        described = json.loads(read_checked(directory, RELEASE, sha256))
        self._name: str = described["name"]
        self._by: list[str] = described["by"]
        self._places: Mapping[str, list[str]] = described["models"]
        self._others: list[str] | None = described["others"]
        self._kept: KeptModels[tuple[str, str]] = KeptModels(
            MOST_BYTES, lambda place: load_model(directory, *place, allow_code=allow_code)
        )

    def predict(self, frame: pd.DataFrame, params: Mapping[str, object] | None = None) -> pd.DataFrame:
        import pandas as pd

        from tuning.data.keys import check_columns, customer_id, key_table, rows_by_key

        by = self._by or [CUSTOMER]
        with _refusals():
            method, interval = _asked(params)
            check_columns(by, [str(name) for name in frame.columns])
            parts = [pd.DataFrame({"prediction": [], ANSWER: []})] if frame.empty else []
            for key, rows in rows_by_key(key_table(frame, by), by):
                customer = customer_id(key) if self._by else str(key[0])
                parts.append(self._answers(customer, frame.iloc[rows], method, interval).set_axis(rows))
            return pd.concat(parts).sort_index().set_axis(frame.index)

    def _answers(self, customer: str, rows: pd.DataFrame, method: str, interval: float | None) -> pd.DataFrame:
        """The answers for the rows of one customer."""
        import pandas as pd

        from tuning.errors import CustomerError, UnknownCustomerError
        from tuning.models.residuals import HIGH, LOW, PREDICTION, check_interval
        from tuning.notes import FileCode

        place = self._places.get(customer, self._others)
        if place is None:
            raise UnknownCustomerError(f"no customer {customer!r} among the champions {self._name}.")
        path, sha256, answer = place
        model = self._kept.get((path, sha256))
        try:
            prediction = model.prediction(rows)
        except CustomerError as error:
            raise CustomerError(FileCode.OF_CUSTOMER(customer, why=error.note)) from error
        columns: dict[str, object] = {PREDICTION: model.labels(prediction)}
        if method == "predict_proba":
            probabilities = model.predict_proba(rows) if prediction.proba is None else prediction.proba
            columns |= {f"{PROBABILITY}{label}": probabilities[:, n] for n, label in enumerate(model.task.classes)}
        elif interval is not None:
            check_interval(interval, model.task)
            columns |= dict(zip((LOW, HIGH), model.ends(prediction, interval), strict=True))
        return pd.DataFrame({**columns, ANSWER: answer})


def _asked(params: Mapping[str, object] | None) -> tuple[str, float | None]:
    """(method, interval) of the parameters of a request."""
    from tuning.errors import DefinitionError

    method, interval = str((params or {}).get(METHOD, METHODS[0])), (params or {}).get(INTERVAL)
    if method not in METHODS:
        allowed = " or ".join(map(repr, METHODS))
        raise DefinitionError(f"{METHOD} is {method!r}; it must be {allowed}.")
    return method, None if interval is None else float(str(interval))


@contextmanager
def _refusals() -> Iterator[None]:
    """An error of ours as one of MLflow's: of others a model server hides the message."""
    from mlflow.exceptions import MlflowException

    from tuning.errors import TuningError

    try:
        yield
    except TuningError as error:
        raise MlflowException.invalid_parameter_value(str(error)) from error


def _load_pyfunc(path: str) -> Predictor | ReleasePredictor:
    _make_importable()
    from tuning.models.customer_model import load_model
    from tuning.storage.run_directory import RunDirectory

    folder = Path(path)
    allow_code = os.environ.get(ALLOW_CODE, "").lower() in ("1", "true")
    if (folder / RELEASE).is_file():
        return ReleasePredictor(RunDirectory(str(folder)), _digest(folder), allow_code)
    directory = RunDirectory(str(folder.parent))
    return Predictor(load_model(directory, folder.name, _digest(folder), allow_code=allow_code))


def _digest(folder: Path) -> str | None:
    """The recorded digest of `model.json` or `RELEASE`, which holds those of the other files; None without one."""
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
