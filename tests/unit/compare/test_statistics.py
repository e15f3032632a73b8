"""The statistics against published numbers (Demšar 2006), scipy and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tuning.compare import analyse
from tuning.compare.analysis.power import fewest_tasks, power
from tuning.compare.analysis.statistics import (
    bootstrap,
    cliques,
    counts,
    friedman,
    holm,
    pairwise,
    smallest_p,
    wilcoxon,
)

# Demšar 2006, table 6: AUC of C4.5, C4.5+m, C4.5+cf and C4.5+m+cf on 14 data sets. In the row "voting" the paper
# ranks two equal printed values apart; the last digit restores its order.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.9749],
        [0.957, 0.978, 0.946, 0.970],
    ]
)
LOSSES = -DEMSAR


def test_average_ranks_are_those_of_the_paper() -> None:
    names = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]
    rows = [
        {"method": name, "task": task, "seed": 0, "trial": 1, "score": score}
        for task, scores in enumerate(DEMSAR)
        for name, score in zip(names, scores, strict=True)
    ]
    bounds = pd.DataFrame({"task": range(14), "best": 1.0, "reference": 0.0})
    found = analyse(pd.DataFrame(rows), mode="max", baseline="C4.5", bounds=bounds)
    assert dict(zip(found.methods, found.ranks.round(3).tolist(), strict=True)) == {
        "C4.5": 3.143,
        "C4.5+m": 2.000,
        "C4.5+cf": 2.893,
        "C4.5+m+cf": 1.964,
    }
    pair = found.pairs.pair("C4.5+m", "C4.5")
    assert (pair.test.minus, pair.test.plus) == (93, 12)


def test_friedman_gives_the_papers_statistic_corrected_for_its_ties() -> None:
    # The paper has chi2 = 9.28 and F = 3.69, without a correction for ties. Ties: 2, 2, 4 and 2 equal values.
    correction = 1 - (3 * (2**3 - 2) + (4**3 - 4)) / (14 * (4**3 - 4))
    found = friedman(LOSSES)
    assert found.statistic * correction == pytest.approx(9.28, abs=0.005)
    assert found.freedom == 3
    assert found.statistic == pytest.approx(stats.friedmanchisquare(*LOSSES.T).statistic)
    assert found.p < 0.05, "the paper rejects at 0.05"


def test_friedmans_f_is_an_analysis_of_variance_of_the_ranks() -> None:
    values = np.random.default_rng(0).integers(0, 6, size=(30, 4)).astype(float)
    ranks = stats.rankdata(values, axis=1)
    between = 30 * ((ranks.mean(axis=0) - 2.5) ** 2).sum() / 3
    within = ((ranks - ranks.mean(axis=0)) ** 2).sum() - ((ranks.mean(axis=1) - 2.5) ** 2).sum() * 4
    found = friedman(values)
    assert found.f == pytest.approx(between / (within / (29 * 3)))
    assert found.p == pytest.approx(stats.f.sf(found.f, 3, 87))


def test_friedman_by_permutation_is_exact_on_few_tasks() -> None:
    values = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0], [2.0, 1.0, 3.0]])
    statistic = (values.sum(axis=0) ** 2).sum()
    orders = list(itertools.permutations((1.0, 2.0, 3.0)))
    as_extreme = sum(
        (np.array(rows).sum(axis=0) ** 2).sum() >= statistic - 1e-9 for rows in itertools.product(orders, repeat=4)
    )
    found = friedman(values)
    assert found.permuted
    assert found.p == pytest.approx(as_extreme / 6**4, abs=1e-12)


def test_friedman_of_equal_methods_is_one() -> None:
    assert friedman(np.ones((8, 3))).p == 1.0


def test_wilcoxon_gives_the_papers_rank_sums() -> None:
    # Table 2: C4.5 against C4.5+m, R+ = 93, R- = 12, with two zeros shared.
    found = wilcoxon(np.round(DEMSAR[:, 1] - DEMSAR[:, 0], 10))
    assert (found.plus, found.minus) == (93, 12)
    assert found.p < 0.05, "the paper rejects: 12 is below the critical 21"


def test_wilcoxon_with_zeros_and_ties_is_an_exact_permutation_of_signs() -> None:
    differences = np.array([0.0, 0.0, 1.0, 1.0, 2.0, -1.0, 3.0, 4.0, 4.0])
    ranks = stats.rankdata(np.abs(differences)) * (differences != 0)
    seen = ranks[differences > 0].sum()
    middle = ranks.sum() / 2
    signs = np.array(list(itertools.product((0, 1), repeat=9)))
    extreme = np.abs(signs @ ranks - middle) >= abs(seen - middle) - 1e-9
    assert wilcoxon(differences).p == pytest.approx(extreme.mean())


def test_wilcoxon_without_any_difference_is_one() -> None:
    assert wilcoxon(np.zeros(12)).p == 1.0


def test_five_tasks_can_never_be_significant() -> None:
    assert smallest_p(5) == 0.0625
    assert wilcoxon(np.array([3.0, 4.0, 5.0, 6.0, 7.0])).p == 0.0625
    assert fewest_tasks(0.05) == 6


def test_holm_on_the_papers_comparison_with_a_control() -> None:
    # Section 3.2.2: p = .016, .019 and .607 against C4.5; Holm rejects the first two at 0.05.
    adjusted = holm([0.019, 0.607, 0.016])
    assert adjusted == pytest.approx([0.048, 0.607, 0.048])


def test_holm_equals_statsmodels() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest", reason="statsmodels is not installed")
    p = np.random.default_rng(1).random(17) ** 3
    assert holm(p) == pytest.approx(multitest.multipletests(p, method="holm")[1])


def test_pairs_are_each_tested_once_from_the_first_ones_side() -> None:
    tests = pairwise(LOSSES)
    assert sorted(tests) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert tests[(0, 1)].plus > tests[(0, 1)].minus, "C4.5 loses more than C4.5+m"


def test_bootstrap_interval_covers_at_its_nominal_rate() -> None:
    # 200 samples of 25: binomial(200, .95) is below 177 in 1e-4 of all cases; BCa is slightly short at n = 25.
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        found = bootstrap(rng.normal(1.0, 2.0, 25), resamples=400)
        covered += found.low <= 1.0 <= found.high
    assert covered >= 177


def test_bootstrap_of_what_cannot_vary() -> None:
    assert (bootstrap(np.full(5, 0.25)).low, bootstrap(np.full(5, 0.25)).high) == (0.25, 0.25)
    assert np.isnan(bootstrap(np.array([0.25])).low)


def test_wins_ties_losses() -> None:
    found = counts(np.array([-1.0, 0.0, 2.0, -3.0]))
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)


def test_cliques_join_neighbours_that_do_not_differ() -> None:
    different = np.zeros((4, 4), dtype=bool)
    for a, b in ((0, 2), (0, 3), (1, 3)):
        different[a, b] = different[b, a] = True
    assert cliques(np.array([1.2, 1.9, 3.1, 3.8]), different) == [(0, 1), (1, 2), (2, 3)]
    assert cliques(np.array([1.2, 1.9, 3.1, 3.8]), np.zeros((4, 4), dtype=bool)) == [(0, 1, 2, 3)]


def test_power_is_the_share_of_samples_that_the_test_finds() -> None:
    # Differences of mean 0.5 and standard deviation 1: simulated here directly, 2,000 samples of 20. The standard
    # error of either share is about 0.015; 0.08 is five of them, plus what resampling one sample of 400 adds.
    rng = np.random.default_rng(3)
    fresh = stats.wilcoxon(rng.normal(0.5, 1, (2000, 20)), axis=1, method="exact").pvalue
    population = stats.norm.ppf((np.arange(20) + 0.5) / 20) + 0.5
    assert power(population, simulations=2000).found == pytest.approx((fresh <= 0.05).mean(), abs=0.08)


def test_power_names_the_tasks_that_would_settle_it() -> None:
    differences = stats.norm.ppf((np.arange(12) + 0.5) / 12) + 0.5
    found = power(differences)
    assert found.needed is not None
    assert 12 < found.needed < 80
    enough = power(np.resize(differences, found.needed))
    assert enough.found == pytest.approx(0.8, abs=0.08)
    assert found.sentence("customers").startswith("with 12 customers a difference this size is found 1 time")
    assert f"use {found.needed} customers" in found.sentence("customers")


def test_power_of_no_difference_promises_nothing() -> None:
    balanced = np.r_[np.arange(1.0, 11), -np.arange(1.0, 11)]
    found = power(balanced)
    assert found.needed is None
    assert "even 400" in found.sentence()


def test_power_refuses_to_guess_from_four_tasks() -> None:
    found = power(np.array([1.0, 2.0, 3.0, 4.0]))
    assert found.found is None
    assert "below 6 no difference can be significant" in found.sentence()
