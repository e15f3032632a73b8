"""What things are called in MLflow: run ids derived from our keys, so that writing twice changes nothing; and names,
values and numbers as MLflow accepts them.

The limits are those of `mlflow.utils.validation` (3.17) and of its tables; the strictest counts, because a
server may run an older or newer version than ours.
"""

from __future__ import annotations

import hashlib
import json
import math
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

MetricPoint = tuple[str, float, int, int]  # key, value, step, milliseconds since 1970

EXPERIMENT_NAME_LIMIT = 250  # MLflow validates 500, its database column holds 256
KEY_LIMIT = 250
PARAM_LIMIT = 6000
TAG_LIMIT = 5000  # 8,000 since MLflow 2.16, 5,000 on older servers
LARGEST = 1.7976931348623157e308  # how MLflow stores infinity

_CUT = "…"
_NOT_ALLOWED = re.compile(r"[^/\w.\- :]")


@dataclass(frozen=True, slots=True)
class TrackedSearch:
    """One search in one experiment: what the ids of its runs are derived from.

    run: the search's id. token: what tells it from another search with that id (its folder was emptied, say).
    """

    experiment: str
    run: str
    token: str = ""

    def id(self, study: str | None = None, trial: int | None = None) -> str:
        """Return 32 hexadecimal characters for the search itself, one of its studies, or one trial of a study.

        8 are of the search, 16 of the study, and 8 are the trial's number. So the trials of a study are neighbours in
        every index of a database: ids at random cost ten times as much once its indexes have outgrown the memory.

        >>> search = TrackedSearch("churn", "weekly")
        >>> search.id("acme", 3) == search.id("acme", 3)
        True
        >>> search.id("acme")[-8:], search.id("acme", 0)[-8:], search.id("acme", 16)[-8:]
        ('00000000', '00000001', '00000011')
        >>> len({search.id(), search.id("acme"), search.id("acme", 0), TrackedSearch("other", "weekly").id("acme", 0)})
        4
        """
        return f"{_start(self, study)}{0 if trial is None else trial + 1:08x}"

    @property
    def prefix(self) -> str:
        """What all of these ids begin with."""
        return self.id()[:8]


def trial_of(study: str, key: str) -> int | None:
    """Return the number of the trial of a study that an id is of; None for any other run. study: its id.

    >>> search = TrackedSearch("churn", "weekly")
    >>> trial_of(search.id("acme"), search.id("acme", 3))
    3
    >>> trial_of(search.id("acme"), search.id("other", 3))
    """
    return int(key[-8:], 16) - 1 if key[:-8] == study[:-8] and key != study else None


@lru_cache(maxsize=10_000)  # the trials of a study come one after another
def _start(search: TrackedSearch, study: str | None) -> str:
    place = [search.experiment, search.run, search.token]
    return f"{_digest(json.dumps(place))[:8]}{_digest(json.dumps([*place, study]))[:16]}"


def experiment_name(name: str) -> str:
    """Return the name as MLflow's database can hold it; a longer one keeps its start and ends with a digest."""
    name = text(name, len(name)).strip() or "unnamed"
    if len(name) <= EXPERIMENT_NAME_LIMIT:
        return name
    return f"{name[: EXPERIMENT_NAME_LIMIT - 13]}-{_digest(name)[:12]}"


def text(value: object, limit: int) -> str:
    """Return the value as text that every database takes: no NUL, no lone surrogate, cut to `limit` characters."""
    result = value if isinstance(value, str) else str(value)
    if not result.isascii():
        result = result.encode("utf-8", "replace").decode("utf-8")
    if "\0" in result:
        result = result.replace("\0", "\N{SYMBOL FOR NULL}")
    return result if len(result) <= limit else result[: limit - 1] + _CUT


@lru_cache(maxsize=4096)  # a search has few names, and every trial has all of them
def key(name: str) -> str:
    """Return a name as MLflow accepts it for params and metrics: one that it would refuse is changed, never dropped.

    >>> key("model.max_depth"), key("P(x>0)"), key("../secret"), key("")
    ('model.max_depth', 'P_x_0_', '___secret', '_')
    """
    clean = _NOT_ALLOWED.sub("_", text(name, 10_000)) or "_"
    if posixpath.normpath(clean) != clean or clean.startswith(("/", "..")) or clean == ".":
        clean = "_" if clean == "." else clean.replace("/", "_").replace("..", "__")
    return clean if len(clean) <= KEY_LIMIT else _with_digest(clean, name)


def keys(names: Iterable[str]) -> dict[str, str]:
    """Return name → key for names that belong together: two names never share a key."""
    taken: dict[str, str] = {}
    result = {}
    for name in names:
        clean = key(name)
        if taken.setdefault(clean, name) != name:
            clean = _with_digest(clean, name)
            taken[clean] = name
        result[name] = clean
    return result


def flatten(config: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield (dotted name, value) of every leaf; lists become JSON text, an empty mapping is a leaf."""
    for name, value in config.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{dotted}.")
        elif isinstance(value, list | tuple | Mapping):
            yield dotted, json.dumps(value, ensure_ascii=False, default=str)
        else:
            yield dotted, value


def params(config: Mapping[str, object]) -> dict[str, str]:
    """Return a configuration as MLflow params."""
    leaves = dict(flatten(config))
    names = keys(leaves)
    return {names[name]: text(value, PARAM_LIMIT) for name, value in leaves.items()}


def stored(value: float) -> tuple[float, bool]:
    """Return (value, is it NaN) as MLflow's tables hold them: NaN is 0 with a mark, infinity the largest number."""
    if math.isnan(value):
        return 0.0, True
    return max(-LARGEST, min(LARGEST, value)), False


def _with_digest(clean: str, name: str) -> str:
    return f"{clean[: KEY_LIMIT - 9]}-{_digest(name)[:8]}"


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
