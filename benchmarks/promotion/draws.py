"""Differences of row losses, champion's less challenger's, as they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]

#: The standard deviation of a difference, in mean losses of the champion.
NOISE = 0.5
#: A disaster: how often, how many mean losses.
RARE, DISASTER = 0.01, 10.0


def noise(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Heavy-tailed (Student's t, three degrees of freedom)."""
    drawn: np.ndarray = rng.standard_t(3, shape)
    drawn *= NOISE / np.sqrt(3)
    return drawn


@dataclass(frozen=True)
class Customers:
    """gain: (n,) the usual gain of each challenger, as a share of the champion's loss.
    disasters: (n,) whether one of its rows in a hundred is worse by ten mean losses.
    """

    gain: np.ndarray
    disasters: np.ndarray

    @classmethod
    def of(cls, count: int, better: float = 0.0, gain: float = 0.05, disasters: float = 0.0) -> Customers:
        """The first share `better` gains; the last share `disasters` seems to gain 5 % and loses as much."""
        gains, bad = np.zeros(count), np.zeros(count, bool)
        gains[: round(better * count)] = gain
        bad[count - round(disasters * count) :] = True
        gains[bad] = 0.05
        return cls(gains, bad)

    @property
    def better(self) -> np.ndarray:
        """(n,) whose challenger is truly better."""
        return (self.gain > 0) & ~self.disasters

    @property
    def true_gain(self) -> np.ndarray:
        """(n,) the mean gain of each challenger, disasters included."""
        struck = (1 - RARE) * self.gain - RARE * DISASTER
        return np.where(self.disasters, struck, self.gain)

    def draw(self, rng: np.random.Generator, rows: int) -> np.ndarray:
        """(n, rows) differences."""
        d = noise(rng, (len(self.gain), rows))
        d += self.gain[:, None]
        places = np.flatnonzero(self.disasters)
        struck = rng.random((len(places), rows)) < RARE
        d[places] = np.where(struck, d[places] - self.gain[places, None] - DISASTER, d[places])
        return d


def _rare_loss(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return np.where(rng.random(shape) < RARE, -50.0, 50.0 * RARE / (1 - RARE) + rng.standard_normal(shape))


#: Distributions of mean 0: a challenger that is exactly as good.
NULLS: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "skewed towards gains (exponential)": lambda rng, shape: rng.exponential(size=shape) - 1,
    "skewed towards losses (exponential)": lambda rng, shape: 1 - rng.exponential(size=shape),
    "skewed towards gains (log-normal)": lambda rng, shape: rng.lognormal(size=shape) - np.exp(0.5),
    "skewed towards losses (log-normal)": lambda rng, shape: np.exp(0.5) - rng.lognormal(size=shape),
    "heavy-tailed (Student, 3 degrees)": noise,
    "0/1 (one row in ten differs)": lambda rng, shape: (
        (rng.random(shape) < 0.1) * np.where(rng.random(shape) < 0.5, 1.0, -1.0)
    ),
    "with ties (rounded normal)": lambda rng, shape: np.round(rng.standard_normal(shape)),
    "one row in a hundred gains fifty times the rest": lambda rng, shape: -_rare_loss(rng, shape),
    "one row in a hundred loses fifty times the rest": _rare_loss,
}
#: The same, of which nobody knows the mean by any number of rows: without a variance, and losses rarer than one in a
#: hundred.
BEYOND: dict[str, Draw] = {
    "no variance (Student, 2 degrees)": lambda rng, shape: rng.standard_t(2, shape),
    "one row in five hundred loses a hundred times the rest": lambda rng, shape: np.where(
        rng.random(shape) < 0.002, -100.0, 0.2 / 0.998 + rng.standard_normal(shape)
    ),
}
