"""What makes an algorithm quick whose models cost seconds, for the contracts of all algorithms."""

from __future__ import annotations

import functools
import importlib.util

import pytest


@pytest.fixture
def quick_acquisition(monkeypatch: pytest.MonkeyPatch) -> None:
    """bayesian-optimization climbs from the best of 10,000 random points alone, and not from ten more."""
    if importlib.util.find_spec("bayes_opt"):
        from bayes_opt import bayesian_optimization

        quick = functools.partial(bayesian_optimization.acq_max, n_iter=1)
        monkeypatch.setattr(bayesian_optimization, "acq_max", quick)
