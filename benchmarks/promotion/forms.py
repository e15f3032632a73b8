"""Forms of evidence: ours, and those beside which it was chosen."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from scipy.special import log_ndtr, stdtr

from tuning.champions.evidence import Evidence


class Form(ABC):
    """What is gathered of customers' rows, week by week. `usual` is the median of older differences."""

    def __init__(self, earlier: np.ndarray, bound: float) -> None:
        """earlier: (n, rows) of older rows. bound: how large a loss can be."""
        self.usual = np.nanmedian(np.abs(earlier), axis=1, keepdims=True)
        self.sum, self.squares, self.rows = np.zeros(len(earlier)), np.zeros(len(earlier)), 0

    def see(self, differences: np.ndarray) -> None:
        """The rows of a week, (n, rows)."""
        self.sum += differences.sum(axis=1)
        self.squares += (differences**2).sum(axis=1)
        self.rows += differences.shape[1]

    @abstractmethod
    def log_e(self) -> np.ndarray:
        """(n,) logarithms of e-values, or of one over p-values."""

    def _z(self) -> np.ndarray:
        mean = self.sum / self.rows
        variance = np.maximum(self.squares / self.rows - mean**2, 1e-12)
        z: np.ndarray = mean * math.sqrt(self.rows) / np.sqrt(variance)
        return z


class Ours(Form):
    """The evidence that is in releases."""

    def __init__(self, earlier: np.ndarray, bound: float) -> None:
        super().__init__(earlier, bound)
        self.evidence = Evidence.start(earlier, bound)

    def see(self, differences: np.ndarray) -> None:
        self.evidence = self.evidence.after(differences)

    def log_e(self) -> np.ndarray:
        return self.evidence.log_e()


class NormalMixture(Form):
    """A one-sided normal mixture over losses as they are (Robbins), sharpest at 400 rows; holds for many rows only."""

    SHARPEST = 400

    def log_e(self) -> np.ndarray:
        total = self.rows + self.SHARPEST
        z = self._z() * math.sqrt(self.rows / total)
        found: np.ndarray = math.log(2) + 0.5 * math.log(self.SHARPEST / total) + z**2 / 2 + log_ndtr(z)
        return found


class Clipped(Form):
    """Bets on differences that are clipped at three medians, so that no row counts for much."""

    STAKES = (0.05, 0.1, 0.2, 0.4)

    def __init__(self, earlier: np.ndarray, bound: float) -> None:
        super().__init__(earlier, bound)
        self.wealth = np.zeros((len(earlier), len(self.STAKES)))

    def see(self, differences: np.ndarray) -> None:
        super().see(differences)
        held = np.clip(differences / (3 * self.usual), -1, 1)
        self.wealth += np.stack([np.log1p(stake * held).sum(axis=1) for stake in self.STAKES], axis=1)

    def log_e(self) -> np.ndarray:
        return np.logaddexp.reduce(self.wealth, axis=1) - math.log(len(self.STAKES))


class ClippedAndMean(Clipped):
    """The same, where the mean of all losses as they are must agree."""

    def log_e(self) -> np.ndarray:
        return np.where(self.sum > 0, super().log_e(), -np.inf)


class BoundedBets(Form):
    """Bets that survive losses of seventy medians, and believe in none that is larger."""

    REACHES = (70.0, 140.0)

    def __init__(self, earlier: np.ndarray, bound: float) -> None:
        super().__init__(earlier, bound)
        self.wealth = np.zeros((len(earlier), len(self.REACHES)))

    def see(self, differences: np.ndarray) -> None:
        parts = [np.maximum(differences / (reach * self.usual), -1) for reach in self.REACHES]
        with np.errstate(divide="ignore"):
            self.wealth += np.stack([np.log1p(part).sum(axis=1) for part in parts], axis=1)

    def log_e(self) -> np.ndarray:
        return np.logaddexp.reduce(self.wealth, axis=1) - math.log(len(self.REACHES))


class UncappedBets(BoundedBets):
    """Bets with reaches like ours, without the second bet."""

    REACHES = (20.0, 40.0, 80.0, 160.0)


class SelfNormalised(Form):
    """exp(stake * d - (stake * d)**2 / 2) of each row: exact for symmetric differences (de la Peña)."""

    STAKES = (0.025, 0.05, 0.1, 0.2)

    def log_e(self) -> np.ndarray:
        stakes = np.asarray(self.STAKES) / (1.5 * self.usual)
        wealth = stakes * self.sum[:, None] - stakes**2 / 2 * self.squares[:, None]
        found: np.ndarray = np.logaddexp.reduce(wealth, axis=1) - math.log(len(self.STAKES))
        return found


class WeeklyT(Form):
    """A t-test of all rows so far and Benjamini-Hochberg, which is e-BH of one over p, looked at again each week."""

    def log_e(self) -> np.ndarray:
        found: np.ndarray = -np.log(stdtr(self.rows - 1, -self._z() * math.sqrt((self.rows - 1) / self.rows)))
        return found


FORMS: dict[str, Callable[[np.ndarray, float], Form]] = {
    "ours": Ours,
    "normal mixture": NormalMixture,
    "bets that survive 70 medians": BoundedBets,
    "ours without the second bet": UncappedBets,
    "self-normalised": SelfNormalised,
    "clipped bets": Clipped,
    "clipped bets, mean agrees": ClippedAndMean,
    "t-test and BH each week": WeeklyT,
}
