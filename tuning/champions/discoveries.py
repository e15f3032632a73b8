"""Which of many e-values are discoveries, when a share of these may be false: e-BH (Wang and Ramdas 2022)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Discoveries:
    """chosen: (n,) which are. needed: (n,) the e-value with which each is, the others being as they are."""

    chosen: np.ndarray
    needed: np.ndarray


def e_bh(log_e: np.ndarray, false_discoveries: float) -> Discoveries:
    """The k largest of n e-values are discoveries if each is n / (false_discoveries * k) at least, for the largest such
    k. The expected share of false ones among them is at most `false_discoveries`, however they depend on each other.

    log_e: (n,) logarithms of e-values; NaN is not allowed.
    """
    count = len(log_e)
    if not count:
        return Discoveries(np.zeros(0, bool), np.zeros(0))
    needed = np.log(count / false_discoveries) - np.log(np.arange(1, count + 1))
    largest = np.sort(log_e)[::-1]
    enough = np.flatnonzero(largest >= needed)
    found = int(enough[-1]) + 1 if len(enough) else 0
    chosen = log_e >= needed[found - 1] if found else np.zeros(count, bool)
    limits = count / (false_discoveries * np.where(chosen, found, found + 1))
    return Discoveries(chosen, limits)
