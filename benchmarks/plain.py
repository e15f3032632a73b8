"""The work as a careful user writes it with scikit-learn and XGBoost alone: what the other contenders call.

The leanest plain form: arrays, rows split once per customer, a pipeline per fold, no `cross_val_score` around it
(which costs half as much again at five milliseconds).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.workload import FOLDS, KEY, TARGET, TEST, Scenario, arguments

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


@dataclass
class Rows:
    """One customer's arrays; folds within the rows of the search."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    folds: list[tuple[np.ndarray, np.ndarray]]


def load(scenario: Scenario, customer: str) -> Rows:
    """Read, hold out, make folds."""
    return divided(scenario, read(scenario, customer))


def read(scenario: Scenario, customer: str) -> pd.DataFrame:
    """One customer's rows."""
    import pandas as pd

    if not scenario.shape.keyed:
        return pd.read_csv(scenario.path(customer))
    return pd.read_parquet(scenario.table, filters=[(KEY, "==", int(customer))]).drop(columns=KEY)


def divided(scenario: Scenario, frame: pd.DataFrame) -> Rows:
    """Hold out, make folds."""
    from sklearn.model_selection import train_test_split

    y = frame[TARGET].to_numpy()
    classes = scenario.shape.task != "regression"
    X, X_test, y, y_test = train_test_split(
        frame.drop(columns=TARGET).to_numpy(), y, test_size=TEST, random_state=0, stratify=y if classes else None
    )
    return Rows(X, y, X_test, y_test, list(splitter(scenario).split(X, y)))


def splitter(scenario: Scenario) -> Any:
    from sklearn.model_selection import KFold, StratifiedKFold

    kind = KFold if scenario.shape.task == "regression" else StratifiedKFold
    return kind(FOLDS, shuffle=True, random_state=0)


def estimator(scenario: Scenario, config: dict[str, Any]) -> Any:
    """The unfitted model; scaling is part of it where the model needs it, so that it is fitted inside each fold."""
    if scenario.shape.rounds is None:
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return make_pipeline(StandardScaler(), Ridge(**arguments(config)))
    from xgboost import XGBClassifier

    return XGBClassifier(**arguments(config), tree_method="hist", n_jobs=1)


def scorer(scenario: Scenario) -> Any:
    from sklearn.metrics import get_scorer

    return get_scorer(scenario.shape.metric)


def steps(scenario: Scenario, rows: Rows, config: dict[str, Any]) -> Iterator[float]:
    """One trial, a fit and a score per fold: the mean of the folds so far after each."""
    score, total = scorer(scenario), 0.0
    for number, (train, valid) in enumerate(rows.folds, start=1):
        model = estimator(scenario, config).fit(rows.X[train], rows.y[train])
        total += score(model, rows.X[valid], rows.y[valid])
        yield float(total / number)


def trial(scenario: Scenario, rows: Rows, config: dict[str, Any]) -> float:
    """One trial to its end."""
    *_, score = steps(scenario, rows, config)
    return score


def conclude(scenario: Scenario, rows: Rows, config: dict[str, Any]) -> float:
    """The winner, fitted on all rows of the search and scored once on the hold-out."""
    model = estimator(scenario, config).fit(rows.X, rows.y)
    return float(scorer(scenario)(model, rows.X_test, rows.y_test))
