"""When a customer's turn for a search comes."""

from __future__ import annotations

from collections import Counter

from tuning.basics.columnar import Columnar
from tuning.data.customers import Customer
from tuning.definition.definition import define
from tuning.serving.champion import Champion
from tuning.serving.plan import Changes, RefreshOptions, RefreshPlan
from tuning.serving.release import PROMOTE, Release

SHOPS = [f"shop-{number:03d}" for number in range(200)]


def plan(searched: dict[str, int], refreshes: int, size: int = 100, promotion: str = "better") -> RefreshPlan:
    """A plan in which each customer has other rows, after so many refreshes that followed release 1."""
    customers = Columnar.of(Customer, [Customer(name, (f"{name}.csv",), size=size) for name in SHOPS])
    return RefreshPlan(
        definition=define({"data": "*.csv", "target": "y"}),
        options=RefreshOptions(promotion),
        release=Release(1 + refreshes, refreshes or None, PROMOTE),
        number=2 + refreshes,
        champions={
            name: Champion(
                *(name, "own", "../../run", name, "models/x", "00", "[]", 4, 1), searched=number, searched_size=100
            )
            for name, number in searched.items()
        },
        changes=Changes(customers, tuple(SHOPS), (), ()),
        refreshes=tuple(range(2, 2 + refreshes)),
    )


def test_after_a_run_of_everybody_searches_are_spread_over_four_refreshes_and_then_return_every_four() -> None:
    searched, shares, times = dict.fromkeys(SHOPS, 1), [], Counter[str]()
    for refreshes in range(12):
        due = plan(searched, refreshes).searched
        searched |= dict.fromkeys(due, 2 + refreshes)
        times.update(due)
        shares.append(len(due) / len(SHOPS))
    assert all(0.15 < share < 0.35 for share in shares), shares
    assert set(times.values()) == {3}


def test_who_has_grown_by_a_quarter_is_searched_for_at_once_and_nobody_where_nobody_is_promoted() -> None:
    searched = dict.fromkeys(SHOPS, 2)
    assert [len(plan(searched, 1, size).searched) for size in (124, 125)] == [0, 200]
    assert plan(searched, 9, 200, "never").searched == []
