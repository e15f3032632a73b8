"""What a study starts with: the points that it evaluates first, and those with a known score."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache

from search_spaces import SearchSpace, SpaceError
from search_spaces.parameters import Choice, Parameter
from search_spaces.values import own_copy
from tuning.basics.wording import did_you_mean, name_list
from tuning.definition.baselines import COLUMN, MEAN, GivenBaseline, configuration_of
from tuning.definition.options import WarmStart
from tuning.definition.run_spec import RunSpec
from tuning.errors import PlanError
from tuning.evaluation.fixed import FixedConfiguration
from tuning.models.families.constant import FAMILY as CONSTANT
from tuning.models.pooled import POOL
from tuning.notes import Note, PlanCode
from tuning.records.schema import MODEL, Config, TrialRecord, best_first
from tuning.study.interfaces import Configuration


def of_customer(entries: Iterable[WarmStart], customer: str) -> tuple[WarmStart, ...]:
    """Return those entries that are for everybody or for this customer."""
    return tuple(entry for entry in entries if entry.customer in (None, customer))


def fitting(portfolio: Iterable[Configuration], space: SearchSpace) -> list[Configuration]:
    """Return the configurations of a portfolio that a search space has, complete: what it adds has its default."""
    found: list[Configuration] = []
    for config in portfolio:
        with suppress(SpaceError):
            found.append(space.complete(config))
    return found


def points_to_evaluate(
    space: SearchSpace,
    portfolio: Sequence[Configuration] = (),
    entries: Sequence[WarmStart] = (),
    baseline: Configuration | None = None,
    own: Sequence[Configuration] = (),
) -> list[Configuration]:
    """Return what a study tries first, each configuration once.

    The given baseline comes first, else the first of the portfolio that the space has, else the default configuration:
    with it every score is compared, unless the baseline is no configuration. Then come the study's own, and the entries
    without a score in their order, which somebody has named for this search, then the rest of the portfolio.

    portfolio, own: some of which the space may not have. entries: of `warm_start`, for everybody and for the customer.
    """
    if entries or own or baseline is not None:
        return _in_order(space, portfolio, entries, baseline, own)
    points = _of_portfolio(space, _SamePortfolio(portfolio))
    return [own_copy(config) for config in points]


class _SamePortfolio:
    """A portfolio as a key of a cache: equal where it is the same object."""

    def __init__(self, portfolio: Sequence[Configuration]) -> None:
        self.portfolio = portfolio

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SamePortfolio) and other.portfolio is self.portfolio

    def __hash__(self) -> int:
        return id(self.portfolio)


@lru_cache(maxsize=1)
def _of_portfolio(space: SearchSpace, key: _SamePortfolio) -> list[Configuration]:
    """As `points_to_evaluate`, for studies that begin alike: a check costs as much as a small customer's fits."""
    return _in_order(space, key.portfolio, (), None, ())


def _in_order(
    space: SearchSpace,
    portfolio: Sequence[Configuration],
    entries: Sequence[WarmStart],
    baseline: Configuration | None,
    own: Sequence[Configuration],
) -> list[Configuration]:
    first, *rest = fitting(portfolio, space) or [space.default()]
    given = fitting(own, space)
    given += [space.complete(entry.config) for entry in entries if entry.score is None]
    order = (first, *given, *rest) if baseline is None else (space.complete(baseline), *given, first, *rest)
    points: dict[str, Configuration] = {}
    for config in order:
        points.setdefault(json.dumps(config, sort_keys=True), config)
    return list(points.values())


def evaluated_points(entries: Sequence[WarmStart]) -> list[tuple[Configuration, float]]:
    """Return the configurations with a known score: the searcher learns from them, none of them is a trial."""
    return [(entry.config, entry.score) for entry in entries if entry.score is not None]


def check_customers(entries: Sequence[WarmStart], known: Collection[str]) -> None:
    """Raise `PlanError` for an entry for a customer that is not there: known are the ids of all of them."""
    for number, entry in enumerate(entries):
        if entry.customer is not None and entry.customer not in known:
            raise PlanError(
                f"warm_start.{number}.customer: there is no customer {entry.customer!r} among {len(known)}."
                f"{did_you_mean(entry.customer, known)}"
            )


