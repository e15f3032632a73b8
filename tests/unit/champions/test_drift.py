"""Champions that are worse than their hold-out promised."""

from __future__ import annotations

import numpy as np
import pytest

from tuning.champions.drift import drift_after, drift_start, drifting
from tuning.champions.evidence import Evidence


def weeks(rng: np.random.Generator, mean: float, promised: float = 1.0, rows: int = 100) -> Evidence:
    """Eight weeks of squared errors."""
    evidence = drift_start()
    for _ in range(8):
        evidence = drift_after(evidence, mean * rng.chisquare(1, rows), promised, tolerance=0.1)
    return evidence


def test_who_drifts_is_found_and_the_surest_comes_first() -> None:
    rng = np.random.default_rng(0)
    means = [1.0] * 40 + [2.0, 4.0]
    evidence = [weeks(rng, mean) for mean in means]
    found = drifting([f"c{place}" for place in range(42)], evidence, means, [1.0] * 42, false_discoveries=0.1)
    assert [row.customer for row in found if row.drifts] == ["c41", "c40"]
    assert found[0].e_value > found[0].threshold
    assert found[0].rows == 800


@pytest.mark.parametrize("losses", ["squares", "right or wrong", "log-normal"])
def test_who_is_as_far_off_as_it_may_be_does_not_drift(losses: str) -> None:
    rng = np.random.default_rng(1)
    draws = {
        "squares": lambda: rng.chisquare(1, (300, 30)),
        "right or wrong": lambda: (rng.random((300, 30)) < 0.1) / 0.1,
        "log-normal": lambda: rng.lognormal(0, 1.5, (300, 30)) / np.exp(1.125),
    }
    evidence, largest = Evidence.start(np.empty((300, 0)), bound=1.0), np.full(300, -np.inf)
    for _ in range(8):
        evidence = drift_after(evidence, 1.1 * draws[losses](), 1.0, tolerance=0.1)
        largest = np.maximum(largest, evidence.log_e())
    assert (largest >= np.log(10)).mean() <= 0.1


def test_a_promise_of_few_rows_promises_less() -> None:
    rng = np.random.default_rng(2)
    losses = 1.5 * rng.chisquare(1, 2000)
    sure, vague = (float(drift_after(drift_start(), losses, 1.0, 0.1, error).log_e()) for error in (0.0, 0.3))
    assert sure > 5
    assert vague < 0


def test_a_hold_out_without_any_error_promises_nothing() -> None:
    evidence = drift_after(drift_start(), np.ones(50), 0.0, 0.1)
    assert evidence.rows == 0
