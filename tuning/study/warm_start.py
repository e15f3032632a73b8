"""Warm start: configurations that a study tries first, and those whose score it knows already."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence

from search_spaces import SearchSpace, SpaceError
from tuning.definition.options import WarmStart
from tuning.errors import PlanError
from tuning.study.interfaces import Configuration
from tuning.wording import did_you_mean


def of_customer(entries: Iterable[WarmStart], customer: str) -> tuple[WarmStart, ...]:
    """Those entries that are for everybody or for this customer."""
    return tuple(entry for entry in entries if entry.customer in (None, customer))


def points_to_try(space: SearchSpace, entries: Sequence[WarmStart]) -> list[Configuration]:
    """What a study tries first.

    The default configuration comes first, always, since every score is compared with it; then the entries without a
    score, in their order, each configuration once.
    """
    given = [space.complete(entry.config) for entry in entries if entry.score is None]
    points: dict[str, Configuration] = {}
    for config in (space.default(), *given):
        points.setdefault(json.dumps(config, sort_keys=True), config)
    return list(points.values())


def points_known(entries: Sequence[WarmStart]) -> list[tuple[Configuration, float]]:
    """The configurations whose score is known already: the searcher learns from them, none of them is a trial."""
    return [(entry.config, entry.score) for entry in entries if entry.score is not None]


def check_customers(entries: Sequence[WarmStart], known: Collection[str]) -> None:
    """`PlanError` for an entry for a customer that is not there: known are the ids of all of them."""
    for number, entry in enumerate(entries):
        if entry.customer is not None and entry.customer not in known:
            raise PlanError(
                f"warm_start.{number}.customer: there is no customer {entry.customer!r} among {len(known)}."
                f"{did_you_mean(entry.customer, known)}"
            )


def check(entries: Sequence[WarmStart], space: SearchSpace, own: Mapping[str, SearchSpace], n_trials: int) -> list[str]:
    """Notes on what cannot come to pass; the default, with which every study begins, is checked too.

    space: the run's. own: search spaces by customer, of those who have one.

    Raises:
        PlanError: a configuration outside the space it is for, a default that the constraints refuse.
    """
    for whose, each in {"": space, **{f"customer {name!r}: ": one for name, one in own.items()}}.items():
        try:
            each.default()
        except SpaceError as error:
            way_out = "give the parameters defaults that the constraints allow, since every search starts there"
            raise PlanError(f"{whose}search_space: {error}; {way_out}.") from error
    for number, entry in enumerate(entries):
        spaces = [own.get(entry.customer, space)] if entry.customer is not None else [space, *own.values()]
        for each in {id(one): one for one in spaces}.values():
            try:
                each.complete(entry.config)
            except SpaceError as error:
                raise PlanError(str(error.under(f"warm_start.{number}.config"))) from error
    everybody = sum(entry.score is None and entry.customer is None for entry in entries)
    if everybody >= n_trials:
        return [
            f"warm_start fills all {n_trials} trials with given configurations; more trials leave room for a search."
        ]
    return []
