"""When a customer's turn for a search comes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa

from tests.unit.refresh.test_groups import after, week
from tuning.champions.champion import Challenger, Champion
from tuning.champions.release import PROMOTE, Release
from tuning.data.row_digests import ROWS
from tuning.definition.definition import define
from tuning.refresh.costs import RefreshCosts
from tuning.refresh.groups import Served
from tuning.refresh.options import RefreshOptions
from tuning.refresh.plan import RefreshPlan

SHOPS = [f"shop-{number:03d}" for number in range(200)]


def champion(customer: str, searched: int, rows: int = 4) -> Champion:
    return Champion(
        customer, "own", "../../run", customer, "models/x", "00", "[]", rows, None, None, "", 1, searched, rows, 1.0
    )


def plan(searched: dict[str, int], refreshes: int, rows: int = 4) -> RefreshPlan:
    """A plan in which each customer has one row more, after so many refreshes that followed release 1."""
    frame = week(rows, SHOPS)
    changes = after(pa.concat_tables([pa.table(frame), pa.table(week(1, SHOPS, seed=1))]).to_pandas(), frame)
    return RefreshPlan(
        definition=define({"data": frame, "by": "shop", "target": "y"}),
        options=RefreshOptions(grown=9.0),
        release=Release(1 + refreshes, refreshes or None, PROMOTE),
        number=2 + refreshes,
        customers=(),
        before=ROWS.empty_table(),
        rows=ROWS.empty_table(),
        served=Served(SHOPS),
        changes=changes,
        champions={name: champion(name, searched[name]) for name in SHOPS},
        challengers={},
        refreshes=tuple(range(2, 2 + refreshes)),
        costs=RefreshCosts(None, None),
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
    assert plan(searched, 12).work["grown"].core_seconds is None  # no run tells it


def test_who_has_a_challenger_that_still_stands_is_not_searched_for_in_vain() -> None:
    searched = dict.fromkeys(SHOPS, 2)
    standing = {name: Challenger(name, "runs/000002", None, None, None, "[]", since=2) for name in SHOPS[:50]}
    waiting = [replace(plan(searched, refreshes), challengers=standing).searched for refreshes in (5, 7, 8)]
    assert [len(each) for each in waiting] == [150, 150, 200]
    assert not {*waiting[0]} & {*standing}
