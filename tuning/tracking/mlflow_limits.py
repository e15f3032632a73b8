"""What MLflow accepts: characters of a key, lengths of keys and values, numbers a database can hold, requests.

The limits are those of `mlflow.utils.validation` (3.17) and of its tables; the strictest counts, because a
server may run an older or newer version than ours.
"""

from __future__ import annotations

import hashlib
import json
import math
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from mlflow.entities import Metric, Param, RunTag

    Entity: TypeAlias = Metric | Param | RunTag

MetricPoint = tuple[str, float, int, int]  # key, value, step, milliseconds since 1970

KEY_LIMIT = 250
PARAM_LIMIT = 6000
TAG_LIMIT = 5000  # 8,000 since MLflow 2.16, 5,000 on older servers
METRICS_PER_BATCH = 1000
PARAMS_PER_BATCH = 100
TAGS_PER_BATCH = 100
BYTES_PER_BATCH = 800_000  # MLflow refuses requests past 1,000,000
LAYOUT = 40  # characters around a text in a request
FIGURES = 150  # of a metric's value, step and time
LARGEST = 1.7976931348623157e308  # how MLflow stores infinity

_CUT = "…"
_NOT_ALLOWED = re.compile(r"[^/\w.\- :]")


def text(value: object, limit: int) -> str:
    """The value as text that every database takes: no NUL, no lone surrogate, cut to `limit` characters."""
    result = value if isinstance(value, str) else str(value)
    if not result.isascii():
        result = result.encode("utf-8", "replace").decode("utf-8")
    if "\0" in result:
        result = result.replace("\0", "\N{SYMBOL FOR NULL}")
    return result if len(result) <= limit else result[: limit - 1] + _CUT


@lru_cache(maxsize=4096)  # a search has few names, and every trial has all of them
def key(name: str) -> str:
    """A name as MLflow accepts it for params and metrics: one that it would refuse is changed, never dropped.

    >>> key("model.max_depth"), key("P(x>0)"), key("../secret"), key("")
    ('model.max_depth', 'P_x_0_', '___secret', '_')
    """
    clean = _NOT_ALLOWED.sub("_", text(name, 10_000)) or "_"
    normal = posixpath.normpath(clean)
    if normal != clean or clean.startswith(("/", "..")) or clean == ".":
        clean = clean.replace("/", "_")
        if clean.startswith(".."):
            clean = f"__{clean[2:]}"
        clean = "_" if clean == "." else clean
    if len(clean) > KEY_LIMIT:
        clean = f"{clean[: KEY_LIMIT - 9]}-{_digest(name)}"
    return clean


def keys(names: Iterable[str]) -> dict[str, str]:
    """name → key for names that belong together: two names never share a key."""
    taken: dict[str, str] = {}
    result = {}
    for name in names:
        clean = key(name)
        if taken.setdefault(clean, name) != name:
            clean = f"{clean[: KEY_LIMIT - 9]}-{_digest(name)}"
            taken[clean] = name
        result[name] = clean
    return result


def flatten(config: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """(dotted name, value) of every leaf; lists become JSON text, an empty mapping is a leaf."""
    for name, value in config.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{dotted}.")
        elif isinstance(value, list | tuple | Mapping):
            yield dotted, json.dumps(value, ensure_ascii=False, default=str)
        else:
            yield dotted, value


def params(config: Mapping[str, object]) -> dict[str, str]:
    """A configuration as MLflow params."""
    leaves = dict(flatten(config))
    names = keys(leaves)
    return {names[name]: text(value, PARAM_LIMIT) for name, value in leaves.items()}


def stored(value: float) -> tuple[float, bool]:
    """(value, is it NaN) as MLflow's tables hold them: NaN is 0 with a mark, infinity the largest number."""
    if math.isnan(value):
        return 0.0, True
    if math.isinf(value):
        return (LARGEST if value > 0 else -LARGEST), False
    return value, False


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
            yield "params", Param(key, value), _bytes_of(key) + _bytes_of(value)
        for key, value in tags.items():
            yield "tags", RunTag(key, value), _bytes_of(key) + _bytes_of(value)
        for key, number, step, moment in metrics:
            yield "metrics", Metric(key, number, moment, step), _bytes_of(key) + FIGURES

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


def _bytes_of(text: str) -> int:
    return len(json.dumps(text)) + LAYOUT  # as it is sent: escaped, in quotes, on a line of its own


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
