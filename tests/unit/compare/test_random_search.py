"""Random search computed instead of run, against simulation and enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from tuning.compare.analysis.random_search import expected_best

LOSSES = np.random.default_rng(0).gamma(2.0, size=300)


@pytest.mark.parametrize("trials", [1, 10, 50])
def test_expectation_equals_simulation_within_its_error(trials: int) -> None:
    # 4,000 searches; beyond five standard errors by chance once in two million.
    rng = np.random.default_rng(trials)
    best = LOSSES[rng.integers(0, len(LOSSES), (4000, trials))].min(axis=1)
    error = best.std() / np.sqrt(len(best))
    assert expected_best(LOSSES, trials)[0] == pytest.approx(best.mean(), abs=5 * error)


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
