"""Random search computed instead of run, against simulation and enumeration."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from tuning.compare.analysis.random_search import expected_best, quantile_of_best

LOSSES = np.random.default_rng(0).gamma(2.0, size=300)


@pytest.mark.parametrize("trials", [1, 10, 50])
def test_expectation_equals_simulation_within_its_error(trials: int) -> None:
    # 4,000 searches; beyond five standard errors by chance once in two million.
    rng = np.random.default_rng(trials)
    best = LOSSES[rng.integers(0, len(LOSSES), (4000, trials))].min(axis=1)
    error = best.std() / np.sqrt(len(best))
    assert expected_best(LOSSES, trials)[0] == pytest.approx(best.mean(), abs=5 * error)


def test_without_replacement_is_the_mean_over_all_subsets() -> None:
    few = LOSSES[:9]
    for trials in (1, 3, 8, 9):
        exact = np.mean([min(subset) for subset in combinations(few, trials)])
        assert expected_best(few, trials, replacement=False)[0] == pytest.approx(exact)
    assert expected_best(few, 50, replacement=False)[0] == few.min()


def test_unequal_chances_are_respected() -> None:
    rng = np.random.default_rng(4)
    weights = rng.random(300)
    weights /= weights.sum()
    best = rng.choice(LOSSES, (4000, 20), p=weights).min(axis=1)
    error = best.std() / np.sqrt(len(best))
    assert expected_best(LOSSES, 20, weights=weights)[0] == pytest.approx(best.mean(), abs=5 * error)
    equal = np.full(300, 1 / 300)
    assert expected_best(LOSSES, [1, 7], weights=equal) == pytest.approx(expected_best(LOSSES, [1, 7]))


def test_failed_configurations_count_as_the_worst() -> None:
    assert expected_best(np.array([1.0, np.nan, 3.0]), 1)[0] == pytest.approx(7 / 3)


def test_quantiles_of_the_best() -> None:
    rng = np.random.default_rng(5)
    best = LOSSES[rng.integers(0, len(LOSSES), (20000, 10))].min(axis=1)
    below = (best <= quantile_of_best(LOSSES, 10, 0.25)[0]).mean()
    assert 0.25 - 0.02 <= below <= 0.25 + 0.02 + 10 / 300
