"""One table, trained by several processes: XGBoost with Ray Train. Ray Data reads the rows and divides them.

tuning run examples/ray_train.yaml --data housing.csv

Each trial trains with two workers. A worker that is lost is started again, and goes on from the last checkpoint.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import ray.data
import ray.train
import xgboost
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.xgboost import RayTrainReportCallback, XGBoostTrainer

TARGET = "median_house_value"
ROUNDS = 40
# Half a core each, so that two cores are enough; a plan reads it here. A giant's workers have whole ones.
WORKERS = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5})


def matrix(rows: pd.DataFrame) -> xgboost.DMatrix:
    """Rows as XGBoost takes them."""
    return xgboost.DMatrix(rows.drop(columns=TARGET), rows[TARGET])


def boost(config: dict[str, Any]) -> None:
    """What each worker does: boost on its part of the rows up to the last round, and save every tenth model."""
    rows = ray.train.get_dataset_shard("rows").materialize().to_pandas().select_dtypes("number")
    unseen = np.arange(len(rows)) % 5 == 0
    checkpoint = ray.train.get_checkpoint()
    model = None if checkpoint is None else RayTrainReportCallback.get_model(checkpoint)
    done = 0 if model is None else model.num_boosted_rounds()
    xgboost.train(
        {"objective": "reg:squarederror", "eval_metric": "mae", **config},
        matrix(rows[~unseen]),
        ROUNDS - done,
        evals=[(matrix(rows[unseen]), "valid")],
        xgb_model=model,
        verbose_eval=False,
        callbacks=[RayTrainReportCallback(metrics={"mae": "valid-mae"}, frequency=10)],
    )


def trainer(config: dict[str, Any], files: list[str], scaling_config: ScalingConfig = WORKERS) -> XGBoostTrainer:
    """The objective: a trainer for one configuration."""
    return XGBoostTrainer(
        boost,
        train_loop_config=config,
        datasets={"rows": ray.data.read_csv(list(files))},
        scaling_config=scaling_config,
        run_config=RunConfig(failure_config=FailureConfig(max_failures=3)),
    )
