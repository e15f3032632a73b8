"""What tests of many packages are made of: small customers, small definitions, small objectives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from tuning import TuneRunner
from tuning.notes import EndCode, Note
from tuning.steps import Step


def make_frame(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(size=rows), "empty": np.nan, "shop": rng.choice(["a", "b"], rows)})
    frame["y"] = 3 * frame["x"] + (frame["shop"] == "a") * 2 + rng.normal(scale=0.1, size=rows)
    return frame


def by_name() -> Pipeline:
    """Brings its own preprocessing, and names a column that is empty for this customer."""
    columns = ColumnTransformer([("x", StandardScaler(), ["x"]), ("shop", OneHotEncoder(), ["shop"])])
    return make_pipeline(columns, Ridge())


SPACE = {name: {"type": "float", "low": -2.0, "high": 2.0, "default": 0.0} for name in "xy"}


def write_customers(folder: Path, customers: int, rows: int = 40, seed: int = 5) -> None:
    """Small regression customers that a ridge fits in milliseconds."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for number in range(customers):
        X = rng.normal(size=(rows, 3))
        y = X @ rng.normal(size=3) + rng.normal(scale=0.3, size=rows)
        frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
        frame.to_csv(folder / f"c{number:04d}.csv", index=False, float_format="%.6g")


def definition(folder: Path, **fields: Any) -> dict[str, Any]:
    """A search over the customers in a folder that takes milliseconds per trial."""
    return {
        "name": "chaos",
        "data": str(folder / "*.csv"),
        "target": "y",
        "task": "regression",
        "metric": "r2",
        "search_space": "ridge",
        "trials": 4,
        "seed": 11,
        "slots": 2,
        "placement": "packed",  # on Ray from the first trial on
        "mlflow": False,
        "report": False,
        **fields,
    }


LOSS = """
import time

def loss(config, data):
    time.sleep(0.01)
    return (config["x"] - 1) ** 2 + config["y"] ** 2 + data["y"].mean()
"""


def objective_definition(folder: Path, **fields: Any) -> dict[str, Any]:
    """A search of a function over the customers in `data` of a folder: its workers load no library of models."""
    (folder / "loss.py").write_text(LOSS)
    own = {"objective": str(folder / "loss.py:loss"), "search_space": SPACE, "metric": "loss", "mode": "min"}
    others = definition(folder / "data", **own, **fields)
    return {name: value for name, value in others.items() if name not in ("target", "task")}


def valley(config: Mapping[str, float], seed: int) -> float:
    """An objective with a little noise of its own, drawn from the trial's seed."""
    return (config["x"] - 1) ** 2 + config["y"] ** 2 + np.random.default_rng(seed).normal(scale=0.01)


def tick() -> None:
    """A step of `grows` passes; a test may have it move a clock."""


def grows(config: Mapping[str, float], state: int | None) -> Iterator[Step]:
    """An objective of four steps that can go on from another trial's."""
    for step in range((state or 0) + 1, 5):
        tick()
        yield Step(step, (config["x"] - 1) ** 2 + config["y"] ** 2 + 1 / step, get_state=partial(int, step))


def counted(log: Path, function: Callable[..., float] = valley) -> Callable[..., float]:
    """The objective, leaving a line in a file for each time that it really ran."""

    def objective(config: dict[str, float], seed: int) -> float:
        with log.open("a") as lines:
            lines.write(f"{seed}\n")
        return function(config, seed)

    return objective


def tuner_of(objective: Callable[..., Any], **fields: Any) -> TuneRunner:
    """A runner for an objective, without MLflow."""
    base = {
        "search_space": SPACE,
        "metric": "loss",
        "mode": "min",
        "trials": 20,
        "seed": 3,
        "mlflow": False,
        "report": False,
    }
    return TuneRunner(**{**base, "objective": objective, **fields})


def other_rows(path: Path) -> None:
    """As many bytes and rows as before, but other ones."""
    frame = pd.read_csv(path, dtype=str)
    path.write_text(frame.assign(y=frame["y"].to_numpy()[::-1]).to_csv(index=False))


def table_of(folder: Path) -> pd.DataFrame:
    """One table of all customers' files, by `store`."""
    frames = [pd.read_csv(path).assign(store=path.stem) for path in sorted(folder.glob("*.csv"))]
    return pd.concat(frames, ignore_index=True)


def as_parquet(folder: Path, frame: pd.DataFrame) -> str:
    """A frame as a Parquet file; its path."""
    frame.to_parquet(folder / "table.parquet")
    return str(folder / "table.parquet")


def reason(text: str) -> Note:
    """A reason with this sentence, as one of a user's own code has it."""
    return EndCode.RAISED(error=text)
