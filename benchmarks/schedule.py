"""What is measured how often, in which order, and how long that takes: `make bench` has ninety minutes.

The seconds expected are those of the last full run on two quiet cores. A slower machine leaves rounds out instead of
taking longer: each table has its share of what is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.contenders import Contender
from benchmarks.workload import FIXED, OWN, TIERS, TRIALS, Scenario

QUICK_SECONDS = 225.0  # of the four minutes; what is left is for ending
FULL_SECONDS = 78 * 60.0  # of the ninety minutes; the other benchmarks of `make bench` take the rest
SCALED = "M"  # the tier that is run on one core, too
# There, and not back: what is ten times slower than the others, and what is ours and shows the parts' cost only.
ONCE = ("tuner_per_customer", "grid_tuner", "ours_bare")
QUICK_ONCE = (*ONCE, "plain_loop", "ours_64_bins", "ray_tasks_64_bins")
PAIR = ("ours", "ours_without_mlflow")  # measured side by side until MLflow's share has an interval
START_S, START_WITHOUT_RAY_S = 12.0, 4.0  # until a contender is warm, and from its last trial to its end
WITHOUT_RAY = ("optuna_joblib", "sklearn", "limit", "joblib", "plain_loop")
# Wall milliseconds per trial on two cores, by tier. One list of configurations; each with its own search.
EXPECTED_MS = {
    FIXED: {
        "ours": {"S": 0.8, "M": 32.0, "L": 175.0, "T": 1.8},
        "ours_64_bins": {"M": 19.0, "L": 95.0},
        "tuner_per_customer": {"S": 1600.0, "M": 1800.0, "L": 2200.0},
        "grid_tuner": {"S": 25.0, "M": 80.0, "L": 290.0},
        "ray_tasks_64_bins": {"M": 25.0, "L": 105.0},
        "sklearn": {"S": 5.5, "M": 45.0, "L": 240.0},
        "plain_loop": {"T": 5.0},
        "": {"S": 2.9, "M": 42.0, "L": 225.0, "T": 3.5},  # all others
    },
    OWN: {
        "ours": {"S": 1.6, "M": 11.0, "L": 60.0},
        "tuner_per_customer": {"S": 1600.0, "M": 1800.0, "L": 2200.0},
        "grid_tuner": {"S": 27.0, "M": 57.0, "L": 200.0},
        "sklearn": {"S": 15.0, "M": 52.0, "L": 240.0},
        "": {"S": 2.5, "M": 27.0, "L": 150.0},
    },
}
PURE_MS = {"S": 7.0, "M": 130.0, "L": 720.0, "T": 8.0}  # per trial, of all serial loops


@dataclass(frozen=True)
class Size:
    """customers: of the fast contenders. slow: the shares of the slow ones are at least so many customers.

    slow_trials: per customer for one Tuner per customer. rounds: there, back, there …; pairs: of ours with and without
    MLflow. seconds: no measurement begins later than this.
    """

    customers: int = 200
    trials: int = 20
    slow: int = 2
    slow_trials: int = 20
    rounds: int = 2
    pairs: int = 5
    pure_customers: int = 10
    seconds: float = float("inf")
    once: Sequence[str] = ONCE


def sized(tier: str, quick: bool, customers: int | None, trials: int | None, rounds: int | None) -> Size:
    """Full and quick sizes by tier; both can be scaled. Where a trial is longer, fewer customers fill as much time."""
    if quick:
        count, slow_trials, pure = {"S": (120, 10, 4), "M": (12, 5, 2), "L": (4, 5, 1), "T": (1000, 3, 10)}[tier]
        size = Size(
            count, slow_trials=slow_trials, pairs=2, pure_customers=pure, seconds=QUICK_SECONDS, once=QUICK_ONCE
        )
    else:
        count, pure = {"S": (200, 10), "M": (30, 4), "L": (8, 2), "T": (20_000, 100)}[tier]
        size = Size(count, pairs=2 if tier == "T" else 5, pure_customers=pure)
    return replace(
        size,
        customers=customers or size.customers,
        trials=trials or TRIALS.get(tier, size.trials),
        rounds=rounds or size.rounds,
        pairs=rounds or size.pairs,
    )


def searched(size: Size) -> Size:
    """For the table in which each searches by itself: half as many customers, but six, and no pairs."""
    return replace(size, customers=max(min(6, size.customers), size.customers // 2), pairs=0)


def there_and_back(chosen: Sequence[Contender], size: Size) -> Iterator[tuple[int, Contender]]:
    """(round, contender) in the order A B … B A; some once, at the turning point; then the pairs that are missing."""
    once = [one for one in chosen if one.name in size.once]
    often = [one for one in chosen if one not in once]
    pair = [one for one in often if one.name in PAIR]
    for number in range(1, max(size.rounds, size.pairs) + 1):
        now = often if number <= size.rounds else pair if number <= size.pairs and len(pair) == len(PAIR) else []
        yield from ((number, one) for one in (now if number % 2 else now[::-1]))
        if number == 1:
            yield from ((number, one) for one in once)


def given_to(contender: Contender, scenario: Scenario, size: Size) -> Scenario:
    """A contender's own share of the work, with its number of bins where all have the same configurations."""
    if scenario.search == FIXED:
        scenario = replace(scenario, bins=contender.bins)
    if contender.share == 1.0:
        return scenario
    count = max(size.slow, round(contender.share * len(scenario.customers)))
    trials = size.slow_trials if contender.name == "tuner_per_customer" else scenario.trials
    return replace(scenario, customers=scenario.customers[:count], trials=min(trials, scenario.trials))


