"""The keys of a definition as keyword arguments: what type checkers and editors know of `TuneRunner(...)`.

Made by `python docs/keyword_types.py`; not edited by hand. `object`: what only a run can check.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class DefinitionKeys(TypedDict, total=False):
    """Keyword arguments of `TuneRunner`; docs/definition.md says what they mean."""

    name: str
    data: object
    by: str | Sequence[str]
    manifest: str | None
    customers: str | Sequence[object] | None
    target: str | None
    features: str | Sequence[str] | None
    drop: str | Sequence[str]
    prepare: str | None
    weight: str | None
    class_weight: Literal["balanced"] | Mapping[str, object] | None
    encoding: str
    csv: Mapping[str, object]
    dates: str | None
    min_rows: int
    task: Literal["auto", "regression", "binary", "multiclass"]
    positive: str | int | float | bool | None
    metric: str | None
    mode: Literal["max", "min"]
    bounds: Literal["auto", "off"] | Sequence[object]
    split: Literal["auto", "random", "stratified", "group", "time", "stable"] | Mapping[str, object]
    winner: Literal["best", "one_standard_error"]
    ensemble: Literal["greedy", "none"]
    pool: Literal["auto", "on", "off"]
    final_fit: Literal["all", "search"]
    models: object
    allow_code: bool
    search_space: object
    algorithm: object
    scheduler: object
    stop: object
    portfolio: object
    baseline: object
    warm_start: Sequence[object]
    trials: int
    time_budget: float | str | None
    seed: int
    objective: object
    steps: int
    placement: Literal["auto", "packed", "spread"]
    storage: str
    mlflow: bool | Literal["on", "off"] | Mapping[str, object]
    report: bool
    loggers: Literal["tensorboard", "csv", "json"] | Sequence[str]
    limits: Mapping[str, object]
    slots: int | None
    resources: Mapping[str, object]
    save_models: bool
    model_files: Literal["auto", "folders", "packs"]
    compare: Mapping[str, object] | None
