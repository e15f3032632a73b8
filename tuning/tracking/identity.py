"""Who is who in MLflow: run ids and names derived from our keys, so that writing twice changes nothing."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import lru_cache

from tuning.tracking import mlflow_limits

EXPERIMENT_NAME_LIMIT = 250  # MLflow validates 500, its database column holds 256


@dataclass(frozen=True, slots=True)
class TrackedSearch:
    """One search in one experiment: what the ids of its runs are derived from.

    run: the search's id. token: what tells it from another search with that id (its folder was emptied, say).
    """

    experiment: str
    run: str
    token: str = ""

    def id(self, study: str | None = None, trial: int | None = None) -> str:
        """32 hexadecimal characters for the search itself, one of its studies, or one trial of a study.

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


def trial_of(study: str, key: str) -> int | None:
    """The number of the trial of a study whose id this is; None for any other run. study: its id.

    >>> search = TrackedSearch("churn", "weekly")
    >>> trial_of(search.id("acme"), search.id("acme", 3))
    3
    >>> trial_of(search.id("acme"), search.id("other", 3))
    """
    start, number = study[:-8], key[-8:]
    return int(number, 16) - 1 if key[:-8] == start and number != study[-8:] else None


@lru_cache(maxsize=10_000)  # the trials of a study come one after another
def _start(search: TrackedSearch, study: str | None) -> str:
    place = [search.experiment, search.run, search.token]
    return f"{_digest(*place)[:8]}{_digest(*place, study)[:16]}"


def _digest(*parts: str | None) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def experiment_name(name: str) -> str:
    """The name as MLflow's database can hold it; a longer one keeps its start and ends with a digest."""
    name = mlflow_limits.text(name, len(name)).strip() or "unnamed"
    if len(name) <= EXPERIMENT_NAME_LIMIT:
        return name
    return f"{name[: EXPERIMENT_NAME_LIMIT - 13]}-{_digest(name)[:12]}"


def study_name(study: str, customer: str) -> str:
    """The name of a study's run: the study's own when it tells the customer, else both."""
    return study if customer in study else f"{customer} {study}"


def trial_name(study: str, customer: str, trial: int) -> str:
    """The name of a trial's run: `acme/0017`."""
    return f"{study_name(study, customer)}/{trial:04d}"
