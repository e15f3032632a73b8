"""Measured gains held back towards the mean of all."""

from __future__ import annotations

import numpy as np
import pytest

from tuning.champions.shrinkage import most_no_better, shrunken


def drawn(count: int, mean: float, spread: float, error: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    true = rng.normal(mean, spread, count)
    return true, true + rng.normal(0, error, count)


def test_mean_and_spread_are_those_of_the_true_gains() -> None:
    true, measured = drawn(3000, 0.01, 0.03, 0.05)
    found = shrunken(measured, np.full(3000, 0.05), np.full(3000, 200))
    assert found.mean == pytest.approx(0.01, abs=0.004)
    assert found.spread == pytest.approx(0.03, abs=0.005)
    assert ((found.gain - true) ** 2).mean() < 0.4 * ((measured - true) ** 2).mean()
    assert abs(found.gain - true).mean() == pytest.approx(np.sqrt(2 / np.pi) * found.deviation.mean(), rel=0.1)


def test_what_winners_are_measured_to_gain_is_too_good_and_what_is_left_is_not() -> None:
    true, measured = drawn(3000, 0.0, 0.02, 0.05, seed=1)
    found = shrunken(measured, np.full(3000, 0.05), np.full(3000, 200))
    best = np.argsort(-measured)[:100]
    assert measured[best].mean() > 4 * true[best].mean()
    assert found.gain[best].mean() == pytest.approx(true[best].mean(), abs=0.01)


def test_where_errors_explain_all_everybody_gets_the_mean() -> None:
    _, measured = drawn(500, 0.02, 0.0, 0.05, seed=2)
    found = shrunken(measured, np.full(500, 0.05), np.full(500, 100))
    assert np.ptp(found.gain) < 0.01 < np.ptp(measured) / 20
    assert found.no_better(0.0).max() < 0.05


def test_a_broken_customer_moves_no_other() -> None:
    _, measured = drawn(300, 0.01, 0.02, 0.02, seed=3)
    errors, rows = np.full(300, 0.02), np.full(300, 100)
    alone = shrunken(measured, errors, rows)
    with_broken = shrunken(np.append(measured, -1e9), np.append(errors, 1e-9), np.append(rows, 100))
    assert with_broken.gain[:-1] == pytest.approx(alone.gain, abs=0.006)


def test_two_alike_rows_do_not_make_a_gain_sure() -> None:
    _, measured = drawn(200, 0.0, 0.02, 0.05, seed=4)
    found = shrunken(np.append(measured, 0.9), np.append(np.full(200, 0.05), 0.0), np.append(np.full(200, 100), 2))
    assert found.gain[-1] < 0.2


def test_who_has_no_measured_gain_gets_the_mean() -> None:
    found = shrunken(np.array([0.1, 0.12, np.nan]), np.array([0.02, 0.02, np.nan]), np.array([50, 50, 0]))
    assert found.gain[2] == pytest.approx(found.mean)
    nothing = shrunken(np.array([np.nan]), np.array([np.nan]), np.array([0]))
    assert nothing.gain.tolist() == [0.0]
    assert shrunken(np.empty(0), np.empty(0), np.empty(0)).gain.tolist() == []


def test_how_many_promoted_are_no_better_is_not_said_too_low_where_most_are_exactly_as_good() -> None:
    rng = np.random.default_rng(5)
    true = np.where(np.arange(2000) < 200, 0.05, 0.0)
    measured = true + rng.normal(0, 0.05, 2000)
    found = shrunken(measured, np.full(2000, 0.05), np.full(2000, 100))
    chosen = found.gain > 0
    no_better = int((true[chosen] == 0).sum())
    assert found.no_better(0.0)[chosen].sum() < 0.6 * no_better
    assert most_no_better(measured, chosen, 0.0) == pytest.approx(no_better, rel=0.1)
