"""Whose run is next, and with how many slots: the queue's own code with a clock that is handed in."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuning.service.queue.shares import DAY_S, Shares, SlotUse, Waiting
from tuning.service.settings import Quotas, ServiceSettings, Team


def server(**teams: Team) -> ServiceSettings:
    return ServiceSettings(database="sqlite://", storage="runs", work=Path("work"), teams=teams)


def simulated(config: ServiceSettings, total: int, runs: list[tuple[Waiting, float]], until: float) -> list[SlotUse]:
    """Uses of slots of runs, each with the seconds that it takes, as the queue would start them."""
    takes, waiting = {run.run: seconds for run, seconds in runs}, {run.run: run for run, _ in runs}
    uses, ends, now = list[SlotUse](), dict[str, tuple[float, int]](), 0.0
    while now < until:
        for run in [run for run, (end, _) in ends.items() if end <= now]:
            place = ends.pop(run)[1]
            use = uses[place]
            uses[place] = SlotUse(use.team, use.slots, use.since, now)
        while choice := Shares(config, total, uses, now).next_run(waiting.values()):
            run = waiting.pop(choice.run)
            ends[run.run] = (now + takes[run.run], len(uses))
            uses.append(SlotUse(run.team, choice.slots, now))
            assert sum(use.slots for use in uses if use.until is None) <= total
        now = min((end for end, _ in ends.values()), default=until)
    return uses


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_an_hour_divides_slot_seconds_by_the_shares(seed: int) -> None:
    rng = random.Random(seed)
    config = server(a=Team(), b=Team(), c=Team(share=2))
    runs = [
        (Waiting(f"{team}{number}", team, 0, float(number), rng.choice([None, 1, 2, 3, 4])), rng.uniform(5, 60))
        for team in "abc"
        for number in range(700)
    ]
    uses = simulated(config, 8, runs, 3600)
    had = {team: sum(use.seconds(3600) for use in uses if use.team == team) for team in "abc"}
    for team, share in {"a": 0.25, "b": 0.25, "c": 0.5}.items():
        assert had[team] / sum(had.values()) == pytest.approx(share, rel=0.05)
    assert sum(had.values()) > 0.85 * 8 * 3600  # and few slots are idle, though large runs wait for room


def test_a_teams_first_run_is_next_after_anothers_hundred() -> None:
    waiting = [Waiting(f"a{number}", "a", 0, float(number), 2) for number in range(100)]
    uses = [SlotUse("a", 2, 0.0), SlotUse("a", 2, 0.0)]
    waiting.append(Waiting("b", "b", 0, 1000.0, 2))
    assert Shares(server(), 4, uses, 1001.0).next_run(waiting) is None
    choice = Shares(server(), 4, [SlotUse("a", 2, 0.0), SlotUse("a", 2, 0.0, 1001.0)], 1001.0).next_run(waiting)
    assert choice is not None
    assert choice.run == "b"
    assert Shares(server(), 4, uses, 1001.0).places(waiting)["b"] == 1


def test_within_a_team_priority_decides_then_age() -> None:
    waiting = [Waiting("old", "a", 0, 1.0, 1), Waiting("urgent", "a", 5, 3.0, 1), Waiting("older", "a", 0, 0.0, 1)]
    places = Shares(server(), 4, [], 10.0).places(waiting)
    assert sorted(places, key=places.__getitem__) == ["urgent", "older", "old"]


def test_the_next_run_waits_for_room_and_none_overtakes_it() -> None:
    waiting = [Waiting("large", "a", 0, 1.0, 4), Waiting("small", "b", 0, 2.0, 1)]
    taken = SlotUse("c", 2, 0.0)
    assert Shares(server(), 4, [taken], 10.0).next_run(waiting) is None


def test_without_slots_a_run_gets_its_teams_share_and_one_at_least() -> None:
    config = server(c=Team(share=2))
    waiting = {team: Waiting(team, team, 0, 1.0) for team in "abc"}
    shares = Shares(config, 8, [], 10.0)
    assert [shares.slots_for(waiting[team], "abc") for team in "abc"] == [2, 2, 4]
    assert shares.slots_for(waiting["a"], "a") == 8
    assert Shares(config, 2, [], 10.0).slots_for(waiting["a"], "abc") == 1


def test_a_run_that_asks_for_more_than_a_cluster_has_left_gets_all() -> None:
    choice = Shares(server(), 3, [], 0.0).next_run([Waiting("x", "a", 0, 0.0, 16)])
    assert choice is not None
    assert choice.slots == 3


@pytest.mark.parametrize("quotas", [Quotas(slots=2), Quotas(core_seconds_per_day=100)], ids=["slots", "core-seconds"])
def test_a_team_at_its_quota_is_passed_over(quotas: Quotas) -> None:
    config = server(a=Team(quotas=quotas, share=100))
    waiting = [Waiting("a", "a", 9, 0.0, 1), Waiting("b", "b", 0, 5.0, 1)]
    choice = Shares(config, 8, [SlotUse("a", 2, 0.0)], 60.0).next_run(waiting)
    assert choice is not None
    assert choice.run == "b"


def test_a_pause_holds_a_run_back_but_not_when_the_clock_was_set_back_an_hour() -> None:
    paused = Waiting("x", "a", 0, 0.0, 1, not_before=1000.0)
    assert Shares(server(), 1, [], 950.0).next_run([paused]) is None
    assert Shares(server(), 1, [], 1000.0).next_run([paused]) is not None
    assert Shares(server(), 1, [], 1000.0 - 3600).next_run([paused]) is not None
    assert SlotUse("a", 2, 1000.0, 100.0).seconds(100.0) == 0


def test_only_the_last_day_counts() -> None:
    assert SlotUse("a", 2, 0.0, DAY_S).seconds(DAY_S + 100) == 2 * (DAY_S - 100)
    assert SlotUse("a", 2, 0.0, 100.0).seconds(DAY_S + 200) == 0


RUN = st.tuples(st.sampled_from("abc"), st.none() | st.integers(1, 12), st.floats(0.1, 50), st.integers(-2, 2))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 8), st.lists(RUN, max_size=25), st.sampled_from([None, 1, 3]))
def test_slots_are_never_exceeded_and_every_run_has_its_turn(
    total: int, drawn: list[tuple[str, int | None, float, int]], most: int | None
) -> None:
    config = server(a=Team(quotas=Quotas(slots=most)), b=Team(share=3))
    runs = [
        (Waiting(str(number), team, priority, float(number), slots), seconds)
        for number, (team, slots, seconds, priority) in enumerate(drawn)
    ]
    uses = simulated(config, total, runs, 10_000)
    assert len(uses) == len(runs)
    for use in uses:
        if use.team == "a":
            assert sum(o.slots for o in uses if o.team == "a" and o.since <= use.since < o.until) <= (most or total)
    assert sorted(Shares(config, total, [], 0.0).places([run for run, _ in runs]).values()) == [
        *range(1, len(runs) + 1)
    ]
