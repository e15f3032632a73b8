"""Evidence that a challenger is better: true whatever the losses are like, and whenever one looks."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.promotion.__main__ import null_values
from benchmarks.promotion.draws import NULLS, Customers
from benchmarks.promotion.weeks import weeks_of
from tuning.champions.comparison import RowComparison
from tuning.champions.discoveries import e_bh
from tuning.champions.evidence import Evidence, usual_difference
from tuning.champions.losses import MetricSoFar


@pytest.mark.parametrize("name", NULLS)
def test_who_is_exactly_as_good_has_an_e_value_of_one_at_most_also_at_the_best_moment(name: str) -> None:
    values, largest = null_values("ours", name, rows=20, count=1000, bound=1.0 if name.startswith("0/1") else np.inf)
    assert values.mean() <= 1 + 3 * values.std() / np.sqrt(len(values))
    for limit in (5, 20):
        assert (largest >= np.log(limit)).mean() <= 1 / limit + 3 * np.sqrt(1 / limit / len(values))


def test_clipped_losses_and_a_normal_mixture_fail_where_one_row_in_a_hundred_loses_fifty_times_the_rest() -> None:
    """So the test above can fail."""
    for form in ("clipped bets", "normal mixture", "ours without the second bet"):
        values, largest = null_values(form, list(NULLS)[-1], rows=20, count=1000, bound=np.inf)
        assert values.mean() > 1 + 3 * values.std() / np.sqrt(len(values)) or (largest >= np.log(20)).mean() > 0.1


def test_nothing_improved_and_within_eight_weeks_nobody_is_promoted_more_often_than_promised() -> None:
    nothing = Customers.of(300)
    ours = weeks_of("ours", nothing, rows=50, repetitions=5)
    assert ours.false_share == 0
    again = weeks_of("t-test and BH each week", nothing, rows=50, repetitions=10)
    assert again.false_share > 0.2


def test_a_challenger_with_rare_disasters_is_not_promoted() -> None:
    disasters = Customers.of(200, disasters=1)
    assert weeks_of("ours", disasters, rows=100, repetitions=2).falsely <= 0.02
    assert weeks_of("clipped bets", disasters, rows=100, repetitions=2).falsely > 0.2


def test_who_is_truly_better_is_found() -> None:
    found = weeks_of("ours", Customers.of(200, better=0.2, gain=0.1), rows=200, repetitions=2).found
    assert found[-1] > 0.9
    assert (np.diff(found) >= 0).all()


def test_rows_count_the_same_in_any_order_and_of_one_customer_as_of_many() -> None:
    rng = np.random.default_rng(0)
    earlier, first, second = (rng.standard_normal((3, rows)) for rows in (20, 40, 60))
    many = Evidence.start(earlier).after(first).after(second)
    one = Evidence.start(earlier[1]).after(first[1, ::-1]).after(second[1, ::-1])
    assert one.log_e() == pytest.approx(many.log_e()[1])
    assert many.rows.tolist() == [100, 100, 100]


def test_without_older_rows_the_first_ones_only_tell_how_large_differences_are() -> None:
    d = np.full(50, 0.1)
    begun = Evidence.start(np.empty(0)).after(np.zeros(10)).after(d)
    assert begun.log_e() == pytest.approx(0)
    assert begun.rows == 0
    assert begun.usual == pytest.approx(0.1)
    assert begun.after(d).log_e() > 0


def test_two_models_that_answer_alike_are_neither_better_nor_worse() -> None:
    same = Evidence.start(np.zeros(20)).after(np.zeros(100)).after(np.zeros(100))
    assert same.log_e() == pytest.approx(0)
    assert np.isnan(same.usual)


def test_a_loss_beyond_the_reach_costs_a_bet_as_much_as_it_is_worth() -> None:
    evidence = Evidence.start(np.linspace(-1, 1, 50)).after(np.full(1000, 0.3))
    before = float(evidence.log_e())
    assert before > 6
    # About that of one that is just beyond the boldest bet: the others go on.
    assert before - 4 < float(evidence.after(np.array([-7.0])).log_e()) < before - 0.5
    # Of one that takes away all that was gained, nothing is left.
    assert float(evidence.after(np.array([-300.0])).log_e()) < 0


@pytest.mark.parametrize("rarely", [0.002, 0.01, 0.05])
def test_where_all_rows_together_are_no_better_nothing_is_sure_however_rare_the_losses_are(rarely: float) -> None:
    d = 0.2 + np.random.default_rng(0).standard_normal(4000)
    step = round(1 / rarely)
    d[::step] -= 1.02 * d.sum() / len(d[::step])
    assert d.sum() < 0
    assert Evidence.start(d[:50]).after(d[50:]).log_e() <= 0.01


def test_as_many_rows_as_there_are_say_no_more_than_they_can() -> None:
    """However good they are: what happens once in a hundred rows would often not be among 50 of them."""
    few = Evidence.start(np.linspace(-1, 1, 50)).after(np.full(50, 5.0))
    assert 1.2 < np.exp(few.log_e()) < 0.99**-50
    known = Evidence.start(np.linspace(-1, 1, 50), bound=1.0).after(np.full(50, 1.0))
    assert known.log_e() > 9


def test_the_usual_difference_is_that_of_rows_which_differ() -> None:
    d = np.concatenate([np.zeros(10), np.arange(1.0, 11.0)])
    assert usual_difference(np.stack([d, -d, 0 * d])) == pytest.approx([9.0, 9.0, np.nan], nan_ok=True)


def test_a_comparison_is_kept_as_text_and_goes_on_as_if_it_had_not_been() -> None:
    rng = np.random.default_rng(1)
    losses = rng.gamma(2.0, size=(4, 2, 30))
    begun = RowComparison.start(losses[0, 0] - losses[0, 1], least_gain=0.01, metric=MetricSoFar(30, 0.7, 0.8))
    kept = RowComparison.of_json(begun.after(*losses[1]).to_json())
    going_on, text = begun.after(*losses[1]).after(*losses[2]), kept.after(*losses[2])
    assert text.to_json() == going_on.to_json()
    assert text.metric == MetricSoFar(30, 0.7, 0.8)
    assert len(kept.to_json()) < 800


def test_the_gain_and_its_error_are_those_of_a_ratio_of_means() -> None:
    rng = np.random.default_rng(2)
    champion = rng.gamma(2.0, size=(2000, 50))
    challenger = 0.9 * champion + rng.normal(scale=0.3, size=champion.shape)
    many = RowComparison.start(np.empty((2000, 0))).after(champion, challenger)
    assert many.gain().mean() == pytest.approx(0.1, abs=0.002)
    assert np.median(many.gain_error()) == pytest.approx(many.gain().std(), rel=0.05)


def test_least_gain_asks_for_more_than_nothing() -> None:
    rng = np.random.default_rng(3)
    champion = rng.gamma(2.0, size=2000)
    challenger = 0.97 * champion
    evidence = {
        least: float(RowComparison.start(np.empty(0), least_gain=least).after(*half).after(*half).better.log_e())
        for least in (0.0, 0.05)
        for half in [(champion, challenger)]
    }
    assert evidence[0.0] > 5
    assert evidence[0.05] < 0


def _plain_e_bh(e: np.ndarray, rate: float) -> set[int]:
    """As its definition reads."""
    n = len(e)
    best: set[int] = set()
    for k in range(1, n + 1):
        largest = set(sorted(range(n), key=lambda place: -e[place])[:k])
        if min(e[place] for place in largest) >= n / (rate * k):
            best = largest
    return best


@pytest.mark.parametrize("seed", range(20))
def test_discoveries_are_those_of_the_definition(seed: int) -> None:
    rng = np.random.default_rng(seed)
    e = np.exp(rng.normal(scale=4, size=40)) * rng.choice([1, 5], size=40)
    found = e_bh(np.log(e), 0.1)
    assert set(np.flatnonzero(found.chosen)) == _plain_e_bh(e, 0.1)
    for place in range(40):  # with what is needed each would be one, with less it would not
        with_needed = e.copy()
        with_needed[place] = found.needed[place] * (1 + 1e-9)
        assert place in _plain_e_bh(with_needed, 0.1)


def test_without_comparisons_there_are_no_discoveries() -> None:
    assert e_bh(np.empty(0), 0.1).chosen.tolist() == []
