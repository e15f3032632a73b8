"""Objectives whose trials are trainings of Ray Train, small ones."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
from ray.train import FailureConfig, RunConfig, ScalingConfig
from ray.train.xgboost import XGBoostTrainer

WORKERS = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5})
PARAMS = {"objective": "binary:logistic", "eval_metric": "logloss", "max_depth": 3, "nthread": 1}
GROWN = {"objective": "binary", "tree_learner": "data", "num_leaves": 8, "num_threads": 1, "verbosity": -1}


def rows() -> tuple[np.ndarray, np.ndarray]:
    """(X, y) of few different values, on which several processes find the splits that one finds."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(900, 4)) * 4) / 4
    return X, (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)


def boost(config: dict[str, Any]) -> None:
    """Boost on this worker's part of the rows; a checkpoint every four rounds.

    config: `eta`, `rounds`, and of a test `kill`: a file, which is there when the last worker has killed itself in
    round 7.
    """
    import ray.train
    import xgboost
    from ray.train.xgboost import RayTrainReportCallback

    context = ray.train.get_context()
    rank, world = context.get_world_rank(), context.get_world_size()
    X, y = rows()
    train = xgboost.DMatrix(X[rank:600:world], y[rank:600:world])
    valid = xgboost.DMatrix(X[600:], y[600:])
    checkpoint, model = ray.train.get_checkpoint(), None
    if checkpoint is not None:
        model = RayTrainReportCallback.get_model(checkpoint)

    class Kill(xgboost.callback.TrainingCallback):
        def after_iteration(self, model: Any, epoch: int, log: Any) -> bool:
            path = config.get("kill")
            if path and rank == world - 1 and model.num_boosted_rounds() == 7 and not os.path.exists(path):
                Path(path).touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return False

    reports = RayTrainReportCallback(metrics={"loss": "valid-logloss"}, frequency=4, checkpoint_at_end=False)
    xgboost.train(
        {**PARAMS, "eta": config["eta"]},
        train,
        config["rounds"] - (model.num_boosted_rounds() if model else 0),
        evals=[(valid, "valid")],
        verbose_eval=False,
        xgb_model=model,
        callbacks=[Kill(), reports],
    )


def trainer(config: dict[str, Any], scaling_config: ScalingConfig = WORKERS) -> XGBoostTrainer:
    """A trainer that survives two lost workers."""
    return XGBoostTrainer(
        boost,
        train_loop_config=config,
        scaling_config=scaling_config,
        run_config=RunConfig(failure_config=FailureConfig(max_failures=2)),
    )


def fail(config: dict[str, Any]) -> None:
    """Report once, and raise."""
    boost({**config, "rounds": 1})
    raise ValueError("no more rows")


def alone(eta: float, rounds: int) -> list[float]:
    """The loss after each round where one process trains."""
    import xgboost

    X, y = rows()
    losses: dict[str, Any] = {}
    train, valid = xgboost.DMatrix(X[:600], y[:600]), xgboost.DMatrix(X[600:], y[600:])
    params = {**PARAMS, "eta": eta}
    xgboost.train(params, train, rounds, evals=[(valid, "valid")], evals_result=losses, verbose_eval=False)
    return list(losses["valid"]["logloss"])


def grow(config: dict[str, Any]) -> None:
    """Boost with LightGBM on this worker's part of the rows; a checkpoint every four rounds."""
    import lightgbm
    import ray.train
    from ray.train.lightgbm import RayTrainReportCallback, get_network_params

    rank, world = ray.train.get_context().get_world_rank(), ray.train.get_context().get_world_size()
    X, y = rows()
    train = lightgbm.Dataset(X[rank:600:world], y[rank:600:world])
    checkpoint, model = ray.train.get_checkpoint(), None
    if checkpoint is not None:
        model = RayTrainReportCallback.get_model(checkpoint)
    loss = {"loss": "valid-binary_logloss"}
    lightgbm.train(
        {**GROWN, "learning_rate": config["eta"], **get_network_params()},
        train,
        config["rounds"] - (model.num_trees() if model else 0),
        valid_sets=[lightgbm.Dataset(X[600:], y[600:], reference=train)],
        valid_names=["valid"],
        init_model=model,
        callbacks=[RayTrainReportCallback(metrics=loss, frequency=4, checkpoint_at_end=False)],
    )


def lightgbm_trainer(config: dict[str, Any], scaling_config: ScalingConfig = WORKERS) -> Any:
    """A trainer whose workers grow the same trees together."""
    from ray.train.lightgbm import LightGBMTrainer

    return LightGBMTrainer(grow, train_loop_config=config, scaling_config=scaling_config)


def descend(config: dict[str, Any]) -> None:
    """Fit a line with PyTorch on this worker's part of the rows; each epoch is a report, every second a checkpoint."""
    import tempfile

    import ray.train
    import torch
    from ray.train.torch import prepare_model

    rank, world = ray.train.get_context().get_world_rank(), ray.train.get_context().get_world_size()
    rng = np.random.default_rng(0)
    X = torch.tensor(rng.normal(size=(200, 3)), dtype=torch.float32)
    y = X @ torch.tensor([1.0, -2.0, 0.5])
    torch.manual_seed(0)
    model, done = torch.nn.Linear(3, 1), 0
    if (checkpoint := ray.train.get_checkpoint()) is not None:
        with checkpoint.as_directory() as folder:
            saved = torch.load(f"{folder}/model.pt")
        model.load_state_dict(saved["model"])
        done = saved["done"]
    model = prepare_model(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=config["eta"])
    for epoch in range(done + 1, config["rounds"] + 1):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(model(X[rank::world]).squeeze(1), y[rank::world])
        loss.backward()
        optimizer.step()
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if rank == 0 and epoch % 2 == 0:
                state = {"model": getattr(model, "module", model).state_dict(), "done": epoch}
                torch.save(state, f"{folder}/model.pt")
                checkpoint = ray.train.Checkpoint.from_directory(folder)
            ray.train.report({"loss": loss.item()}, checkpoint=checkpoint)


def torch_trainer(config: dict[str, Any], scaling_config: ScalingConfig = WORKERS) -> Any:
    """A trainer with PyTorch's own gradients, averaged over the workers."""
    from ray.train.torch import TorchTrainer

    return TorchTrainer(descend, train_loop_config=config, scaling_config=scaling_config)
