"""Tools with an environment of their own, run by its Python, which has none of this project's packages:

    PYTHON rivals_child.py TOOL FOLDER SECONDS

FOLDER holds `labels.json`, a list with the labels of each customer's classes (none: regression), and its rows, by the
number in that list: `0_given.parquet` with the column `target`, `0_unseen.parquet` without it. `answers.json` is
written beside them: for each customer its numbers, or the probabilities in the order of its labels, or null where the
tool made no model. A tool gets one thread, and SECONDS of wall time for each customer.
"""

from __future__ import annotations

import json
import math
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TARGET = "target"
NO_NETWORKS = ["NN_TORCH", "FASTAI"]  # what presets name; neither's library is in the environment


def autogluon(preset: str) -> Callable[..., np.ndarray]:
    def answer(given: pd.DataFrame, unseen: pd.DataFrame, labels: list[str], seconds: float) -> np.ndarray:
        from autogluon.tabular import TabularPredictor

        with tempfile.TemporaryDirectory() as folder:
            predictor = TabularPredictor(
                TARGET,
                problem_type="regression" if not labels else "binary" if len(labels) == 2 else "multiclass",
                eval_metric="log_loss" if labels else "root_mean_squared_error",
                path=folder,
                verbosity=0,
            ).fit(
                given,
                presets=preset,
                time_limit=seconds,
                num_cpus=1,
                num_gpus=0,
                excluded_model_types=NO_NETWORKS,
            )
            if not labels:
                return predictor.predict(unseen).to_numpy()
            return predictor.predict_proba(unseen)[labels].to_numpy()

    return answer


def mljar(given: pd.DataFrame, unseen: pd.DataFrame, labels: list[str], seconds: float) -> np.ndarray:
    from supervised import AutoML

    with tempfile.TemporaryDirectory() as folder:
        model = AutoML(
            results_path=folder,
            mode="Perform",
            ml_task="regression" if not labels else "binary_classification" if len(labels) == 2 else "multiclass",
            eval_metric="logloss" if labels else "rmse",
            total_time_limit=math.ceil(seconds),  # takes whole seconds only
            explain_level=0,  # pictures and explanations, which this benchmark does not ask for
            n_jobs=1,
            verbose=0,
        )
        model.fit(given.drop(columns=TARGET), given[TARGET])
        if not labels:
            return np.asarray(model.predict(unseen), dtype=float)
        found = model.predict_all(unseen)
        return found[[f"prediction_{label}" for label in labels]].to_numpy(dtype=float)


TOOLS: dict[str, Callable[..., np.ndarray]] = {
    "mljar": mljar,
    "autogluon_medium": autogluon("medium_quality"),
    "autogluon_best": autogluon("best_quality"),
}


def main(tool: str, folder: str, seconds: str) -> None:
    answers: list[Any] = []
    for number, labels in enumerate(json.loads(Path(folder, "labels.json").read_text())):
        given, unseen = (pd.read_parquet(Path(folder, f"{number}_{part}.parquet")) for part in ("given", "unseen"))
        try:
            answers.append(TOOLS[tool](given, unseen, labels, float(seconds)).tolist())
        except ImportError:  # a tool that is not there is no answer
            raise
        except Exception:  # no model, for whatever reason: the benchmark counts it
            traceback.print_exc()
            answers.append(None)
    Path(folder, "answers.json").write_text(json.dumps(answers))


if __name__ == "__main__":
    main(*sys.argv[1:])
