"""How long a run will take, by the pace so far."""

from __future__ import annotations

import numpy as np
import pytest

from tuning.basics.timing import Timing
from tuning.driver.hosts.forks import Pace
from tuning.records.parts import ENDING, PartWritten
from tuning.runs.progress import Counter, Progress
from tuning.study.study import TRIAL_ROWS


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_first_estimate_waits_until_there_is_a_pace() -> None:
    clock = Clock()
    counter = Counter(Progress(trials=1010, studies=101), work=1010, clock=clock)
    clock.now = 40.0  # Ray and the workers have started
    for worker in range(10):  # whose first reports come all at once
        counter(PartWritten(f"first-{worker}", trials=1, work=1))
    assert counter.now.seconds_left is None
    clock.now = 45.0
    counter(PartWritten("a", trials=50, work=50))
    assert counter.now.seconds_left is None
    clock.now = 50.0
    counter(PartWritten("b", trials=41, work=41))
    assert counter.now.seconds_left == pytest.approx(909 / 41 * 5)  # the first ones have waited for libraries
    assert "2 min left" in str(counter.now)
    counter(PartWritten("c", studies=101, work=909))
    assert counter.now.seconds_left is None


def test_what_all_workers_report_at_once_is_no_pace() -> None:
    clock = Clock()
    counter = Counter(Progress(trials=1000, studies=1), work=1000, clock=clock)
    for worker in range(16):
        clock.now = worker / 20
        counter(PartWritten(f"first-{worker}", trials=1, work=1))
    for clock.now in (1.0, 5.0, 9.0):
        assert counter.now.seconds_left is None


def test_until_the_rate_is_known_the_last_owners_counts() -> None:
    clock = Clock()
    counter = Counter(
        Progress(trials=100, studies=1, done_trials=20), work=200, clock=clock, done_work=40, earlier_rate=4.0
    )
    assert counter.now.seconds_left == pytest.approx(20.0)
    for clock.now in range(11):
        counter(PartWritten(f"{clock.now}", trials=1, work=2))
    assert counter.now.seconds_left == pytest.approx(69.0)


def test_while_other_workers_start_nothing_is_estimated_and_then_by_their_pace_alone() -> None:
    clock = Clock()
    counter = Counter(Progress(trials=200, studies=20), work=200, clock=clock, doing="starting")
    for clock.now in range(20):
        counter(PartWritten(f"fork-{clock.now}", trials=1, work=1))
    assert counter.now.seconds_left == pytest.approx(180.0)
    counter.doing = "starting Ray"
    clock.now = 30.0
    assert str(counter.now) == "0/20 customers, 20 trials, starting Ray"
    for clock.now in range(40, 60):
        assert counter.now.seconds_left is None or clock.now >= 50
        counter(PartWritten(f"ray-{clock.now}", trials=4, work=4))
    assert counter.now.seconds_left == pytest.approx(25.0)
    assert counter.now.rate == pytest.approx(4.0)


def test_while_a_last_fit_takes_longer_than_the_pace_says_no_time_is_named() -> None:
    clock = Clock()
    counter = Counter(Progress(trials=1000, studies=2), work=1004, clock=clock)
    for clock.now in range(101):
        counter(PartWritten(f"{clock.now}", trials=10 * (clock.now > 0), work=10 * (clock.now > 0)))
    counter(PartWritten("first", studies=1, work=2))
    for clock.now in (100.0, 101.0, 160.0, 1000.0, 10_000.0):
        assert counter.now.seconds_left is None
        assert "left" not in str(counter.now)
    resumed = Counter(Progress(trials=10, studies=1, done_trials=10), work=12, done_work=12, clock=clock)
    for clock.now in (0.0, 10.0):
        resumed(PartWritten(f"{clock.now}", trials=0, work=1))
    assert str(resumed.now) == "10/10 trials, the last fit goes on"


def test_between_two_reports_the_time_left_falls_until_it_is_over() -> None:
    """As while the largest customer's last fit goes on, and nobody else is left."""
    clock = Clock()
    counter = Counter(Progress(trials=100, studies=1), work=100, clock=clock)
    for clock.now in range(81):
        counter(PartWritten(f"{clock.now}", trials=1, work=1))
    said = []
    for clock.now in range(80, 100, 5):
        said.append(counter.now.seconds_left)
    assert said == [pytest.approx(19.0), pytest.approx(14.0), pytest.approx(9.0), pytest.approx(4.0)]
    clock.now = 100.0
    assert counter.now.seconds_left is None


@pytest.mark.parametrize("order", ["largest first", "smallest first", "as they come"])
def test_at_half_time_the_estimate_is_right_although_customers_differ_in_size(order: str) -> None:
    """A customer takes as long as its rows say, the largest a thousand times as long as the smallest."""
    rng = np.random.default_rng(1)
    rows = np.exp(rng.uniform(np.log(50), np.log(50_000), 200))
    rows = rows if order == "as they come" else np.sort(rows)[:: -1 if order == "largest first" else 1]
    trials, clock = 20, Clock()
    unit = TRIAL_ROWS + rows
    seconds = 1e-4 * unit * rng.lognormal(sigma=0.5, size=(trials + ENDING, len(rows)))  # of each trial, and the end
    counter = Counter(
        Progress(trials=trials * len(rows), studies=len(rows)), float((trials + ENDING) * unit.sum()), clock=clock
    )
    total, said = seconds.sum(), None
    for customer, each in enumerate(unit):
        for trial in range(trials):
            clock.now += seconds[trial, customer]
            counter(PartWritten(f"{customer}-{trial}", trials=1, work=each))
            if said is None and clock.now >= total / 2:
                said = counter.now.seconds_left
        clock.now += seconds[trials:, customer].sum()
        counter(PartWritten(f"{customer}", studies=1, work=ENDING * each))
    assert said == pytest.approx(total / 2, rel=0.2)
    assert counter.now.share == pytest.approx(1.0)


def test_the_rest_is_judged_by_the_pace_so_far() -> None:
    clock = Clock()
    counter = Counter(Progress(trials=100, studies=1, done_trials=20), clock=clock)
    pace = Pace(counter, Timing(first_trial_s=3.0))
    clock.now = 2.9
    counter(PartWritten("a", trials=1))
    assert not pace.slower_than(8.0)  # it has waited for libraries
    clock.now = 3.9
    counter(PartWritten("b", trials=8))
    assert pace.slower_than(8.0)  # 71 more, 8 per second
    assert not pace.slower_than(9.0)
    clock.now = 4.9
    counter(PartWritten("c", trials=63))
    assert not pace.slower_than(8.0)
    clock.now = 13.0  # nothing has come since
    assert pace.slower_than(8.0)


def test_a_first_trial_that_takes_long_is_a_slow_one() -> None:
    clock = Clock()
    counter = Counter(Progress(trials=100, studies=1), clock=clock)
    pace = Pace(counter, Timing(first_trial_s=3.0))
    clock.now = 2.9
    assert not pace.slower_than(8.0)
    clock.now = 3.1
    assert pace.slower_than(8.0)
    counter(PartWritten("a", trials=1))
    assert not pace.slower_than(8.0)
    clock.now = 4.2  # more than a second for the next
    assert pace.slower_than(8.0)