@dataclass(frozen=True)
class Table:
    """One tier under one kind of search: who is measured, at which size, and for how many seconds presumably."""

    tier: str
    search: str
    contenders: Sequence[Contender]
    size: Size
    seconds: float


def tables(tiers: Sequence[str], chosen: Sequence[Contender], sizes: dict[str, Size], quick: bool) -> list[Table]:
    """All tables of a call, in their order; those of own searches in a full run only."""
    found = []
    for tier in tiers:
        here = [one for one in chosen if tier in one.tiers]
        found.append(_table(tier, FIXED, here, sizes[tier]))
        if not quick and not TIERS[tier].keyed:
            found.append(_table(tier, OWN, [one for one in here if one.searches], searched(sizes[tier])))
    return found


def _table(tier: str, search: str, chosen: Sequence[Contender], size: Size) -> Table:
    seconds = size.pure_customers * size.trials * PURE_MS[tier] * 3 / 1000 + START_S if search == FIXED else 0.0
    for _, contender in there_and_back(chosen, size):
        given = given_to(contender, Scenario(tier, "", tuple(map(str, range(size.customers))), size.trials), size)
        seconds += START_WITHOUT_RAY_S if contender.name in WITHOUT_RAY else START_S
        seconds += len(given.customers) * given.trials * expected_ms(contender.name, tier, search) / 1000
    return Table(tier, search, chosen, size, min(seconds, size.seconds))


def expected_ms(name: str, tier: str, search: str) -> float:
    """Of one trial; what is ours, and no more than a part switched off, takes as long as all of ours."""
    known = EXPECTED_MS[search]
    of = name if name in known else "ours" if name.startswith("ours") else ""
    return known[of][tier]


def scaling_seconds(size: Size) -> float:
    """Of ours on one core and on two, there and back."""
    return 4 * START_S + 2 * (1 + 2) * size.customers * size.trials * expected_ms("ours", SCALED, FIXED) / 1000


def announced(planned: Sequence[Table], scaling: float, most: float) -> str:
    """How long it will take, table by table."""
    lines = [f"  tier {one.tier}, {one.search} search: {one.seconds / 60:.0f} min" for one in planned]
    if scaling:
        lines.append(f"  one core and two: {scaling / 60:.0f} min")
    total = (sum(one.seconds for one in planned) + scaling) / 60
    ends = "" if most == float("inf") else f"; on a slower machine rounds are left out after {most / 60:.0f} min"
    return "\n".join([f"About {total:.0f} min on two quiet cores{ends}:", *lines])
