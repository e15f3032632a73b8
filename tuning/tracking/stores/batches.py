"""A run's content cut into requests that MLflow accepts: numbers of entities and bytes in one `log_batch`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from tuning.tracking.mlflow_limits import METRICS_PER_BATCH, PARAMS_PER_BATCH, TAGS_PER_BATCH
from tuning.tracking.tracked_runs import MetricPoint

if TYPE_CHECKING:
    from mlflow.entities import Metric, Param, RunTag

    Entity: TypeAlias = Metric | Param | RunTag

BYTES_PER_BATCH = 800_000  # MLflow refuses requests past 1,000,000
LAYOUT = 40  # characters around a text in a request
FIGURES = 150  # of a metric's value, step and time


def batches(
    params: Mapping[str, str], metrics: Sequence[MetricPoint], tags: Mapping[str, str]
) -> Iterator[dict[str, list[Entity]]]:
    """Arguments for `MlflowClient.log_batch`: `params`, `metrics` and `tags`, as few requests as allowed."""
    from mlflow.entities import Metric, Param, RunTag

    most = {"params": PARAMS_PER_BATCH, "tags": TAGS_PER_BATCH, "metrics": METRICS_PER_BATCH}
    batch: dict[str, list[Entity]] = {name: [] for name in most}
    size = entities = 0

    def content() -> Iterator[tuple[str, Entity, int]]:
        for key, value in params.items():
            yield "params", Param(key, value), _size(key) + _size(value)
        for key, value in tags.items():
            yield "tags", RunTag(key, value), _size(key) + _size(value)
        for key, number, step, moment in metrics:
            yield "metrics", Metric(key, number, moment, step), _size(key) + FIGURES

    for kind, entity, weight in content():
        full = len(batch[kind]) >= most[kind] or entities >= METRICS_PER_BATCH
        if entities and (full or size + weight > BYTES_PER_BATCH):
            yield batch
            batch = {name: [] for name in most}
            size = entities = 0
        batch[kind].append(entity)
        size += weight
        entities += 1
    if entities:
        yield batch


def _size(text: str) -> int:
    return len(json.dumps(text)) + LAYOUT  # as it is sent: escaped, in quotes, on a line of its own