def check(spec: RunSpec, own: Mapping[str, SearchSpace]) -> list[Note]:
    """Return a note where all trials are known beforehand; check also the default, with which studies may begin.

    own: search spaces by customer, of those who have one.

    Raises:
        PlanError: a configuration outside the space it is for, a default that the constraints refuse.
    """
    entries, space, n_trials = spec.definition.warm_start, spec.space, spec.definition.trials
    for owner, each in {"": space, **{f"customer {name!r}: ": one for name, one in own.items()}}.items():
        try:
            each.default()
        except SpaceError as error:
            way_out = "give the parameters defaults that the constraints allow, since every search starts there"
            raise PlanError(f"{owner}search_space: {error}; {way_out}.") from error
    _check_baseline(spec.definition.baseline, [space, *own.values()])
    for number, entry in enumerate(entries):
        spaces = [own.get(entry.customer, space)] if entry.customer is not None else [space, *own.values()]
        for each in {id(one): one for one in spaces}.values():
            try:
                each.complete(entry.config)
            except SpaceError as error:
                raise PlanError(str(error.under(f"warm_start.{number}.config"))) from error
    baseline, for_all = configuration_of(spec.definition.baseline), of_customer(entries, "")
    filled = len(points_to_evaluate(space, spec.portfolio, for_all, baseline))
    if n_trials == 1 or filled < n_trials:
        return []
    given = sum(entry.score is None and entry.customer is None for entry in entries)
    sources = ["warm_start"] * bool(given) + ["portfolio"] * (given < n_trials)
    return [PlanCode.ALL_KNOWN(trials=n_trials, sources=" and ".join(sources))]


def _check_baseline(given: GivenBaseline, spaces: Sequence[SearchSpace]) -> None:
    """Raise `PlanError` for a configuration that not all search spaces have: in each it would be another one."""
    config = configuration_of(given)
    if config is None:
        return
    for space in spaces:
        models = [str(value) for each in space.parameters if each.name == MODEL for value in _values_of(each)]
        if isinstance(given, str) and given not in models:
            raise PlanError(
                f"baseline: {given!r} is no model of the search space, which has {name_list(models, 20)}."
                f"{did_you_mean(given, [*models, MEAN])} Predictions of your own are {{{COLUMN}: NAME}}."
            )
        try:
            space.complete(config)
        except SpaceError as error:
            raise PlanError(f"{error.under('baseline')}. Correct it, or widen `search_space`.") from error


def _values_of(parameter: Parameter) -> Sequence[object]:
    return parameter.values if isinstance(parameter, Choice) else (parameter.default,)


def known_entries(fixed: Mapping[str, FixedConfiguration]) -> list[dict[str, object]]:
    """Return the `warm_start` of a search that is not to lose known configurations: of an ensemble every member's.

    A schedule is tried as it began: its end alone was never trained with from the start. A constant and the pool
    are in no search space, and left out. fixed: by customer.
    """
    return [
        {"config": member.stages[0].config if member.stages else member.config, "customer": customer}
        for customer, each in fixed.items()
        for member in each.members
        if member.family not in (POOL, CONSTANT.name)
    ]


def best_entries(trials: Iterable[TrialRecord], best: int) -> list[dict[str, object]]:
    """Return the `warm_start` of a next run: every customer's best configurations, so many; of a schedule its first."""
    by_customer: dict[str, list[TrialRecord]] = {}
    for record in trials:
        by_customer.setdefault(record.customer, []).append(record)
    entries: list[dict[str, object]] = []
    for customer, records in sorted(by_customer.items()):
        configs: list[Config] = []
        for record in best_first(records):
            config = record.changes[0][1] if record.changes else record.config
            if len(configs) < best and config not in configs:
                configs.append(config)
        entries += [{"config": config, "customer": customer} for config in configs]
    return entries
